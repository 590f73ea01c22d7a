/// The bounds and rules of WebSocket connections. Times are milliseconds, and are noticed up to one sweep late.
public struct WebSocketConfiguration: Sendable {
  /// The subprotocols spoken here; unless empty, a client must offer one of them. Its order decides.
  public var subprotocols: [String] = []
  /// Bytes of a message, all its fragments together; beyond it the connection is closed.
  public var maximumMessageBytes = 65_536
  /// What a peer is told whose message is larger.
  public var tooBigCode = WebSocketCloseCode.messageTooBig
  /// Bytes that may wait for a slow peer; must hold the largest frame that is sent.
  public var maximumOutboxBytes = 1_048_576
  /// What a peer is told whose outbox is full.
  public var outboxFullCode = WebSocketCloseCode.tryAgainLater
  /// What it is told with the code, at most 123 bytes.
  public var outboxFullReason = "the connection is too slow"
  /// What a peer is told whose frames are too many, as the handler counts them.
  public var tooManyFramesCode = WebSocketCloseCode.policyViolation
  /// What it is told with the code, at most 123 bytes.
  public var tooManyFramesReason = "too many frames"
  /// After this long without a frame the peer is sent a ping: between three quarters of it and the whole, by lot; 0 for never.
  public var pingMilliseconds = 30_000
  /// How long after a ping any frame must come.
  public var pongMilliseconds = 10_000
  /// What a peer is told that does not answer a ping.
  public var pingTimeoutCode = WebSocketCloseCode.goingAway
  /// What it is told with the code, at most 123 bytes.
  public var pingTimeoutReason = "no answer to a ping"
  /// How long a peer may take to answer a close frame, and to close the connection after it.
  public var closeMilliseconds = 5_000
  /// Bytes that are read, and dropped, of a peer after both close frames, or after an error. One that sends more is reset a second later.
  /// While its close frame is awaited one message more is read, for a peer that was in the midst of it.
  public var closeBytes = 16_384

  /// The defaults.
  public init() {}
}
