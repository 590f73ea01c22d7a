public import Cryptography
public import EventLoop

/// Why a WebSocket connection could not be made.
public enum WebSocketClientError: Error, Sendable, CustomStringConvertible {
  /// The URL, as it was given, cannot be used.
  case url(String, HTTPTextFailure)
  /// The certificates of the trusted authorities cannot be used.
  case authorities(TLSError)
  /// The server could not be reached, its certificate is refused, or cut the connection before it answered.
  case connection(EventLoopError)
  /// The server did not answer in time.
  case timedOut(HTTPURL)
  /// The server answered with another status than 101.
  ///
  /// It has the beginning of the body, which gives the reason, and the seconds of `Retry-After`, if the server sent it.
  case refused(HTTPURL, status: Int, body: String, retryAfterSeconds: Int?)
  /// The answer breaks the protocol.
  case invalidResponse(HTTPURL, String)

  /// The failure and its reason in one line.
  public var description: String {
    switch self {
    case .url(let text, let failure): "'\(text.prefix(300).description.withoutLineBreaks)' cannot be used: \(failure)"
    case .authorities(let error): "the trusted authorities cannot be used: \(error)"
    case .connection(let error): error.description
    case .timedOut(let url): "\(url) did not answer in time"
    case .refused(let url, let status, let body, _):
      "\(url) refused the WebSocket connection: \(HTTPStatus(rawValue: status)): \(body.withoutLineBreaks)"
    case .invalidResponse(let url, let reason): "\(url) does not answer as a WebSocket server: \(reason)"
    }
  }
}
