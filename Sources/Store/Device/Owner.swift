public import Notifications

/// The owner of a device: the field `u` of its hash.
public struct Owner: Equatable, Sendable {
  static let byteCount = 24

  /// The number of the user; 0 for nobody.
  public var user: UInt64
  /// The time from which the device belongs to the user, in milliseconds.
  public var since: UInt64
  /// The number of the application.
  var application: UInt64

  /// An owner of its parts.
  public init(user: UInt64, since: UInt64, application: UInt64) {
    self.user = user
    self.since = since
    self.application = application
  }

  /// Reads the bytes that Redis keeps; nil for anything else.
  init?(_ bytes: some Sequence<UInt8>) {
    let bytes = Array(bytes)
    guard bytes.count == Self.byteCount else { return nil }
    func number(_ start: Int) -> UInt64 { bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(user: number(0), since: number(8), application: number(16))
  }

  /// Reads the field of a device. The horizon of its removals may follow there, which only the scripts read.
  init?(field: [UInt8]) {
    guard field.count == Self.byteCount || field.count == Self.byteCount + Revision.byteCount else { return nil }
    self.init(field.prefix(Self.byteCount))
  }

  /// The bytes that Redis keeps.
  var bytes: [UInt8] { [user, since, application].flatMap { withUnsafeBytes(of: $0.bigEndian, Array.init) } }
}

extension Owner {
  /// The owner that a registration names.
  public init(_ registration: Registration) {
    self.init(
      user: registration.user.map { NameHash.user($0) } ?? 0, since: UInt64(clamping: registration.since),
      application: NameHash.hash(registration.application))
  }

  /// Whether person and application are the same; `since` may differ.
  public func isSame(as other: Owner) -> Bool { user == other.user && application == other.application }

  /// Whether a request for a user (by its number; 0 for a `device:` request) and an application is for this owner's device.
  public func takes(user: UInt64, application: UnsafeRawBufferPointer) -> Bool {
    (user == 0 || user == self.user) && NameHash.hash(application) == self.application
  }

  /// Whether an entry is for this owner's device. A former person or application gets no more entries.
  public func takes(_ entry: DeliveryEntryView) -> Bool { takes(user: entry.userHash, application: entry.application) }

  /// The reason, for the event, why an entry is not for this owner's device.
  public func reasonAgainst(_ entry: DeliveryEntryView) -> StaticString {
    takes(user: 0, application: entry.application)
      ? Self.otherPerson : "the device is registered for another application now"
  }

  /// The reason, for the event, why an entry for a former person of a device is filtered.
  public static let otherPerson: StaticString = "the device belongs to another person now"
}

/// The record of `devices` that was applied to a device last. The field `r` of its hash.
public struct RegistrationStamp: Equatable, Sendable {
  static let byteCount = 20

  /// The registration's digest; 0 for an unregistration.
  public let digest: UInt64
  /// The record's partition.
  public let partition: Int32
  /// The record's offset.
  public let offset: Int64

  /// A stamp of its parts.
  init(digest: UInt64, partition: Int32, offset: Int64) {
    (self.digest, self.partition, self.offset) = (digest, partition, offset)
  }

  /// Reads the bytes that Redis keeps; nil for anything else.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    digest = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    partition = Int32(truncatingIfNeeded: bytes[8..<12].reduce(0) { $0 << 8 | Int($1) })
    offset = bytes[12...].reduce(0) { $0 << 8 | Int64($1) }
  }

  /// The bytes that Redis keeps.
  var bytes: [UInt8] {
    withUnsafeBytes(of: digest.bigEndian, Array.init) + withUnsafeBytes(of: partition.bigEndian, Array.init)
      + withUnsafeBytes(of: offset.bigEndian, Array.init)
  }
}
