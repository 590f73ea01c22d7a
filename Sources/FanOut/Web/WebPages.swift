import EventLoop
import HTTP
import Notifications
import Web

/// Serves `carillon.js` and the notification center to browsers. Loop-confined.
///
/// | path | answer |
/// |---|---|
/// | `/device/` | the notification center, in this worker's version |
/// | `/device/NAME` | another file of it, which a browser asks for again each time |
/// | `/device/config.json` | what the page must know of the cluster |
/// | `/web/DIGEST/NAME` | any file, which a browser keeps for a year; 404 if the digest is not this version's |
///
/// Paths are compared byte by byte and never decoded, so no path leads out of the files.
final class WebPages {
  private struct Entry {
    let file: WebFile
    let caching: [(name: String, value: String)]
  }

  private static let page = "/device/"
  private static let files = "/web/"

  private let digest: String
  private let settings: FanOutSettings
  private let media: String
  private var entries: [[UInt8]: Entry] = [:]

  init(_ files: WebFiles, _ settings: FanOutSettings) {
    (digest, self.settings) = (files.digest, settings)
    media = Self.configuration(settings, origins: nil).media.map { " \($0)" } ?? ""
    for file in files.all {
      // The worker of a page at /device/ may be at any path.
      let scope = file.path.hasSuffix("/service-worker.js") ? [("Service-Worker-Allowed", Self.page)] : []
      entries[Array("\(Self.files)\(digest)/\(file.path)".utf8)] =
        Entry(file: file, caching: [("Cache-Control", "public, max-age=31536000, immutable")] + scope)
    }
    for file in files.staying {
      let entry = Entry(file: file, caching: [("Cache-Control", "no-cache")])
      entries[Array("/\(file.path)".utf8)] = entry
      if file.path == WebFiles.page { entries[Array(Self.page.utf8)] = entry }
    }
  }

  /// Adds its paths.
  func add(to routes: inout HTTPRoutes) {
    let answer: HTTPRoutes.Handler = { request, responder in responder.respond(self.response(to: request)) }
    routes.add(.get, String(Self.page.dropLast()), answer)
    routes.add(.get, Self.page, answer)
    for prefix in [Self.page, Self.files] { routes.add(.get, prefix: prefix, answer) }
  }

  private func response(to request: HTTPRequest) -> HTTPResponse {
    let host = request.headers["Host"]
    var response = answer(to: request, host: host)
    response.headers += [
      ("Content-Security-Policy", policy(host)), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
      ("Cross-Origin-Opener-Policy", "same-origin"),
    ]
    return response
  }

  private func answer(to request: HTTPRequest, host: String?) -> HTTPResponse {
    let path = Array(request.path.utf8)
    guard let entry = entries[path] else { return other(path, host) }
    let file = entry.file
    let selection = HTTPRepresentation(entityTag: file.digest, count: file.bytes.count).selection(for: request)
    let headers = entry.caching + selection.headers
    guard let range = selection.range else { return HTTPResponse(selection.status, headers: headers) }
    let body =
      range.count == file.bytes.count
      ? file.bytes : file.bytes.withUnsafeBytes { .make(UnsafeRawBufferPointer(rebasing: $0[range])) }
    return HTTPResponse(selection.status, headers: [("Content-Type", file.contentType)] + headers, body: body)
  }

  /// The answer for a path that has no file.
  private func other(_ path: [UInt8], _ host: String?) -> HTTPResponse {
    let caching = [("Cache-Control", "no-store")]
    switch path {
    case Array(Self.page.utf8.dropLast()):
      return HTTPResponse(HTTPStatus(rawValue: 308), text: "The page is at \(Self.page).\n", headers: [("Location", Self.page)] + caching)
    case Array("\(Self.page)config.json".utf8):
      return HTTPResponse(
        .ok, text: Self.configuration(settings, origins: origins(of: host)).text(digest: digest), contentType: "application/json",
        headers: caching)
    case _ where path.starts(with: Self.files.utf8) && !path.starts(with: "\(Self.files)\(digest)/".utf8):
      return HTTPResponse(
        .notFound, text: "This worker has the files of version \(digest) only: load the page again.\n", headers: caching)
    default: return HTTPResponse(.notFound, text: "There is nothing at this path.\n", headers: caching)
    }
  }

  private static func configuration(_ settings: FanOutSettings, origins: [String]?) -> WebConfiguration {
    let needsCredential = if case .credential = settings.admission { true } else { false }
    return WebConfiguration(
      devices: DeviceProtocol.path, needsCredential: needsCredential, mediaBase: settings.media?.base,
      environment: settings.environment.rawValue, origins: origins)
  }

  /// The origins of a page at this host that may open the device socket. A browser hides the reason of a refusal from the page.
  private func origins(of host: String?) -> [String] {
    guard let host, Self.isPlain(host) else { return [] }
    let rule = OriginRule(allowed: settings.allowedOrigins)
    return ["http", "https"].map { "\($0)://\(host.lowercased())" }.filter { rule.refusal(of: [$0], host: host) == nil }
  }

  /// What a page may load and connect to. Some browsers do not count a WebSocket of the same host as `'self'`.
  private func policy(_ host: String?) -> String {
    let sockets = host.map { Self.isPlain($0) && !$0.contains("[") ? " ws://\($0) wss://\($0)" : "" } ?? ""
    return "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' blob:\(media); "
      + "media-src 'self' blob:\(media); connect-src 'self'\(sockets); manifest-src 'self'; worker-src 'self'; base-uri 'none'; "
      + "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types carillon"
  }

  /// Whether a host and its port can stand in a policy and an origin. It comes from the client.
  private static func isPlain(_ host: String) -> Bool {
    host.utf8.count <= 262
      && host.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        default: "-.:[]_".utf8.contains(byte)
        }
      }
  }
}
