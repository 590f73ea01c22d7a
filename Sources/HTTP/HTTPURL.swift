public import EventLoop

/// A URL of a server, taken apart strictly (RFC 3986) and written again from its parts.
///
/// Every client connects to the parts and never to the text. libcurl gets `description`, so it cannot read another host from a text than
/// the one that the rules have judged.
public struct HTTPURL: Sendable, Hashable, CustomStringConvertible {
  private static let maximumBytes = 8192

  /// The protocol.
  public let scheme: HTTPScheme
  /// A name in lower case without a dot at its end, or a number: IPv6 without brackets.
  let host: String
  /// Whether the host is an address and not a name.
  let isNumeric: Bool
  /// 1 to 65535; the scheme's where the URL has none.
  let port: Int
  /// Path and query as they stand on a request line; at least `/`.
  public let target: String

  /// Reads a URL of the form `SCHEME://HOST[:PORT][/PATH][?QUERY]`.
  ///
  /// A fragment is only for the caller and is never sent (RFC 9110, section 7.1). A WebSocket URL must have none (RFC 6455, section 3).
  public init(_ text: String) throws(HTTPTextFailure) {
    guard text.utf8.count <= Self.maximumBytes else { throw HTTPTextFailure("it is longer than \(Self.maximumBytes) bytes") }
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw HTTPTextFailure(
        "spaces, control and non-ASCII characters must be percent-encoded, and an international name stand in its xn-- form")
    }
    guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else {
      throw HTTPTextFailure("it must begin with a scheme and ://")
    }
    guard let scheme = HTTPScheme(rawValue: text[..<colon].lowercased()) else {
      throw HTTPTextFailure("its scheme is none of https, http, wss and ws", isOfScheme: true)
    }
    self.scheme = scheme
    let afterScheme = text[text.index(colon, offsetBy: 3)...]
    let rest = afterScheme.prefix { $0 != "#" }
    if scheme.isWebSocket, rest.endIndex != afterScheme.endIndex { throw HTTPTextFailure("a WebSocket URL has no fragment (#)") }
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority = try HTTPAuthority(rest[..<end])
    host = authority.host
    isNumeric = authority.isNumeric
    port = authority.port ?? scheme.port
    target = rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
  }

  /// Host and port.
  public var address: SocketAddress { SocketAddress(host: host, port: port) }

  /// Scheme, host and port: what shares connections, and what credentials belong to (RFC 6454, section 4).
  var origin: String { "\(scheme.rawValue)://\(address)" }

  /// The one way to write this URL: without the port of its scheme.
  public var description: String {
    guard port == scheme.port else { return origin + target }
    return "\(scheme.rawValue)://\(host.contains(":") ? "[\(host)]" : host)\(target)"
  }
}

/// How a URL is reached.
public enum HTTPScheme: String, Sendable, Hashable {
  /// HTTP over TLS.
  case https
  /// HTTP that everybody on the way can read and change.
  case http
  /// WebSocket over TLS.
  case wss
  /// WebSocket that everybody on the way can read and change.
  case ws

  /// Whether it is WebSocket, with or without TLS.
  public var isWebSocket: Bool { self == .ws || self == .wss }

  /// The port where a URL has none.
  var port: Int { self == .https || self == .wss ? 443 : 80 }
}
