internal import JSON
internal import Notifications

/// What the person and the program have decided for the device, beyond the end of the program. A value.
///
/// In the database the settings and the categories are frames of the protocol, and are read by the protocol's own rules.
struct StoredRegistration: Sendable, Equatable {
  /// Whether the program has registered the device for remote notifications.
  var isRegistered = false
  /// The environment that the token belongs to; nil before the first registration.
  var environment: DeviceEnvironment?
  /// What the person lets notifications do; nil if neither a prompt nor the settings have changed the configuration's.
  var authorization: Authorization?
  /// The categories that the program has registered while it ran.
  var categories: [NotificationCategory]?
  /// The person's quiet hours, as the cluster has told them or the person has set them on this device; nil if there are none.
  var quietHours: QuietHours?
  /// The id of the request by which the cluster gets these hours; nil if it has them.
  var quietRequest: Name?
  /// The id of the request by which the person signs out; nil if the cluster has confirmed it, or there is none.
  var signOutRequest: Name?
  /// The person who is signed in, and whose notifications, quiet hours and sign-out these are; nil for nobody.
  var person: Name?
  /// The zone of calendar triggers that name none, for other processes; nil for UTC.
  var zone: Name?

  /// Nothing is decided yet.
  init() {}

  /// The decisions of a row of the database. A frame that cannot be read counts as none.
  init(settings: [UInt8], categories: [UInt8]) {
    if case .settings(let frame)? = Self.frame(settings) {
      (authorization, quietHours, quietRequest) = (frame.authorization, frame.person?.quiet, frame.request.map { Name($0) })
      zone = frame.timeZone.map { Name($0) }
    }
    self.categories = Self.categories(categories)
  }

  /// Drops what belongs to the person.
  mutating func forgetPerson() { (quietHours, quietRequest, signOutRequest) = (nil, nil, nil) }

  /// The frame of the authorization, the zone and the quiet hours; nil without any.
  var settings: [UInt8]? {
    let hasHours = quietHours != nil || quietRequest != nil
    guard authorization != nil || zone != nil || hasHours else { return nil }
    let frame = SettingsFrame(
      request: quietRequest?.text, authorization: authorization, timeZone: zone?.text,
      person: hasHours ? PersonSettings(quiet: quietHours) : nil)
    return frame.jsonBytes
  }
  /// The frame of the categories.
  var categoriesFrame: [UInt8]? { categories.map { CategoriesFrame(categories: $0).jsonBytes } }

  /// The categories of a frame; nil if it is none.
  static func categories(_ bytes: [UInt8]) -> [NotificationCategory]? {
    if case .categories(let frame)? = frame(bytes) { frame.categories } else { nil }
  }

  /// The hello with these decisions. The program's own categories of this start count more than those of an earlier one.
  ///
  /// Until somebody decides about notifications it says so, and nothing is shown.
  func applied(to hello: Hello) -> Hello {
    var hello = hello
    hello.authorization = authorization ?? hello.authorization ?? Authorization(status: .notDetermined)
    hello.categories = hello.categories ?? categories
    return hello
  }

  private static func frame(_ bytes: [UInt8]) -> DeviceFrame? { bytes.withUnsafeBytes { try? DeviceFrame($0) } }
}
