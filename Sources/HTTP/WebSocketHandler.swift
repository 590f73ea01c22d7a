/// What happens on one WebSocket connection; called on its loop.
///
/// The connection holds its handler until the end. Bytes are valid during a call only. The handler may send, close or abort in any call.
public protocol WebSocketHandler: AnyObject {
  /// The connection stands; called once, first.
  func webSocketOpened(_ connection: WebSocketConnection)
  /// A frame begins: of a message, a fragment of one, or a control frame.
  ///
  /// - Returns: false when it is one too many: the connection is closed with the configured code, and nothing more of the peer is read.
  func webSocketTakesFrame() -> Bool
  /// A whole text message, valid UTF-8.
  func webSocketReceived(text: UnsafeRawBufferPointer)
  /// A whole binary message.
  func webSocketReceived(binary: UnsafeRawBufferPointer)
  /// All that was sent has gone to the kernel.
  func webSocketDrained()
  /// The connection is over; called exactly once, last, and never inside a call of the connection.
  ///
  /// It comes at once when the peer closes, breaks the rules, is too slow or is gone; after `close` it comes when the peer has agreed,
  /// or its time is over.
  func webSocketEnded(_ end: WebSocketEnd)
}

extension WebSocketHandler {
  /// Takes any number of frames.
  public func webSocketTakesFrame() -> Bool { true }
  /// Does nothing.
  public func webSocketDrained() {}
}
