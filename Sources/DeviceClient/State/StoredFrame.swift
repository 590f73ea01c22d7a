internal import JSON
internal import Notifications

/// The bytes of a notification's frame in the database: the frame as the protocol has it, with its payload and trigger byte for byte.
enum StoredFrame {
  /// The bytes of a frame.
  static func bytes(_ frame: NotifyFrame) -> [UInt8] {
    var text = JSONWriter(capacity: frame.payload.count + 512)
    text.openObject()
    text.member("type", ServerFrameType.notify.rawValue)
    text.key("delivery")
    text.integer(frame.delivery)
    text.member("id", frame.id)
    text.member("identifier", frame.identifier)
    text.member("revision", frame.revision)
    text.member("expiration", frame.expiration)
    text.member("priority", frame.priority)
    text.member("pushType", frame.pushType)
    if let presentation = frame.presentation {
      text.key("presentation")
      presentation.write(to: &text)
    }
    if let level = frame.interruptionLevel { text.member("interruptionLevel", word: level.word) }
    if let category = frame.category {
      text.key("category")
      category.write(to: &text)
    }
    if var trigger = frame.trigger { trigger.withUTF8 { text.member("trigger", raw: UnsafeRawBufferPointer($0)) } }
    if let traceparent = frame.traceparent { text.member("traceparent", traceparent) }
    if !frame.attachments.isEmpty {
      text.key("attachments")
      JSONValue.array(frame.attachments.map(\.object)).write(to: &text)
    }
    frame.payload.withUnsafeBytes { text.member("payload", raw: $0) }
    // A notification without a receipt came without one, and an empty one would not be read again.
    if !frame.receipt.isEmpty { text.member("receipt", frame.receipt) }
    text.closeObject()
    return text.withUnsafeBytes { Array($0) }
  }

  /// Reads a frame by the protocol's own rules; nil if the bytes are none.
  static func frame(_ bytes: [UInt8]) -> NotifyFrame? {
    guard case .notify(let frame)? = bytes.withUnsafeBytes({ try? ServerFrame($0) }) else { return nil }
    return frame
  }
}
