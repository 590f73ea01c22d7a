internal import JSON

/// The frame `remove`: delivered notifications to take away, or notifications that wait for a place.
public struct RemoveFrame: Sendable, Equatable {
  /// Its number in this session, for the acknowledgement.
  public var delivery: UInt64
  /// The identifiers; none for a removal of all.
  public var identifiers: [Name]
  /// Whether all delivered notifications go that are older.
  public var removesAll: Bool
  /// Whether those go that wait for a place, and no delivered ones.
  public var isOfPending: Bool
  /// What is not newer than this goes.
  public var revision: String

  init(_ reader: ObjectReader) throws(FieldError) {
    delivery = UInt64(clamping: try reader.requiredInteger("delivery"))
    identifiers = try reader.words("identifiers", atMost: 1_000).map { Name($0) }
    removesAll = reader["all"]?.boolValue ?? false
    isOfPending = reader["scope"]?.stringValue == "pending"
    revision = try reader.requiredText("revision", longest: FrameLimits.idBytes)
  }
}
