import EventLoop
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
  private static let devices = Setting<String?>(
    "web.devices", .socket,
    "Where the page's devices connect: the proxy with TLS in front of --listen. Absent: \(DeviceProtocol.path) of the page's host."
  )
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
    examples: [
      Example("web --out public --devices wss://push.example.com/v1/device", "for a web server whose root is the folder public")
    ]
  ) { values in
    try values.naming(out) { () throws(Failure) in
      try write(
        .embedded,
        WebConfiguration(
          devices: values[devices] ?? DeviceProtocol.path, needsCredential: values[credentials], mediaBase: values[media]),
        to: WebFolder(values[out], mayHaveFiles: values[force]), isJSON: values[AnswerSettings.json])
    }
    return .done
  }

  private static func write(
    _ files: WebFiles, _ configuration: WebConfiguration, to folder: WebFolder, isJSON: Bool
  ) throws(Failure) {
    let all =
      files.all.map { ($0.path, $0.bytes) } + [
        ("\(WebFiles.device)config.json", SharedBytes.make(configuration.text(digest: files.digest)))
      ]
    for (path, bytes) in all {
      try folder.write(bytes, to: path)
      guard isJSON else {
        StandardOutput.line("\(folder.path)/\(path)")
        continue
      }
      StandardOutput.json(
        JSONValue.object([
          .init(key: "path", value: .string(path)), .init(key: "bytes", value: .integer(Int64(bytes.count))),
          .init(key: "version", value: .string(files.digest)),
        ]).text)
    }
  }
}

extension SettingKind where Value == String {
  /// The device socket as a browser opens it.
  fileprivate static var socket: SettingKind {
    SettingKind(
      placeholder: "URL", allowed: "a URL such as wss://push.example.com\(DeviceProtocol.path)",
      read: { text in
        let plain = text.hasPrefix("wss://") ? "ws" + text.dropFirst(3) : text
        guard let url = try? HTTPURL(plain), url.scheme == .ws else { return nil }
        return url.target == "/" ? "\(text.hasSuffix("/") ? String(text.dropLast()) : text)\(DeviceProtocol.path)" : text
      }, write: { $0 })
  }
}
