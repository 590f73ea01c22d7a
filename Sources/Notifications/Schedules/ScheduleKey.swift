/// What names one schedule: the application, the target and the request's identifier.
///
/// As the key of a record the three stand one behind the other, with a line feed between them, which none of them can have.
public struct ScheduleKey: Sendable, Hashable {
  /// The application.
  public let application: Name
  /// The target: `device:` and the token in lower case, or `user:` and the id.
  public let target: Name
  /// The collapse id; where the request has none, its apns-id in lower case.
  public let identifier: Name

  /// A key of names that keep the rules of a request; nil for others.
  public init?(application: Name, target: Name, identifier: Name) {
    guard application.withBytes({ ApplicationTopic.isValid($0) }), target.withBytes(Self.isTarget),
      identifier.withBytes({ !$0.isEmpty && $0.count <= RequestLimits.identifierBytes && $0.isPlainText })
    else { return nil }
    (self.application, self.target, self.identifier) = (application, target, identifier)
  }

  /// Reads the key of a record; nil for what is none.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    let parts = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    guard parts.count == 3, bytes.count <= Self.maximumBytes else { return nil }
    let names = parts.map { UnsafeRawBufferPointer(rebasing: $0) }
    // A name made of other bytes than UTF-8 would have other bytes.
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

  private static func isTarget(_ text: UnsafeRawBufferPointer) -> Bool {
    switch try? Target.read(text, field: "target") {
    case .device(let token): DeviceToken(token).map { Name($0.text).equals(token) } ?? false
    case .user: true
    case nil: false
    }
  }
}
