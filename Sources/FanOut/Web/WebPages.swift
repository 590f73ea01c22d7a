import EventLoop
import HTTP
import Notifications
import Web

/// Serves `carillon.js` and the notification center to browsers. A value.
///
/// | path | answer |
/// |---|---|
/// | `/device/` | the notification center, in this worker's version |
/// | `/device/NAME` | another file of it, which a browser asks for again each time |
/// | `/device/config.json` | what the page must know of the cluster |
/// | `/web/DIGEST/NAME` | any file, which a browser keeps for a year; 404 if the digest is not this version's |
///
/// Paths are compared byte by byte and never decoded, so no path leads out of the files.
struct WebPages {
  private let files: WebFiles
  private let settings: FanOutSettings
  private var entries: [[UInt8]: (file: WebFile, caching: String)] = [:]

  init(_ files: WebFiles, _ settings: FanOutSettings) {
    (self.files, self.settings) = (files, settings)
    for file in files.all { entries[Array("/web/\(files.digest)/\(file.path)".utf8)] = (file, "public, max-age=31536000, immutable") }
    for file in files.staying { entries[Array("/\(file.path)".utf8)] = (file, "no-cache") }
    entries[Array("/device/".utf8)] = entries[Array("/device/index.html".utf8)]
  }

  /// Adds its paths.
  func add(to routes: inout HTTPRoutes) {
    let answer: HTTPRoutes.Handler = { $1.respond(response(to: $0)) }
    for path in ["/device", "/device/"] { routes.add(.get, path, answer) }
    for prefix in ["/device/", "/web/"] { routes.add(.get, prefix: prefix, answer) }
  }

  private func response(to request: HTTPRequest) -> HTTPResponse {
    let path = Array(request.path.utf8)
    let host = request.headers["Host"].flatMap { Self.isPlain($0) ? $0 : nil }
    var response = entries[path].map { self.response(to: request, $0, caching: $1) } ?? response(to: path, host)
    response.headers += [
      ("Content-Security-Policy", policy(host)), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
      ("Cross-Origin-Opener-Policy", "same-origin"),
    ]
    return response
  }

  private func response(to request: HTTPRequest, _ file: WebFile, caching: String) -> HTTPResponse {
    let selection = HTTPRepresentation(entityTag: file.digest, count: file.bytes.count).selection(for: request)
    let body = selection.range.map { range in
      let isPart = range.count < file.bytes.count
      return isPart ? file.bytes.withUnsafeBytes { .make(UnsafeRawBufferPointer(rebasing: $0[range])) } : file.bytes
    }
    let type = body == nil ? [] : [("Content-Type", file.contentType)]
    return HTTPResponse(selection.status, headers: type + [("Cache-Control", caching)] + selection.headers, body: body)
  }

  /// The answer for a path that has no file.
  private func response(to path: [UInt8], _ host: String?) -> HTTPResponse {
    let caching = [("Cache-Control", "no-store")]
    if path == Array("/device".utf8) {
      return HTTPResponse(HTTPStatus(rawValue: 308), text: "The page is at /device/.\n", headers: [("Location", "/device/")] + caching)
    }
    if path == Array("/device/config.json".utf8) {
      return HTTPResponse(.ok, text: configuration(host), contentType: "application/json", headers: caching)
    }
    let isOther = path.starts(with: "/web/".utf8) && !path.starts(with: "/web/\(files.digest)/".utf8)
    let other = "This worker has the files of version \(files.digest) only: load the page again.\n"
    return HTTPResponse(.notFound, text: isOther ? other : "There is nothing at this path.\n", headers: caching)
  }

  /// A browser hides the reason of a refusal from the page, so the page gets its origins that may open the device socket.
  private func configuration(_ host: String?) -> String {
    let needsCredential = if case .credential = settings.admission { true } else { false }
    let rule = OriginRule(allowed: settings.allowedOrigins)
    let origins = host.map { host in ["http://", "https://"].map { $0 + host.lowercased() } } ?? []
    return files.configuration(
      devices: DeviceProtocol.path, needsCredential: needsCredential, mediaBase: settings.media?.base,
      environment: settings.environment.rawValue, origins: origins.filter { rule.refusal(of: [$0], host: host) == nil })
  }

  /// What a page may load and connect to. Some browsers do not count a WebSocket of the same host as `'self'`.
  private func policy(_ host: String?) -> String {
    let media = settings.media.map { " \(WebFiles.origin(of: $0.base))" } ?? ""
    // A policy cannot name an IPv6 address.
    let sockets = host.map { $0.contains("[") ? "" : " ws://\($0) wss://\($0)" } ?? ""
    return "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' blob:\(media); "
      + "media-src 'self' blob:\(media); connect-src 'self'\(sockets); manifest-src 'self'; worker-src 'self'; base-uri 'none'; "
      + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types carillon"
  }

  /// Whether a host and its port, which a client may write as it likes, can stand in a policy.
  private static func isPlain(_ host: String) -> Bool {
    host.utf8.count <= 262
      && host.utf8.allSatisfy { byte in byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A || "0123456789-.:[]".utf8.contains(byte) }
  }
}
