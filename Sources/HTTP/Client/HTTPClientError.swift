/// Why a request of an HTTP client has no response.
public struct HTTPClientError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The failures that a caller may have to distinguish.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// The URL, or one of a redirect, has an unsupported form.
    case invalidURL
    /// A header field of the request has a name or a value that cannot be sent.
    case invalidHeader
    /// The URL's scheme is not allowed.
    case schemeRefused
    /// The URL's host is not among the allowed ones.
    case hostRefused
    /// The host has an address that is not allowed.
    case addressRefused
    /// The client has the maximum of running requests.
    case tooMany

    /// The host's name has no address.
    case unresolved
    /// No address of the host accepts the connection.
    case connectFailed
    /// TLS failed: the certificate is not trusted or not the host's, or the versions do not match.
    case tlsFailed
    /// The connection was lost before the response began.
    case connectionLost
    /// A time limit passed first.
    case timedOut
    /// The peer does not speak HTTP.
    case protocolError

    /// The response's header fields have more bytes than the request allows.
    case headersTooLarge
    /// The response's body has more bytes than the request allows.
    case bodyTooLarge
    /// The connection was lost in the middle of the body.
    case truncated
    /// The response has one redirect more than the request allows.
    case tooManyRedirects
    /// The caller, or the client's end, stopped it.
    case canceled
  }

  /// The kind of failure.
  public var code: Code
  /// The reason in one line. It has the host and the rule, but never a query, a header field's value or a body.
  public var message: String

  init(_ code: Code, _ message: String) { (self.code, self.message) = (code, message) }

  /// Whether the same request may succeed later without a change by the user.
  public var isRetriable: Bool {
    switch code {
    case .tooMany, .unresolved, .connectFailed, .connectionLost, .timedOut, .truncated: true
    case .invalidURL, .invalidHeader, .schemeRefused, .hostRefused, .addressRefused, .tlsFailed, .protocolError, .headersTooLarge,
      .bodyTooLarge, .tooManyRedirects, .canceled:
      false
    }
  }

  /// The message.
  public var description: String { message }
}
