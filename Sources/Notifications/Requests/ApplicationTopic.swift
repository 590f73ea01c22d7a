/// The rules of `apns-topic`: the application's bundle id, and a suffix that some push types need.
enum ApplicationTopic {
  /// Letters, digits, full stop, hyphen, underscore.
  static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  static func isValid(_ topic: UnsafeRawBufferPointer) -> Bool {
    !topic.isEmpty && topic.count <= RequestLimits.topicBytes && topic.allSatisfy(isNameByte)
  }

  /// The bundle id within a topic: what is left without the push type's suffix; `nil` when that is missing, or stands alone.
  static func application(of topic: UnsafeRawBufferPointer, for type: PushType) -> UnsafeRawBufferPointer? {
    let suffix = type.topicSuffix
    guard suffix.utf8CodeUnitCount > 0 else { return topic }
    guard topic.ends(with: suffix), topic.count > suffix.utf8CodeUnitCount else { return nil }
    return UnsafeRawBufferPointer(rebasing: topic[0..<topic.count - suffix.utf8CodeUnitCount])
  }
}
