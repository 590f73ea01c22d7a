/// How a WebSocket connection came to its end.
public struct WebSocketEnd: Sendable, Hashable, CustomStringConvertible {
  /// What ended it; the raw values are for metrics and logs.
  public enum Cause: String, Sendable, CaseIterable {
    /// The peer said it would close.
    case peerClosed = "peer-closed"
    /// This side closed, and the peer agreed.
    case closed
    /// This side closed, and the peer did not answer in time, or cut the connection.
    case closeUnanswered = "close-unanswered"
    /// The peer broke the protocol.
    case protocolViolation = "protocol-violation"
    /// The peer sent a text that is not UTF-8.
    case invalidText = "invalid-text"
    /// The peer sent a message beyond the bound.
    case messageTooBig = "message-too-big"
    /// The peer sent more frames than the handler takes.
    case tooManyFrames = "too-many-frames"
    /// The peer reads too slowly: what waited for it came to the outbox' bound.
    case outboxFull = "outbox-full"
    /// The peer answered no ping.
    case pingTimeout = "ping-timeout"
    /// This side cut the connection.
    case aborted
    /// The connection broke, or the peer cut it.
    case connectionLost = "connection-lost"
  }

  /// What ended it.
  public var cause: Cause
  /// The code of the close frame that the peer sent, where it was the first to close; else the one that this side sent; 1006 when
  /// there was none.
  public var code: WebSocketCloseCode
  /// What was said with the code.
  public var reason: String

  /// Makes an end from its parts.
  public init(_ cause: Cause, _ code: WebSocketCloseCode, _ reason: String = "") {
    self.cause = cause
    self.code = code
    self.reason = reason
  }

  /// Cause, code and reason in one line.
  public var description: String { reason.isEmpty ? "\(cause.rawValue) (\(code))" : "\(cause.rawValue) (\(code)): \(reason)" }
}
