/// The frame `welcome`: the answer to hello.
public struct WelcomeFrame: Sendable, Equatable {
  /// What a device must not exceed.
  public struct Limits: Sendable, Equatable {
    /// The largest frame, in bytes.
    public var frameBytes: Int
    /// The longest text of a response, in bytes.
    public var userTextBytes: Int
    /// The maximum number of categories.
    public var categories: Int
    /// The maximum number of actions of a category.
    public var actions: Int

    /// Limits; all but the largest frame are the protocol's.
    public init(
      frameBytes: Int, userTextBytes: Int = Registration.userTextBytes, categories: Int = NotificationCategory.maximum,
      actions: Int = NotificationCategory.maximumActions
    ) {
      (self.frameBytes, self.userTextBytes, self.categories, self.actions) = (frameBytes, userTextBytes, categories, actions)
    }
  }

  /// The session's name, for people who look for it.
  public var session: String
  /// The cluster's clock, in milliseconds since 1970.
  public var now: Int64
  /// How often the cluster pings, in seconds.
  public var pingSeconds: Int
  /// How many deliveries may be unacknowledged.
  public var window: Int
  /// For how long the device remembers ids and revisions, in seconds.
  public var rememberSeconds: Int64
  /// The person's quiet hours, if there are any.
  public var quiet: QuietHours?
  /// What the device must not exceed.
  public var limits: Limits

  /// A welcome.
  public init(
    session: String, now: Int64, pingSeconds: Int, window: Int, rememberSeconds: Int64, quiet: QuietHours? = nil, limits: Limits
  ) {
    (self.session, self.now, self.pingSeconds, self.window) = (session, now, pingSeconds, window)
    (self.rememberSeconds, self.quiet, self.limits) = (rememberSeconds, quiet, limits)
  }

  init(_ reader: ObjectReader) throws(FieldError) {
    session = try reader.requiredText("session", longest: FrameLimits.idBytes)
    now = try reader.requiredInteger("now")
    guard now <= Timestamp.latest else { throw reader.error("now", "A time is in milliseconds since 1970, and not after the year 9999.") }
    pingSeconds = Int(try reader.requiredInteger("pingSeconds"))
    window = Int(try reader.requiredInteger("window"))
    rememberSeconds = try reader.requiredInteger("rememberSeconds")
    // Hours of a form that this version does not know are no reason not to be welcomed.
    quiet = reader["quiet"].flatMap { try? QuietHours($0, path: "quiet") }
    let given = try reader["limits"].map { value throws(FieldError) in try ObjectReader(value, path: "limits") }
    limits = Limits(
      frameBytes: Int(try given?.integer("frameBytes") ?? 16_384),
      userTextBytes: Int(try given?.integer("userTextBytes") ?? Int64(Registration.userTextBytes)),
      categories: Int(try given?.integer("categories") ?? Int64(NotificationCategory.maximum)),
      actions: Int(try given?.integer("actions") ?? Int64(NotificationCategory.maximumActions)))
  }
}

/// The frame `goaway`: the connection ends soon.
public struct GoawayFrame: Sendable, Equatable {
  /// When to reconnect, in milliseconds from now; `nil` when it does not say, or says something else than a whole number from 0 on.
  public var reconnectAfterMs: Int?
  /// Why: a name of the close codes' table.
  public var reason: String

  /// A goaway.
  public init(reconnectAfterMs: Int?, reason: String) {
    (self.reconnectAfterMs, self.reason) = (reconnectAfterMs, reason)
  }

  init(_ reader: ObjectReader) throws(FieldError) {
    // The connection ends whatever stands here, so a time that is none is passed over.
    reconnectAfterMs = (try? reader.integer("reconnectAfterMs")).map { Int($0) }
    reason = try reader.text("reason", longest: FrameLimits.idBytes) ?? ""
  }
}
