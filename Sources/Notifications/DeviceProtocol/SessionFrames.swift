/// The frame `welcome`: the answer to `hello`.
public struct WelcomeFrame: Sendable, Equatable {
  /// The limits that a device must keep.
  public struct Limits: Sendable, Equatable {
    /// The largest frame, in bytes.
    public var frameBytes: Int
    /// The longest text of a response, in bytes.
    public var userTextBytes: Int
    /// The maximum number of categories.
    public var categories: Int
    /// The maximum number of actions of a category.
    public var actions: Int
  }

  /// The session's name, for people who search for it.
  public var session: String
  /// The cluster's clock, in milliseconds since 1970.
  public var now: Int64
  /// The interval of the cluster's pings, in seconds.
  public var pingSeconds: Int
  /// The maximum number of unacknowledged deliveries.
  public var window: Int
  /// How long the device remembers ids and revisions, in seconds.
  public var rememberSeconds: Int64
  /// The person's quiet hours; nil if there are none.
  public var quiet: QuietHours?
  /// The limits that a device must keep.
  public var limits: Limits

  init(_ reader: ObjectReader) throws(FieldError) {
    session = try reader.requiredText("session", longest: FrameLimits.idBytes)
    now = try reader.requiredInteger("now")
    guard now <= Timestamp.latest else { throw reader.error("now", "A time is in milliseconds since 1970, and not after the year 9999.") }
    pingSeconds = Int(try reader.requiredInteger("pingSeconds"))
    window = Int(try reader.requiredInteger("window"))
    rememberSeconds = try reader.requiredInteger("rememberSeconds")
    // An unknown form of quiet hours must not stop the welcome.
    quiet = reader["quiet"].flatMap { try? QuietHours($0) }
    let given = try reader["limits"].map { value throws(FieldError) in try ObjectReader(value, path: "limits") }
    limits = Limits(
      frameBytes: Int(try given?.integer("frameBytes") ?? 16_384),
      userTextBytes: Int(try given?.integer("userTextBytes") ?? Int64(Registration.userTextBytes)),
      categories: Int(try given?.integer("categories") ?? Int64(NotificationCategory.maximum)),
      actions: Int(try given?.integer("actions") ?? Int64(NotificationCategory.maximumActions)))
  }
}

/// The frame `goaway`: the connection will end soon.
public struct GoawayFrame: Sendable, Equatable {
  /// When to reconnect, in milliseconds from now; `nil` if absent or invalid.
  public var reconnectAfterMs: Int?
  /// The reason: a name in the table of close codes.
  public var reason: String

  /// Creates a goaway.
  public init(reconnectAfterMs: Int?, reason: String) {
    (self.reconnectAfterMs, self.reason) = (reconnectAfterMs, reason)
  }

  init(_ reader: ObjectReader) throws(FieldError) {
    // The connection ends in any case, so an invalid time is ignored.
    reconnectAfterMs = (try? reader.integer("reconnectAfterMs")).map { Int($0) }
    reason = try reader.text("reason", longest: FrameLimits.idBytes) ?? ""
  }
}
