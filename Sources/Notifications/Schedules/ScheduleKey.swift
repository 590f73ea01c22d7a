/// The name of a schedule: the application, the target and the request's identifier.
///
/// The key of a record contains the three names in this order, separated by line feeds. None of them can contain a line feed.
public struct ScheduleKey: Sendable, Hashable {
  /// The application.
  public let application: Name
  /// The target: `device:` and the token in lower case, or `user:` and the id.
  public let target: Name
  /// The collapse id, or without one the apns-id in lower case.
  public let identifier: Name

  /// Creates a key; nil if a name breaks the rules of a request.
  public init?(application: Name, target: Name, identifier: Name) {
    guard application.withBytes({ ApplicationTopic.isValid($0) }), target.withBytes(Self.isTarget),
      identifier.withBytes({ !$0.isEmpty && $0.count <= RequestLimits.identifierBytes && $0.isPlainText })
    else { return nil }
    (self.application, self.target, self.identifier) = (application, target, identifier)
  }

  /// Reads the key of a record; nil if it is malformed.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    let parts = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard parts.count == 3, bytes.count <= Self.maximumBytes else { return nil }
    let names = parts.map { UnsafeRawBufferPointer(rebasing: $0) }
    // `Name` would replace bytes that are not UTF-8, and the key would differ.
    guard names.allSatisfy({ String(validating: $0, as: UTF8.self) != nil }) else { return nil }
    self.init(application: Name(names[0]), target: Name(names[1]), identifier: Name(names[2]))
  }

  /// The longest key, in bytes.
  public static var maximumBytes: Int { RequestLimits.topicBytes + 7 + DeviceToken.longest + RequestLimits.identifierBytes + 2 }

  /// The bytes of the key.
  public var bytes: [UInt8] {
    let separator = [UInt8(ascii: "\n")]
    return Array(application.utf8) + separator + Array(target.utf8) + separator + Array(identifier.utf8)
  }

  /// Whether a text is a target as ``Target/name`` writes it.
  private static func isTarget(_ text: UnsafeRawBufferPointer) -> Bool { Target(text)?.name.equals(text) ?? false }
}
