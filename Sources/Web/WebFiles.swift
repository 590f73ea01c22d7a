import Cryptography
import EmbeddedWeb
package import EventLoop
import JSON

/// A file that a browser fetches.
package struct WebFile: Sendable {
  private static let contentTypes = [
    "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "json": "application/json", "webmanifest": "application/manifest+json", "txt": "text/plain; charset=utf-8", "svg": "image/svg+xml",
    "png": "image/png", "ico": "image/x-icon", "webp": "image/webp", "mp3": "audio/mpeg", "wav": "audio/wav", "woff2": "font/woff2",
  ]

  /// Its path within the folder, such as `device/index.html`.
  package let path: String
  /// Its media type.
  package let contentType: String
  /// Its content.
  package let bytes: SharedBytes
  /// The first half of the content's SHA-256, in hexadecimal.
  package let digest: String

  init(path: String, bytes: SharedBytes) {
    guard let type = Self.contentTypes["\(path.split(separator: ".").last ?? "")"] else { preconditionFailure("no media type: \(path)") }
    (self.path, contentType, self.bytes) = (path, type, bytes)
    digest = bytes.withUnsafeBytes { WebFiles.text(Digest.sha256($0)) }
  }
}

/// `carillon.js` and the notification center: one version of all files that a browser fetches.
package struct WebFiles: Sendable {
  /// The files of this program.
  package static let embedded = WebFiles((0...).lazy.map(embeddedFile).prefix { $0 != nil }.compactMap(\.self))

  /// Every file as it is in the folder, in the order of the paths. A browser fetches it at a path with `digest`, so it mixes no versions.
  package let all: [WebFile]
  /// The files of the folder `device` for paths without the digest. They refer to the others by it.
  package let staying: [WebFile]
  /// 32 hexadecimal digits, which differ if a path or a byte of any file does.
  package let digest: String

  init(_ files: [WebFile]) {
    all = files.sorted { $0.path < $1.path }
    let digest = Self.text(Digest.sha256(all.map { "\($0.path) \($0.digest)\n" }.joined()))
    self.digest = digest
    staying = all.filter { $0.path.hasPrefix("device/") }.map { Self.referring($0, to: digest) }
  }

  /// What a page must know of the cluster, as `device/config.json` says it.
  ///
  /// - Parameters:
  ///   - devices: the device socket: a path of the page's host, or a URL.
  ///   - mediaBase: the base of links to media, of which the page learns the origin.
  ///   - environment: the one that the cluster serves, if it is known.
  ///   - origins: those of the page's host that may open the device socket, if they are known.
  package func configuration(
    devices: String, needsCredential: Bool, mediaBase: String?, environment: String? = nil, origins: [String]? = nil
  ) -> String {
    let media: any JSONRepresentable = mediaBase.map { Self.origin(of: $0) } ?? JSONValue.null
    let json = JSONValue.object(present: [
      "digest": digest, "devices": devices, "credential": needsCredential, "media": media, "environment": environment, "origins": origins,
    ])
    return json.text + "\n"
  }

  /// The origin of a URL: what stands before its path.
  package static func origin(of url: String) -> String {
    url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false).prefix(3).joined(separator: "/")
  }

  /// A file whose references `"./…` and `"../…` lead to the path with the digest. Others, such as `"service-worker.js"`, stay.
  private static func referring(_ file: WebFile, to digest: String) -> WebFile {
    guard ["html", "js", "webmanifest"].contains(file.path.split(separator: ".").last) else { return file }
    let folder = file.path.split(separator: "/").dropLast()
    func path(_ folder: ArraySlice<Substring>) -> String { "\"/web/\(digest)/" + folder.map { $0 + "/" }.joined() }
    let text = file.bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    return WebFile(
      path: file.path, bytes: .make(text.replacing("\"./", with: path(folder)).replacing("\"../", with: path(folder.dropLast()))))
  }

  private static func embeddedFile(_ index: Int) -> WebFile? {
    var (bytes, count): (UnsafePointer<UInt8>?, Int) = (nil, 0)
    guard let path = carillon_web_file(Int32(index), &bytes, &count) else { return nil }
    return WebFile(path: String(cString: path), bytes: .make(UnsafeRawBufferPointer(start: bytes, count: count)))
  }

  fileprivate static func text(_ digest: [UInt8]) -> String {
    digest.prefix(16).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }
}
