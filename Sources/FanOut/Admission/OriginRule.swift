import EventLoop
import HTTP
import JSON

/// Which pages may open the device socket: a value.
///
/// A browser names the origin of its page in `Origin` (RFC 6454, section 7), so that no page speaks for the person who looks at it. Some
/// native clients send the field, too: React Native's names the server that it connects to.
struct OriginRule {
  /// The origins that are listed, in lower case; `*` for any.
  let allowed: Set<String>

  /// Why a request is refused, as a line that says what would admit it; nil: it may pass.
  ///
  /// - Parameters:
  ///   - origins: the values of `Origin`; none for a client that is no browser.
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

  /// Whether an origin is the server itself, as the client has addressed it.
  ///
  /// That counts for an address and for `localhost`. Any other name may have been rebound to this server, by a page that has it as its own.
  private static func isOwn(_ origin: String, host: String) -> Bool {
    let parts = origin.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let port = ports[String(parts[0])], let own = address(host, port: port) else { return false }
    return address(String(parts[1]), port: port) == own && (own.host == "localhost" || IPAddress(own.host) != nil)
  }

  private static let ports = ["http": 80, "https": 443]

  /// Host and port of an authority, the host in the one form that addresses have.
  private static func address(_ authority: String, port: Int) -> SocketAddress? {
    guard var address = SocketAddress(authority) ?? SocketAddress("\(authority):\(port)") else { return nil }
    if let number = IPAddress(address.host) { address.host = "\(number)" }
    return address
  }
}
