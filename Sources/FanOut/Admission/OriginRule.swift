import EventLoop
import HTTP
import JSON

/// Which web pages may open the device socket. A value.
///
/// A browser sends the origin of its page in `Origin` (RFC 6454, section 7). The check stops a page from connecting in the name of the
/// person who views it. Some native clients send the field too: React Native sends the server's own origin.
struct OriginRule {
  /// The allowed origins in lower case; `*` for any.
  let allowed: Set<String>

  /// Checks a request; answers nil if it may pass, else a line that names the setting that would admit it.
  ///
  /// - Parameters:
  ///   - origins: the values of `Origin`; empty for a client that is not a browser.
  ///   - host: the value of `Host`.
  func refusal(of origins: [String], host: String?) -> String? {
    guard !allowed.contains("*"), let origin = origins.first(where: { !admits($0.lowercased(), host: host) }) else { return nil }
    if origin == "null" { return "A page without an origin may not connect: only --allowed-origins '*' admits it.\n" }
    let shown = PrintedText.echo(origin)
    return "The origin \(shown) may not connect: --allowed-origins \(shown) admits it.\n"
  }

  private func admits(_ origin: String, host: String?) -> Bool {
    allowed.contains(origin) || host.map { Self.isOwn(origin, host: $0.lowercased()) } ?? false
  }

  /// Whether an origin is the server itself, as the client addresses it.
  ///
  /// Only addresses and `localhost` count. A page may have rebound any other name to this server.
  private static func isOwn(_ origin: String, host: String) -> Bool {
    let parts = origin.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let port = ports[String(parts[0])], let own = address(host, port: port) else { return false }
    return address(String(parts[1]), port: port) == own && (own.host == "localhost" || IPAddress(own.host) != nil)
  }

  private static let ports = ["http": 80, "https": 443]

  /// Host and port of an authority, with addresses in one spelling.
  private static func address(_ authority: String, port: Int) -> SocketAddress? {
    guard var address = SocketAddress(authority) ?? SocketAddress("\(authority):\(port)") else { return nil }
    if let number = IPAddress(address.host) { address.host = "\(number)" }
    return address
  }
}

/// The lines about refused pages that were logged: each once, and a bounded number of them, since anybody may send any origin. A value.
struct ToldRefusals {
  static let maximum = 64
  private var told: Set<String> = []

  /// Notes a line; answers whether to log it.
  mutating func isNew(_ refusal: String) -> Bool { told.count < Self.maximum && told.insert(refusal).inserted }
}
