/// Where a client may go, and its bounds.
public struct HTTPClientConfiguration: Sendable {
  /// Hosts that requests, and redirects, may name.
  public var hosts: HTTPHostRule
  /// Addresses that may be connected to.
  public var addresses = HTTPAddressRule()
  /// Schemes that requests, and redirects, may have. A redirect from https to http is refused in any case.
  public var schemes: Set<HTTPScheme> = [.https]
  /// Requests that are sent and not answered, in all: so many connections there are at most, idle ones included. At least 1.
  public var maximumConnections = 256
  /// The same for one scheme, host and port. With HTTP/2 they share connections.
  public var maximumConnectionsPerHost = 32
  /// Requests at once with those that wait for their turn; one more fails with `tooMany`.
  public var maximumInFlight = 4096
  /// How long a connection without a request is kept to be used again, in milliseconds; rounded up to seconds.
  public var idleMilliseconds = 60_000
  /// A file with the certificates that are trusted, in PEM; nil for those that the system trusts.
  public var certificateFile: String?
  /// What requests say that they come from.
  public var userAgent = "carillon"
  /// Names whose addresses are not looked up.
  public var pinned: [HTTPPinnedHost] = []

  /// Makes the defaults for these hosts.
  public init(hosts: HTTPHostRule) { self.hosts = hosts }

  /// Checks whether a request to this URL would begin. Only the connection shows a name's addresses.
  ///
  /// - Throws: `invalidURL`, `schemeRefused`, `hostRefused` or `addressRefused`.
  public func check(_ url: String) throws(HTTPClientError) { try check(host: try admit(url).host) }

  /// Checks whether each host that is allowed by number could be connected to.
  ///
  /// - Throws: `addressRefused`.
  public func checkHosts() throws(HTTPClientError) { for host in hosts.hosts { try check(host: host) } }

  private func check(host: String) throws(HTTPClientError) {
    guard let kind = addresses.refusal(ofHost: host) else { return }
    throw HTTPClientError(.addressRefused, host: host, "\(host) must not be connected to (\(kind))")
  }

  /// Reads a URL and judges it.
  ///
  /// - Parameter from: the URL that redirects there.
  func admit(_ text: String, from: HTTPURL? = nil) throws(HTTPClientError) -> HTTPURL {
    let via = from.map { ", to which \($0.host) redirects," } ?? ""
    let url: HTTPURL
    do throws(HTTPURL.Failure) { url = try HTTPURL(text) } catch {
      let reason = "\(from.map { "\($0.host) redirects: " } ?? "")the URL cannot be used: \(error)"
      throw HTTPClientError(error.isOfScheme ? .schemeRefused : .invalidURL, host: from?.host, reason)
    }
    guard schemes.contains(url.scheme) else {
      let allowed = schemes.map(\.rawValue).sorted().joined(separator: ", ")
      throw HTTPClientError(.schemeRefused, url, "\(url.origin)\(via) has a scheme that is not allowed: write \(allowed)")
    }
    if from?.scheme == .https, url.scheme == .http {
      throw HTTPClientError(.schemeRefused, url, "\(url.origin)\(via) would leave https for http")
    }
    guard hosts.admits(url) else { throw HTTPClientError(.hostRefused, url, "\(url.origin)\(via) is not among the allowed hosts") }
    return url
  }
}

/// A name with the addresses that it has for one client, whatever the system's resolver says.
public struct HTTPPinnedHost: Sendable, Hashable {
  /// The name as `HTTPHostRule` has it: ASCII, without a port.
  public let host: String
  /// The port of the URLs that it counts for.
  public let port: Int
  /// The addresses, tried in order; IPv6 ones first. They are judged like any others.
  public let addresses: [IPAddress]

  /// Pins a name; nil when it is none, or when there is no address or no such port.
  public init?(host: String, port: Int, addresses: [IPAddress]) {
    guard let authority = try? HTTPAuthority(host[...]), authority.port == nil, !authority.isNumeric, (1...65535).contains(port),
      !addresses.isEmpty
    else { return nil }
    self.host = authority.host
    self.port = port
    self.addresses = addresses
  }

  /// As libcurl reads it.
  var entry: String {
    let list = addresses.map { $0.family == .v6 ? "[\($0)]" : "\($0)" }
    return "\(host):\(port):\(list.joined(separator: ","))"
  }
}
