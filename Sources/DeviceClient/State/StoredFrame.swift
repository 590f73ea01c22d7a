internal import JSON
internal import Notifications

/// The bytes of a notification's frame in the database: the frame as the protocol has it, with its payload and trigger byte for byte.
enum StoredFrame {
  /// The bytes of a frame.
  static func bytes(_ frame: NotifyFrame) -> [UInt8] {
    var text = JSONWriter(capacity: frame.payload.count + 512)
    frame.write(to: &text)
    return text.withUnsafeBytes { Array($0) }
  }

  /// Reads a frame by the protocol's own rules; nil if the bytes are none.
  static func frame(_ bytes: [UInt8]) -> NotifyFrame? {
    guard case .notify(let frame)? = bytes.withUnsafeBytes({ try? ServerFrame($0) }) else { return nil }
    return frame
  }
}
