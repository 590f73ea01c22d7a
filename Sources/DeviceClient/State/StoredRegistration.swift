internal import JSON
internal import Notifications

/// What the person and the program have decided for the device, beyond the end of the program. A value.
///
/// In the database the authorization and the categories are frames of the protocol, and are read by the protocol's own rules.
struct StoredRegistration: Sendable, Equatable {
  /// Whether the program has registered the device for remote notifications.
  var isRegistered = false
  /// The environment that the token belongs to; nil before the first registration.
  var environment: DeviceEnvironment?
  /// What the person lets notifications do; nil if neither a prompt nor the settings have changed the configuration's.
  var authorization: Authorization?
  /// The categories that the program has registered while it ran.
  var categories: [NotificationCategory]?

  /// Nothing is decided yet.
  init() {}

  /// The decisions of a row of the database. A frame that cannot be read counts as none.
  init(isRegistered: Bool, environment: String?, settings: [UInt8], categories: [UInt8]) {
    self.isRegistered = isRegistered
    self.environment = environment.flatMap(DeviceEnvironment.init(rawValue:))
    if case .settings(let frame)? = Self.frame(settings) { authorization = frame.authorization }
    if case .categories(let frame)? = Self.frame(categories) { self.categories = frame.categories }
  }

  /// The frame of the authorization.
  var settings: [UInt8]? {
    authorization.map { authorization in Self.bytes { SettingsFrame(authorization: authorization).write(to: &$0) } }
  }
  /// The frame of the categories.
  var categoriesFrame: [UInt8]? { categories.map { categories in Self.bytes { CategoriesFrame(categories: categories).write(to: &$0) } } }

  /// The hello with these decisions. The program's own categories of this start count more than those of an earlier one.
  func applied(to hello: Hello) -> Hello {
    var hello = hello
    hello.authorization = authorization ?? hello.authorization
    hello.categories = hello.categories ?? categories
    return hello
  }

  private static func bytes(_ write: (inout JSONWriter) -> Void) -> [UInt8] {
    var json = JSONWriter()
    write(&json)
    return json.withUnsafeBytes { Array($0) }
  }

  private static func frame(_ bytes: [UInt8]) -> DeviceFrame? { bytes.withUnsafeBytes { try? DeviceFrame($0) } }
}
