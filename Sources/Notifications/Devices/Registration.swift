public import JSON

/// Which of Apple's two environments a token belongs to.
public enum DeviceEnvironment: String, Sendable, CaseIterable {
  /// Builds under development.
  case development
  /// Released builds.
  case production
}

/// The registration of a device: the value of a record of `notifications.devices`.
///
/// The key of the record is the device token. A record without a value means that the device is unregistered.
public struct Registration: Sendable, Equatable {
  /// The longest platform, locale or time zone, in bytes.
  public static var wordBytes: Int { 64 }

  /// The device token.
  public var device: DeviceToken
  /// The application's bundle id.
  public var application: Name
  /// The user who is signed in; `nil` if nobody is.
  public var user: Name?
  /// When the device began to belong to this user, in milliseconds since 1970.
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

  /// Creates a registration.
  public init(
    device: DeviceToken, application: Name, user: Name? = nil, since: Int64, platform: String? = nil,
    environment: DeviceEnvironment? = nil, locale: String? = nil, timeZone: String? = nil, authorization: Authorization? = nil,
    categories: [NotificationCategory] = []
  ) {
    (self.device, self.application, self.user, self.since) = (device, application, user, since)
    (self.platform, self.environment, self.locale, self.timeZone) = (platform, environment, locale, timeZone)
    (self.authorization, self.categories) = (authorization, categories)
  }

  /// The targets whose requests are for the device and for others: its person.
  public var memberships: [Name] { [user.map { Name("user:\($0)") }].compactMap(\.self) }

  /// Reads the application and the memberships of a record, and checks nothing else. A registry has very many.
  public static func memberships(json: UnsafeRawBufferPointer) throws(JSONError) -> (application: Name, targets: [Name])? {
    var (application, targets): (Name?, [Name]) = (nil, [])
    var scanner = JSONScanner(json)
    try scanner.openObject()
    while let key = try scanner.nextKey() {
      let value = try scanner.skip()
      if scanner.matches(key, "application") { application = scanner.text(value).map { Name($0) } }
      if scanner.matches(key, "user"), let user = scanner.text(value) { targets.append("user:\(user)") }
    }
    try scanner.finish()
    return application.map { ($0, targets) }
  }

  /// Returns the category that the device registered with this identifier.
  public func category(_ identifier: UnsafeRawBufferPointer) -> NotificationCategory? {
    guard !identifier.isEmpty, !categories.isEmpty else { return nil }
    return categories.first { $0.identifier.equals(identifier) }
  }

  /// The member that an error names if a newer program has written the record. Version 1 has no such member.
  public static var layoutField: String { "layout" }

  /// Reads the value of a record.
  public init(json: UnsafeRawBufferPointer) throws(FieldError) {
    let reader = try ObjectReader(parsing: json)
    if let version = reader[Self.layoutField]?.integerValue, Layout.registration.isNewer(version) {
      throw reader.error(Self.layoutField, Layout.registration.newer(version))
    }
    self.init(try DeviceFacts(reader), since: try reader.requiredInteger("since"))
  }

  init(_ facts: DeviceFacts, since: Int64) {
    self.init(
      device: facts.device, application: facts.application, user: facts.user, since: since, platform: facts.platform,
      environment: facts.environment, locale: facts.locale, timeZone: facts.timeZone, authorization: facts.authorization,
      categories: facts.categories ?? [])
  }

  /// Appends the value of a record. Equal registrations give equal bytes.
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

  /// A hash of all members but `since`. Equal members give equal hashes.
  public var digest: UInt64 {
    var json = JSONWriter(capacity: 1024)
    json.openObject()
    writeFacts(to: &json)
    json.closeObject()
    return json.withUnsafeBytes { StableHash.hash($0) }
  }
}

/// The members that a registration and a hello have in common.
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
