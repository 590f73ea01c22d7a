/// The limits and rules of WebSocket connections. Times are milliseconds, and are noticed up to one sweep late.
public struct WebSocketConfiguration: Sendable {
  /// The supported subprotocols, in order of preference. Unless it is empty, a client must offer one of them.
  public var subprotocols: [String] = []
  /// The most bytes of a message with all its fragments. Beyond it the connection is closed.
  public var maximumMessageBytes = 65_536
  /// The close code for a message that is too large.
  public var tooBigCode = WebSocketCloseCode.messageTooBig
  /// The most bytes that may wait for a slow peer. It must hold the largest frame.
  public var maximumOutboxBytes = 1_048_576
  /// The end for a full outbox. The reason of an end has at most 123 bytes.
  public var outboxFull = WebSocketEnd(.outboxFull, .tryAgainLater, "the connection is too slow")
  /// The end for too many frames, which the handler counts.
  public var tooManyFrames = WebSocketEnd(.tooManyFrames, .policyViolation, "too many frames")
  /// After this time without a frame the peer gets a ping. The time is random from three quarters of it to all of it; 0 for never.
  public var pingMilliseconds = 30_000
  /// How long after a ping any frame must come.
  public var pongMilliseconds = 10_000
  /// The end for a missing answer to a ping.
  public var pingTimeout = WebSocketEnd(.pingTimeout, .goingAway, "no answer to a ping")
  /// How long a peer may take to answer a close frame, and to close the connection after it.
  public var closeMilliseconds = 5_000
  /// Bytes that are read and dropped after both close frames, or after an error. A peer that sends more is reset a second later. During the
  /// wait for its close frame one message more is read, since the peer may be within it.
  var closeBytes = 16_384

  /// The defaults.
  public init() {}
}
