/// The hosts and ports that a client may use: an allow-list of names.
///
/// - `api.example.com` is that host, at the port of the URL's scheme (443 for https, 80 for http).
/// - `api.example.com:8443` is that host at that port.
/// - `*.example.com` is every name below `example.com`, at any depth, and not `example.com` itself.
/// - `192.0.2.1` and `[2001:db8::1]` are hosts by number, in the form of URLs.
///
/// Names are ASCII. Case and one dot at the end are ignored. International names have their `xn--` form.
public struct HTTPHostRule: Sendable, Hashable {
  private struct Pattern: Sendable, Hashable {
    /// A name or a number. For names below it, the part after the asterisk with the dot.
    let host: String
    let isBelow: Bool
    /// Nil for the port of the URL's scheme.
    let port: Int?

    func admits(_ url: HTTPURL) -> Bool {
      guard url.port == port ?? url.scheme.port else { return false }
      return isBelow ? !url.isNumeric && url.host.hasSuffix(host) : url.host == host
    }
  }

  /// Nil if any host is allowed.
  private let patterns: [Pattern]?

  /// Allows any host: for URLs of a trusted sender.
  public static let any = HTTPHostRule()

  private init() { patterns = nil }

  /// Reads the patterns. Without any, no host is allowed.
  public init(_ patterns: [String]) throws(HTTPTextFailure) {
    var read: [Pattern] = []
    for pattern in patterns { read.append(try Self.pattern(pattern)) }
    self.patterns = read
  }

  private static func pattern(_ text: String) throws(HTTPTextFailure) -> Pattern {
    func failure(_ reason: String) -> HTTPTextFailure {
      HTTPTextFailure("'\(text.prefix(300).description.withoutLineBreaks)' is no pattern for hosts: \(reason)")
    }
    let isBelow = text.hasPrefix("*.")
    let authority: HTTPAuthority
    do throws(HTTPTextFailure) { authority = try HTTPAuthority(isBelow ? text.dropFirst(2) : text[...]) } catch {
      throw failure(error.description)
    }
    if isBelow {
      if authority.isNumeric { throw failure("an asterisk stands before a name only") }
      if !authority.host.contains(".") { throw failure("an asterisk before '\(authority.host)' would admit a whole top-level domain") }
    }
    return Pattern(host: isBelow ? ".\(authority.host)" : authority.host, isBelow: isBelow, port: authority.port)
  }

  /// The hosts that are allowed one by one: names and numbers in the form of URLs.
  var hosts: [String] { (patterns ?? []).filter { !$0.isBelow }.map(\.host) }

  /// Whether requests to this URL's host and port are allowed.
  func admits(_ url: HTTPURL) -> Bool { patterns?.contains { $0.admits(url) } ?? true }
}
