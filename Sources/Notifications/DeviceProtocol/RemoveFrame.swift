internal import JSON

/// The frame `remove`: delivered notifications or location requests to remove.
public struct RemoveFrame: Sendable, Equatable {
  /// The delivery's number in this session, for the acknowledgement.
  public var delivery: UInt64
  /// The identifiers; empty for a removal of all.
  public var identifiers: [Name]
  /// Whether it removes all older delivered notifications.
  public var removesAll: Bool
  /// Whether it removes location requests, and no delivered notifications.
  public var isOfPending: Bool
  /// The newest revision that it removes.
  public var revision: String

  init(_ reader: ObjectReader) throws(FieldError) {
    delivery = UInt64(clamping: try reader.requiredInteger("delivery"))
    identifiers = try reader.words("identifiers", atMost: 1_000).map { Name($0) }
    removesAll = reader["all"]?.boolValue ?? false
    isOfPending = reader["scope"]?.stringValue == "pending"
    revision = try reader.requiredText("revision", longest: FrameLimits.idBytes)
  }
}
