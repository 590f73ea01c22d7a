import Cryptography
import EmbeddedWeb
public import EventLoop

/// A file that a browser fetches.
public struct WebFile: Sendable {
  /// Its path within the folder, such as `device/index.html`. It is ASCII, without `.` and `..`.
  public let path: String
  /// Its media type.
  public let contentType: String
  /// Its content.
  public let bytes: SharedBytes
  /// The first 16 bytes of the content's SHA-256, in hexadecimal.
  public let digest: String

  /// Describes a file.
  ///
  /// - Returns: nil if the path's ending has no media type.
  public init?(path: String, bytes: SharedBytes) {
    guard let contentType = Self.contentType(of: path) else { return nil }
    (self.path, self.contentType, self.bytes) = (path, contentType, bytes)
    digest = bytes.withUnsafeBytes { WebFiles.short(Digest.sha256($0)) }
  }

  private static func contentType(of path: String) -> String? {
    switch path.split(separator: ".").last {
    case "html": "text/html; charset=utf-8"
    case "css": "text/css; charset=utf-8"
    case "js": "text/javascript; charset=utf-8"
    case "json": "application/json"
    case "webmanifest": "application/manifest+json"
    case "txt": "text/plain; charset=utf-8"
    case "svg": "image/svg+xml"
    case "png": "image/png"
    case "ico": "image/x-icon"
    case "webp": "image/webp"
    case "mp3": "audio/mpeg"
    case "wav": "audio/wav"
    case "woff2": "font/woff2"
    default: nil
    }
  }
}

/// `carillon.js` and the notification center: one version of all files that a browser fetches.
///
/// The path of every file has a digest over all files, so that no browser mixes two versions. The files of the notification center are
/// also at a path that stays, where they refer to the others by the digest.
public struct WebFiles: Sendable {
  /// The folder of the notification center.
  public static let device = "device/"
  /// The page of that folder.
  public static let page = "device/index.html"
  /// Those of this program.
  public static let embedded = WebFiles((0...).lazy.map(embeddedFile).prefix { $0 != nil }.compactMap(\.self))

  /// Every file as it is in the folder, in the order of the paths.
  public let all: [WebFile]
  /// The files of the notification center for the path that stays.
  public let staying: [WebFile]
  /// 32 hexadecimal digits, which differ if a path or a byte of any file does.
  public let digest: String

  /// Makes one version of some files.
  public init(_ files: [WebFile]) {
    all = files.sorted { $0.path < $1.path }
    let version = Self.short(Digest.sha256(all.map { "\($0.path) \($0.digest)\n" }.joined()))
    digest = version
    staying = all.filter { $0.path.hasPrefix(Self.device) }.map { Self.referring($0, to: version) }
  }

  /// A file whose references `"./…` and `"../…` lead to the path with the digest. Others, such as `"service-worker.js"`, stay.
  private static func referring(_ file: WebFile, to digest: String) -> WebFile {
    guard ["html", "js", "webmanifest"].contains(file.path.split(separator: ".").last) else { return file }
    let folder = file.path.split(separator: "/").dropLast()
    func reference(to folder: ArraySlice<Substring>) -> String { "\"/web/\(digest)/" + folder.map { $0 + "/" }.joined() }
    let text = file.bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
      .replacing("\"./", with: reference(to: folder)).replacing("\"../", with: reference(to: folder.dropLast()))
    return WebFile(path: file.path, bytes: .make(text)) ?? file
  }

  private static func embeddedFile(_ index: Int) -> WebFile? {
    var (bytes, count): (UnsafePointer<UInt8>?, Int) = (nil, 0)
    guard let path = carillon_web_file(Int32(index), &bytes, &count).map({ String(cString: $0) }) else { return nil }
    guard let file = WebFile(path: path, bytes: .make(UnsafeRawBufferPointer(start: bytes, count: count))) else {
      preconditionFailure("the ending of \(path) has no media type")
    }
    return file
  }

  fileprivate static func short(_ digest: [UInt8]) -> String {
    digest.prefix(16).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}
