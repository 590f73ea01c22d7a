import EventLoop
import HTTP

/// Which requests to the admin port are answered: none that a web page may have made.
///
/// A browser on the same machine reaches the port, and its pages come from anywhere. A page whose name was rebound to 127.0.0.1 counts
/// for the browser as one of this server, but its requests have that name in `Host`; other pages' requests have an `Origin`.
struct AdminAccess {
  /// The field of the request that tells of a page.
  enum Field: String, CaseIterable {
    case host, origin
  }

  /// Only programs of this machine reach the server.
  let isLoopback: Bool

  /// The field for which a request is refused; nil when it may pass.
  func refusedField(of request: HTTPRequest) -> Field? {
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
  /// 403, for it is the request that may not be: 421 would ask the client to send it again on another connection.
  var refusal: HTTPResponse {
    switch self {
    case .host: HTTPResponse(.forbidden, text: "Host must be localhost or an address of loopback: that is where this server listens.\n")
    case .origin: HTTPResponse(.forbidden, text: "Origin must have the host of this server: it answers no page of another one.\n")
    }
  }
}
