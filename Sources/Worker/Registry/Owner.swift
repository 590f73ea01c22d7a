public import Notifications

/// Whose a device is: what the field `u` of its hash says.
public struct Owner: Equatable, Sendable {
  static let byteCount = 24

  /// The stable hash of the user; 0 for nobody.
  public var user: UInt64
  /// Since when, in milliseconds.
  public var since: UInt64
  /// The stable hash of the application.
  public var application: UInt64

  /// An owner from its parts.
  public init(user: UInt64, since: UInt64, application: UInt64) {
    self.user = user
    self.since = since
    self.application = application
  }

  /// Reads the form that Redis keeps; nil for anything else.
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    func number(_ start: Int) -> UInt64 { bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) } }
    self.init(user: number(0), since: number(8), application: number(16))
  }

  /// The form that Redis keeps.
  public var bytes: [UInt8] { [user, since, application].flatMap { withUnsafeBytes(of: $0.bigEndian, Array.init) } }
}

extension Owner {
  /// Whose device a registration says it is.
  public init(_ registration: Registration) {
    self.init(
      user: registration.user.map { StableHash.user($0) } ?? 0, since: UInt64(clamping: registration.since),
      application: StableHash.hash(registration.application))
  }
}

extension Owner {
  /// Whether what is for a user (by the stable hash; 0: for whoever has the device) and an application is for this owner's device.
  public func takes(user: UInt64, application: UnsafeRawBufferPointer) -> Bool {
    (user == 0 || user == self.user) && StableHash.hash(application) == self.application
  }

  /// Whether an entry is for this owner's device: neither a former person nor a former application gets it any more.
  public func takes(_ entry: DeliveryEntryView) -> Bool { takes(user: entry.userHash, application: entry.application) }

  /// Why an entry is not, as its event tells it.
  public func reasonAgainst(_ entry: DeliveryEntryView) -> StaticString {
    takes(user: 0, application: entry.application)
      ? "the device belongs to another person now" : "the device is registered for another application now"
  }
}

extension Registration {
  /// What the field `r` of the device's hash says, for a record at this place of `devices`.
  public func field(partition: Int32, offset: Int64) -> [UInt8] { Self.field(digest: digest, partition: partition, offset: offset) }

  /// The same for an unregistration, which has no digest.
  public static func field(digest: UInt64 = 0, partition: Int32, offset: Int64) -> [UInt8] {
    withUnsafeBytes(of: digest.bigEndian, Array.init) + withUnsafeBytes(of: partition.bigEndian, Array.init)
      + withUnsafeBytes(of: offset.bigEndian, Array.init)
  }
}
