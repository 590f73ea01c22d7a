/// The rules of `apns-topic`: the application's bundle id, with a suffix for some push types.
public enum ApplicationTopic {
  /// Whether a byte is a letter, digit, full stop, hyphen or underscore.
  public static func isNameByte(_ byte: UInt8) -> Bool {
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

  /// Returns the bundle id of a topic, without the push type's suffix.
  ///
  /// It returns `nil` if the topic lacks the suffix, or is nothing but the suffix.
  static func application(of topic: UnsafeRawBufferPointer, for type: PushType) -> UnsafeRawBufferPointer? {
    let suffix = type.topicSuffix
    guard suffix.utf8CodeUnitCount > 0 else { return topic }
    guard topic.ends(with: suffix), topic.count > suffix.utf8CodeUnitCount else { return nil }
    return UnsafeRawBufferPointer(rebasing: topic[0..<topic.count - suffix.utf8CodeUnitCount])
  }
}
