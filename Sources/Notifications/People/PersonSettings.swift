internal import JSON

/// A person's settings for all of their devices: the value of a record of `notifications.people`.
///
/// The key of the record is the user. A record without a value means that the person has set nothing.
public struct PersonSettings: Sendable, Equatable {
  /// The largest value that is read, in bytes.
  public static var valueBytes: Int { 4_096 }

  /// The quiet hours; `nil` if the person has set none.
  public var quiet: QuietHours?

  /// Creates the settings of a person.
  public init(quiet: QuietHours?) { self.quiet = quiet }

  /// Reads the value of a record.
  public init(json: UnsafeRawBufferPointer) throws(FieldError) {
    quiet = try ObjectReader(parsing: json, atMost: Self.valueBytes)["quiet"].map { value throws(FieldError) in
      try QuietHours(value)
    }
  }

  /// The value of the record; `nil` if nothing is set.
  public var value: [UInt8]? {
    guard let quiet else { return nil }
    var json = JSONWriter(capacity: 256)
    json.openObject()
    json.member("quiet", quiet)
    json.closeObject()
    return json.withUnsafeBytes(Array.init)
  }
}
