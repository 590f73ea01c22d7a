/// A URL that a client may be sent to, taken apart strictly (RFC 3986) and written again from its parts.
///
/// libcurl gets the text that is written here, so that it cannot read another host from it than the rules have judged.
struct HTTPClientURL: Hashable {
  private static let maximumBytes = 8192

  let scheme: HTTPScheme
  /// A name in lower case without a dot at its end, or a number: IPv6 without brackets.
  let host: String
  /// Whether the host is an address and not a name.
  let isNumeric: Bool
  let port: Int
  /// Path and query; at least `/`. A fragment is the caller's alone and is never sent (RFC 9110, section 7.1).
  let target: String

  init(_ text: String) throws(HTTPClientError) {
    func failure(_ reason: String) -> HTTPClientError { HTTPClientError(.invalidURL, host: nil, "the URL cannot be used: \(reason)") }
    guard text.utf8.count <= Self.maximumBytes else { throw failure("it is longer than \(Self.maximumBytes) bytes") }
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw failure("spaces, control and non-ASCII characters must be percent-encoded, and an international name stand in its xn-- form")
    }
    guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else { throw failure("it must begin with https://") }
    guard let scheme = HTTPScheme(rawValue: text[..<colon].lowercased()) else {
      throw HTTPClientError(.schemeRefused, host: nil, "the URL's scheme is neither https nor http")
    }
    let rest = text[text.index(colon, offsetBy: 3)...].prefix { $0 != "#" }
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority: HTTPAuthority
    do throws(HTTPAuthority.Failure) { authority = try HTTPAuthority(rest[..<end]) } catch { throw failure(error.reason) }
    self.scheme = scheme
    host = authority.host
    isNumeric = authority.isNumeric
    port = authority.port ?? scheme.port
    target = rest[end...].hasPrefix("/") ? String(rest[end...]) : "/" + rest[end...]
  }

  private var bracketed: String { host.contains(":") ? "[\(host)]" : host }

  /// Scheme, host and port: what shares connections, and what credentials belong to (RFC 6454, section 4).
  var origin: String { "\(scheme.rawValue)://\(bracketed):\(port)" }

  /// The URL as libcurl gets it.
  var text: String { "\(port == scheme.port ? "\(scheme.rawValue)://\(bracketed)" : origin)\(target)" }
}

/// How a URL is reached.
public enum HTTPScheme: String, Sendable, Hashable {
  /// HTTP over TLS.
  case https
  /// HTTP that everybody on the way can read and change.
  case http

  /// The port where a URL has none.
  var port: Int { self == .https ? 443 : 80 }
}
