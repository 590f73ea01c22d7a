/// The events of one WebSocket connection; called on its loop.
///
/// The connection holds its handler until the end. Bytes are only valid during a call. The handler may send, close or abort in any call.
public protocol WebSocketHandler: AnyObject {
  /// The connection is open; called once, first.
  func webSocketOpened(_ connection: WebSocketConnection)
  /// A frame begins: of a message, a fragment of one, or a control frame.
  ///
  /// - Returns: false for one frame too many. The connection is closed with the configured code, and nothing more of the peer is read.
  func webSocketTakesFrame() -> Bool
  /// A whole text message, valid UTF-8.
  func webSocketReceived(text: UnsafeRawBufferPointer)
  /// A whole binary message.
  func webSocketReceived(binary: UnsafeRawBufferPointer)
  /// The connection has ended. Called exactly once, last, and never inside a call of the connection.
  ///
  /// It comes at once after the peer closes, breaks the rules, is too slow or is gone. After `close` it comes when the peer has agreed, or
  /// at the time limit.
  func webSocketEnded(_ end: WebSocketEnd)
}

extension WebSocketHandler {
  /// Allows any number of frames.
  public func webSocketTakesFrame() -> Bool { true }
}
