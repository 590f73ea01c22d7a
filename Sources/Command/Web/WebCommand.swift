import EventLoop
import Glibc
import HTTP
import JSON
import Notifications
import Web
import Worker

/// `carillon web`.
enum WebCommand {
  private static let out = Setting<String>.required("web.out", .folder, "The folder. A missing one is made.")
  private static let force = Setting(
    "web.force", .boolean, default: false, "Writes into a folder that is not empty. Files of the same names are replaced, others stay.")
  private static let devices = Setting(
    "web.devices", .socket, default: DeviceProtocol.path,
    "Where the page's devices connect: at this path of the page's host, or at a URL, such as that of the proxy in front of --listen.")
  private static let media = Setting<String?>(
    "web.media-url", .base, "The base of links to media, as fan-out workers have it. Absent: the page shows no media.")
  private static let credentials = Setting(
    "web.credentials", .boolean, default: true,
    "Asks for a credential, as a cluster with --key-file does. With --no-credentials it asks for application and person.")

  static let command = Command(
    "web", "writes the files that a browser needs, for a web server of your own",
    discussion:
      "Writes carillon.js and the folder device with the notification center, whose page is device/index.html. Each file is replaced at once; device/config.json, which says where the cluster is, comes last. The cluster must let the page's origin in by --allowed-origins. Fan-out workers with --web serve the same files. Prints a line for each file.",
    groups: [SettingGroup("Files", [out, force]), SettingGroup("Page", [devices, media, credentials]), AnswerSettings.group],
    examples: [Example("web --out public --devices wss://push.example.com/v1/device", "for a web server whose root is the folder public")]
  ) { values in
    let (folder, files) = (values[out], WebFiles.embedded)
    let configuration = files.configuration(
      devices: values[devices], needsCredential: values[credentials], mediaBase: values[media])
    try values.naming(out) { () throws(Failure) in
      if try !isEmpty(folder), !values[force] {
        throw Failure(.wrongUsage, "\(PrintedText.echo(folder)) is not empty: --force replaces the files of the same names")
      }
      for (path, bytes) in files.all.map({ ($0.path, $0.bytes) }) + [("device/config.json", .make(configuration))] {
        try write(bytes, to: "\(folder)/\(path)")
        let json: JSONValue = ["path": .string(path), "bytes": .integer(Int64(bytes.count)), "version": .string(files.digest)]
        if values[AnswerSettings.json] { StandardOutput.json(json.text) } else { StandardOutput.line("\(folder)/\(path)") }
      }
    }
    return .done
  }

  /// Whether a folder has no entries. A missing one is made.
  private static func isEmpty(_ path: String) throws(Failure) -> Bool {
    try makeFolders(of: path + "/")
    do throws(FolderNames.ReadError) { return try FolderNames.read(path, atMost: 0)?.isEmpty ?? true } catch {
      throw failure(path, "read", error.reason)
    }
  }

  /// Writes a file under another name, and gives it its own when it is complete.
  private static func write(_ bytes: SharedBytes, to path: String) throws(Failure) {
    try makeFolders(of: path)
    let descriptor = open(path + ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw failure(path, "write") }
    let isComplete = bytes.withUnsafeBytes { Descriptor.write($0, to: descriptor) == $0.count }
    // Some file systems report a full disk only now.
    guard close(descriptor) == 0, isComplete, rename(path + ".new", path) == 0 else { throw failure(path, "write") }
  }

  private static func makeFolders(of path: String) throws(Failure) {
    for end in path.indices.dropFirst() where path[end] == "/" {
      guard mkdir(String(path[..<end]), 0o755) == 0 || errno == EEXIST else { throw failure(String(path[..<end]), "make") }
    }
  }

  private static func failure(_ path: String, _ verb: String, _ reason: Int32 = errno) -> Failure {
    Failure(.wrongUsage, "cannot \(verb) \(PrintedText.echo(path)): \(String(cString: strerror(reason)))")
  }
}

extension SettingKind where Value == String {
  /// The device socket as a browser opens it.
  fileprivate static var socket: SettingKind {
    SettingKind(
      placeholder: "URL", allowed: "a path, or a URL such as wss://push.example.com\(DeviceProtocol.path)",
      read: { text in
        let url = text.hasPrefix("/") ? "ws://host\(text)" : text
        return (try? HTTPURL(url))?.scheme.isWebSocket == true ? text : nil
      })
  }
}
