import EventLoop
public import HTTP

/// Refuses requests that a web page may have made, at a port that asks for no credential.
///
/// A browser on the same machine reaches the port, and its pages come from anywhere. If a page's name was rebound to 127.0.0.1, the browser
/// treats the server as the page's own, but `Host` contains that name. Requests of other pages have an `Origin`.
public struct AdminAccess {
  /// The header field that gives the page away.
  public enum Field: String, CaseIterable, Sendable {
    /// The name of another host.
    case host
    /// Another server's page.
    case origin
  }

  /// Whether only programs of this machine reach the server.
  let isLoopback: Bool

  /// Makes the rule of a server.
  public init(isLoopback: Bool) { self.isLoopback = isLoopback }

  /// The field for which a request is refused; nil if it may pass.
  public func refusedField(of request: HTTPRequest) -> Field? {
    let host = request.headers["Host"].map(Self.host)
    if isLoopback, let host, !Self.isLoopback(host) { return .host }
    let isOfSameHost = request.headers.values(of: "Origin").allSatisfy { origin in
      origin.split(separator: "://", maxSplits: 1).last.map { Self.host(String($0)) } == host
    }
    return isOfSameHost ? nil : .origin
  }

  /// The host of `HOST[:PORT]`, in lower case.
  private static func host(_ authority: String) -> String {
    let end = authority.hasPrefix("[") ? authority.firstIndex(of: "]") : authority.firstIndex(of: ":")
    return authority[..<(end ?? authority.endIndex)].drop { $0 == "[" }.lowercased()
  }

  private static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host.hasSuffix(".localhost") || SocketAddress(host: host, port: 0).isLoopback
  }
}

extension AdminAccess.Field {
  /// 403, because the request itself is forbidden. With 421 the client would repeat it on another connection.
  var refusal: HTTPResponse { HTTPResponse(.forbidden, text: rule + "\n") }

  /// The rule that the request breaks.
  public var rule: String {
    switch self {
    case .host: "Host must be localhost or an address of loopback: that is where this server listens."
    case .origin: "Origin must have the host of this server: it does not answer other servers' pages."
    }
  }
}
