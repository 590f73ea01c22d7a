/// How a WebSocket connection ended.
public struct WebSocketEnd: Error, Sendable, Hashable, CustomStringConvertible {
  /// The causes; the raw values are for metrics and logs.
  public enum Cause: String, Sendable, CaseIterable {
    /// The peer closed.
    case peerClosed = "peer-closed"
    /// This side closed, and the peer agreed.
    case closed
    /// This side closed, and the peer did not answer in time, or cut the connection.
    case closeUnanswered = "close-unanswered"
    /// The peer broke the protocol.
    case protocolViolation = "protocol-violation"
    /// The peer sent a text that is not UTF-8.
    case invalidText = "invalid-text"
    /// The peer sent a message beyond the limit.
    case messageTooBig = "message-too-big"
    /// The peer sent more frames than the handler allows.
    case tooManyFrames = "too-many-frames"
    /// The peer reads too slowly, and its outbox is full.
    case outboxFull = "outbox-full"
    /// The peer did not answer a ping.
    case pingTimeout = "ping-timeout"
    /// This side cut the connection.
    case aborted
    /// The connection broke, or the peer cut it.
    case connectionLost = "connection-lost"
  }

  /// The cause.
  public var cause: Cause
  /// The code of the peer's close frame if the peer closed first, otherwise this side's; 1006 if there was none.
  public var code: WebSocketCloseCode
  /// The reason with the code.
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
