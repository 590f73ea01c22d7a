public import JSON

/// The frame `hello`: who a device is.
public struct Hello: Sendable, Equatable {
  /// The device token.
  public var device: DeviceToken
  /// The application's bundle id.
  public var application: Name
  /// The proof that the device may connect; required outside development. Never log it.
  public var credential: String?
  /// The user who is signed in.
  public var user: Name?
  /// The platform.
  public var platform: String?
  /// The environment that the token belongs to.
  public var environment: DeviceEnvironment?
  /// The locale.
  public var locale: String?
  /// The time zone.
  public var timeZone: String?
  /// What the person lets notifications do; `nil` if the hello does not say.
  public var authorization: Authorization?
  /// The application's categories; `nil` if the hello does not say.
  public var categories: [NotificationCategory]?
  /// The position that the device has reached in each channel.
  public var cursors: [Name: String]
  /// Whether the device asks for `heartbeat` frames, since it cannot see pings.
  public var heartbeat: Bool

  /// Creates a hello.
  public init(
    device: DeviceToken, application: Name, credential: String? = nil, user: Name? = nil, platform: String? = nil,
    environment: DeviceEnvironment? = nil, locale: String? = nil, timeZone: String? = nil, authorization: Authorization? = nil,
    categories: [NotificationCategory]? = nil, cursors: [Name: String] = [:], heartbeat: Bool = false
  ) {
    (self.device, self.application, self.credential, self.user) = (device, application, credential, user)
    (self.platform, self.environment, self.locale, self.timeZone) = (platform, environment, locale, timeZone)
    (self.authorization, self.categories, self.cursors, self.heartbeat) = (authorization, categories, cursors, heartbeat)
  }

  init(_ reader: ObjectReader) throws(FieldError) {
    let facts = try DeviceFacts(reader)
    let credential = try reader.text("credential", longest: FrameLimits.credentialBytes)
    let heartbeat = try reader["heartbeat"].map { value throws(FieldError) in
      guard let isWanted = value.boolValue else { throw reader.error("heartbeat", "This is true or false.") }
      return isWanted
    }
    var cursors: [Name: String] = [:]
    if let value = reader["cursors"] {
      let members = try ObjectReader(value, path: "cursors").object.members ?? []
      guard members.count <= FrameLimits.cursors else {
        throw reader.error("cursors", "There are at most \(FrameLimits.cursors) cursors.")
      }
      for member in members {
        guard let cursor = member.value.stringValue, cursor.utf8.count <= FrameLimits.idBytes,
          member.key.utf8.count <= RequestLimits.userBytes
        else {
          throw reader.error("cursors", "A cursor is the text that a broadcast gave, by its channel's name.")
        }
        cursors[Name(member.key)] = cursor
      }
    }
    try reader.checkZone(facts.timeZone)
    self.init(
      device: facts.device, application: facts.application, credential: credential, user: facts.user, platform: facts.platform,
      environment: facts.environment, locale: facts.locale, timeZone: facts.timeZone, authorization: facts.authorization,
      categories: facts.categories, cursors: cursors, heartbeat: heartbeat ?? false)
  }

  /// Returns the registration that the hello makes.
  ///
  /// - Parameter since: when the device began to belong to this user, in milliseconds since 1970.
  public func registration(since: Int64) -> Registration {
    Registration(
      device: device, application: application, user: user, since: since, platform: platform, environment: environment, locale: locale,
      timeZone: timeZone, authorization: authorization, categories: categories ?? [])
  }

  /// Appends the frame.
  public func write(to json: inout JSONWriter) {
    json.openObject()
    json.member("type", DeviceFrameType.hello.rawValue)
    json.member("device", device.text)
    json.member("application", application)
    if let credential { json.member("credential", credential) }
    if let user { json.member("user", user) }
    if let platform { json.member("platform", platform) }
    if let environment { json.member("environment", environment.rawValue) }
    if let locale { json.member("locale", locale) }
    if let timeZone { json.member("timeZone", timeZone) }
    if let authorization {
      json.key("authorization")
      authorization.write(to: &json)
    }
    if let categories {
      json.key("categories")
      NotificationCategory.write(categories, to: &json)
    }
    if !cursors.isEmpty {
      json.key("cursors")
      json.openObject()
      for (channel, cursor) in cursors.sorted(by: { $0.key < $1.key }) {
        json.key(text: channel.text)
        json.string(cursor)
      }
      json.closeObject()
    }
    if heartbeat { json.member("heartbeat", true) }
    json.closeObject()
  }
}
