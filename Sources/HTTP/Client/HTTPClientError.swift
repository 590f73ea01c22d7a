/// Why a request of an HTTP client has no response.
public struct HTTPClientError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The failures that a caller may want to tell apart.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// The URL, or one that a redirect leads to, is not of a form that is read here.
    case invalidURL
    /// A header field of the request has a name or a value that cannot be sent.
    case invalidHeader
    /// The URL's scheme is not allowed.
    case schemeRefused
    /// The URL's host is not on the list of those that are allowed.
    case hostRefused
    /// The host has an address that must not be connected to.
    case addressRefused
    /// As many requests are in flight as the client takes.
    case tooMany

    /// The host's name has no address.
    case unresolved
    /// No address of the host takes the connection.
    case connectFailed
    /// No TLS connection came about: the certificate is not trusted or not the host's, or the versions do not fit.
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
    /// The response redirects once more than the request allows.
    case tooManyRedirects
    /// The caller, or the client's end, stopped it.
    case canceled
  }

  /// The kind of failure.
  public var code: Code
  /// What it was about; nil where the URL could not be read.
  public var host: String?
  /// The reason in one line: with host and rule, never with a query, a header field's value or a body.
  public var message: String

  init(_ code: Code, host: String?, _ message: String) {
    self.code = code
    self.host = host
    self.message = message
  }

  init(_ code: Code, _ url: HTTPURL, _ message: String) { self.init(code, host: url.host, message) }

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
