public import HTTP

extension WebSocketFrame {
  /// A text message.
  public static func text(_ text: String) -> WebSocketFrame { .text(count: text.utf8.count) { $0.copyBytes(from: text.utf8) } }
}
