public import JSON

/// The frame `hello`: who a device is.
public struct Hello: Sendable, Equatable, JSONWritable {
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
  /// Whether the device asks for `heartbeat` frames, since it cannot see pings.
  public var heartbeat: Bool

  /// Creates a hello.
  public init(
    device: DeviceToken, application: Name, credential: String? = nil, user: Name? = nil, platform: String? = nil,
    environment: DeviceEnvironment? = nil, locale: String? = nil, timeZone: String? = nil, authorization: Authorization? = nil,
    categories: [NotificationCategory]? = nil, heartbeat: Bool = false
  ) {
    (self.device, self.application, self.credential, self.user) = (device, application, credential, user)
    (self.platform, self.environment, self.locale, self.timeZone) = (platform, environment, locale, timeZone)
    (self.authorization, self.categories, self.heartbeat) = (authorization, categories, heartbeat)
  }

  init(_ reader: ObjectReader) throws(FieldError) {
    try self.init(facts: reader)
    credential = try reader.text("credential", longest: FrameLimits.credentialBytes)
    heartbeat = try reader.flag("heartbeat") ?? false
    try reader.checkZone(timeZone)
  }

  /// Reads what a registration has, too.
  init(facts reader: ObjectReader) throws(FieldError) {
    guard let device = reader["device"]?.stringValue.flatMap({ DeviceToken($0) }) else {
      throw reader.error("device", "A device token is an even number of hexadecimal digits, 64 to 512.")
    }
    self.init(device: device, application: try reader.requiredName("application", longest: RequestLimits.topicBytes))
    guard application.utf8.allSatisfy(ApplicationTopic.isNameByte) else {
      throw reader.error("application", "An application is 1 to 255 letters, digits, full stops, hyphens and underscores.")
    }
    user = try reader.name("user", longest: RequestLimits.userBytes)
    platform = try reader.text("platform", longest: Registration.wordBytes)
    environment = try reader.choice("environment", "An environment is development or production.")
    locale = try reader.text("locale", longest: Registration.wordBytes)
    timeZone = try reader.text("timeZone", longest: Registration.wordBytes)
    authorization = try reader["authorization"].map { value throws(FieldError) in
      try Authorization(value, path: reader.path + "authorization")
    }
    categories = try NotificationCategory.list(reader)
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
    json.openFrame("hello")
    writeFacts(to: &json)
    if let credential { json.member("credential", credential) }
    if heartbeat { json.member("heartbeat", true) }
    json.closeObject()
  }

  /// Appends the members that a registration has, too.
  func writeFacts(to json: inout JSONWriter) {
    json.member("device", device.text)
    json.member("application", application)
    if let user { json.member("user", user) }
    if let platform { json.member("platform", platform) }
    if let environment { json.member("environment", environment.rawValue) }
    if let locale { json.member("locale", locale) }
    if let timeZone { json.member("timeZone", timeZone) }
    json.member("authorization", authorization)
    json.member("categories", categories)
  }
}
