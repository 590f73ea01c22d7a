public import JSON

/// Which of Apple's two environments a token belongs to.
public enum DeviceEnvironment: String, Sendable, CaseIterable {
  /// Builds under development.
  case development
  /// Released builds.
  case production
}

/// What a device has said about itself: the value of a record of `notifications.devices`, whose key is the device token.
///
/// A record without a value says that the device is gone.
public struct Registration: Sendable, Equatable {
  /// The longest platform, locale or time zone, in bytes.
  public static var wordBytes: Int { 64 }

  /// The device token.
  public var device: DeviceToken
  /// The application's bundle id.
  public var application: Name
  /// Whose device it is; `nil` when nobody is signed in.
  public var user: Name?
  /// From when on it belongs to this user, in milliseconds since 1970.
  public var since: Int64
  /// The platform: `iOS`, `macOS`, `android`, …
  public var platform: String?
  /// The environment that the token belongs to.
  public var environment: DeviceEnvironment?
  /// The locale: `de_AT`.
  public var locale: String?
  /// The time zone: `Europe/Vienna`.
  public var timeZone: String?
  /// What the person lets notifications do.
  public var authorization: Authorization?
  /// The application's categories.
  public var categories: [NotificationCategory]

  /// A registration.
  public init(
    device: DeviceToken, application: Name, user: Name? = nil, since: Int64, platform: String? = nil,
    environment: DeviceEnvironment? = nil, locale: String? = nil, timeZone: String? = nil, authorization: Authorization? = nil,
    categories: [NotificationCategory] = []
  ) {
    (self.device, self.application, self.user, self.since) = (device, application, user, since)
    (self.platform, self.environment, self.locale, self.timeZone) = (platform, environment, locale, timeZone)
    (self.authorization, self.categories) = (authorization, categories)
  }

  /// The category of this identifier that the device has registered.
  public func category(_ identifier: UnsafeRawBufferPointer) -> NotificationCategory? {
    guard !identifier.isEmpty, !categories.isEmpty else { return nil }
    return categories.first { $0.identifier.equals(identifier) }
  }

  /// Reads the value of a record.
  public init(json: UnsafeRawBufferPointer) throws(FieldError) {
    let reader = try ObjectReader(parsing: json)
    self.init(try DeviceFacts(reader), since: try reader.requiredInteger("since"))
  }

  init(_ facts: DeviceFacts, since: Int64) {
    self.init(
      device: facts.device, application: facts.application, user: facts.user, since: since, platform: facts.platform,
      environment: facts.environment, locale: facts.locale, timeZone: facts.timeZone, authorization: facts.authorization,
      categories: facts.categories ?? [])
  }

  /// Appends the value of a record: the same registration always gives the same bytes.
  public func write(to json: inout JSONWriter) {
    json.openObject()
    writeFacts(to: &json)
    json.member("since", since)
    json.closeObject()
  }

  private func writeFacts(to json: inout JSONWriter) {
    json.member("device", device.text)
    json.member("application", application)
    if let user { json.member("user", user) }
    if let platform { json.member("platform", platform) }
    if let environment { json.member("environment", environment.rawValue) }
    if let locale { json.member("locale", locale) }
    if let timeZone { json.member("timeZone", timeZone) }
    if let authorization {
      json.key("authorization")
      authorization.write(to: &json)
    }
    if !categories.isEmpty {
      json.key("categories")
      NotificationCategory.write(categories, to: &json)
    }
  }

  /// A hash of everything but `since`: two registrations that say the same have the same.
  public var digest: UInt64 {
    var json = JSONWriter(capacity: 1024)
    json.openObject()
    writeFacts(to: &json)
    json.closeObject()
    return json.withUnsafeBytes { StableHash.hash($0) }
  }
}

/// The members that a registration and a hello have in common, by the same rules.
struct DeviceFacts {
  let device: DeviceToken
  let application: Name
  let user: Name?
  let platform: String?
  let environment: DeviceEnvironment?
  let locale: String?
  let timeZone: String?
  let authorization: Authorization?
  let categories: [NotificationCategory]?

  init(_ reader: ObjectReader) throws(FieldError) {
    guard let device = reader["device"]?.stringValue.flatMap({ DeviceToken($0) }) else {
      throw reader.error("device", "A device token is an even number of hexadecimal digits, 64 to 512.")
    }
    self.device = device
    application = try reader.requiredName("application", longest: RequestLimits.topicBytes)
    guard application.utf8.allSatisfy(ApplicationTopic.isNameByte) else {
      throw reader.error("application", "An application is 1 to 255 letters, digits, full stops, hyphens and underscores.")
    }
    user = try reader.name("user", longest: RequestLimits.userBytes)
    platform = try reader.text("platform", longest: Registration.wordBytes)
    environment = try reader["environment"].map { value throws(FieldError) in
      guard let environment = value.stringValue.flatMap(DeviceEnvironment.init(rawValue:)) else {
        throw reader.error("environment", "An environment is development or production.")
      }
      return environment
    }
    locale = try reader.text("locale", longest: Registration.wordBytes)
    timeZone = try reader.text("timeZone", longest: Registration.wordBytes)
    authorization = try reader["authorization"].map { value throws(FieldError) in
      try Authorization(value, path: reader.path + "authorization")
    }
    categories = try NotificationCategory.list(reader, "categories")
  }
}
