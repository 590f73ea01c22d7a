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
public struct Registration: Sendable, Equatable, JSONWritable {
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
    while let (key, value) = try scanner.nextMember() {
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
    self = try Hello(facts: reader).registration(since: try reader.requiredInteger("since"))
  }

  /// Appends the value of a record. Equal registrations give equal bytes.
  public func write(to json: inout JSONWriter) {
    json.openObject()
    writeFacts(to: &json)
    json.member("since", since)
    json.closeObject()
  }

  private func writeFacts(to json: inout JSONWriter) {
    let facts = Hello(
      device: device, application: application, user: user, platform: platform, environment: environment, locale: locale,
      timeZone: timeZone, authorization: authorization, categories: categories.isEmpty ? nil : categories)
    facts.writeFacts(to: &json)
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
