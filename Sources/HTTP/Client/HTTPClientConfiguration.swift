/// The rules and limits of a client.
public struct HTTPClientConfiguration: Sendable {
  /// The allowed hosts of requests and redirects.
  var hosts: HTTPHostRule
  /// The allowed addresses.
  public var addresses = HTTPAddressRule()
  /// The allowed schemes of requests and redirects. A redirect from https to http is always refused.
  public var schemes: Set<HTTPScheme> = [.https]
  /// The most requests that are sent and not answered, and so the most connections, idle ones included. At least 1.
  public var maximumConnections = 256
  /// The same for one scheme, host and port. With HTTP/2 they share connections.
  public var maximumConnectionsPerHost = 32
  /// The most requests, with those that wait for their turn. One more fails with `tooMany`.
  public var maximumInFlight = 4096
  /// A PEM file with the trusted certificates; nil for those that the system trusts.
  public var certificateFile: String?
  /// Names whose addresses are not looked up, in libcurl's form: `HOST:PORT:ADDRESS,ADDRESS`. The rules for addresses apply to them too.
  var pinned: [String] = []

  /// Makes the defaults for these hosts.
  public init(hosts: HTTPHostRule) { self.hosts = hosts }

  /// Checks whether a request to this URL would begin. Only the connection shows a name's addresses.
  ///
  /// - Throws: `invalidURL`, `schemeRefused`, `hostRefused` or `addressRefused`.
  public func check(_ url: String) throws(HTTPClientError) { try check(host: try admit(url).host) }

  /// Checks whether each allowed host that is an address may be connected to.
  ///
  /// - Throws: `addressRefused`.
  public func checkHosts() throws(HTTPClientError) { for host in hosts.hosts { try check(host: host) } }

  private func check(host: String) throws(HTTPClientError) {
    guard let kind = addresses.refusal(ofHost: host) else { return }
    throw HTTPClientError(.addressRefused, "\(host) must not be connected to (\(kind))")
  }

  /// Reads a URL and judges it.
  ///
  /// - Parameter from: the URL that redirects to it.
  func admit(_ text: String, from: HTTPURL? = nil) throws(HTTPClientError) -> HTTPURL {
    let via = from.map { ", to which \($0.host) redirects," } ?? ""
    let url: HTTPURL
    do throws(HTTPTextFailure) { url = try HTTPURL(text) } catch {
      let reason = "\(from.map { "\($0.host) redirects: " } ?? "")the URL cannot be used: \(error)"
      throw HTTPClientError(error.isOfScheme ? .schemeRefused : .invalidURL, reason)
    }
    guard schemes.contains(url.scheme) else {
      let allowed = schemes.map(\.rawValue).sorted().joined(separator: ", ")
      throw HTTPClientError(.schemeRefused, "\(url.origin)\(via) has a scheme that is not allowed: write \(allowed)")
    }
    if from?.scheme == .https, url.scheme == .http {
      throw HTTPClientError(.schemeRefused, "\(url.origin)\(via) would leave https for http")
    }
    guard hosts.admits(url) else { throw HTTPClientError(.hostRefused, "\(url.origin)\(via) is not among the allowed hosts") }
    return url
  }
}
