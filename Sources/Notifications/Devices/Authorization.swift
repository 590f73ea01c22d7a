public import JSON

/// What the person lets an application's notifications do on a device.
///
/// As JSON `{"status": "authorized", "alert": true, "sound": false, "previews": "always"}`.
public struct Authorization: Sendable, Equatable, JSONWritable {
  /// Whether the person was asked, and the answer.
  public enum Status: String, Sendable, CaseIterable {
    /// Not asked yet.
    case notDetermined
    /// Notifications are not wanted.
    case denied
    /// Notifications are wanted.
    case authorized
    /// Wanted quietly, in the list only, until the person decides.
    case provisional
    /// Wanted for a limited time.
    case ephemeral
  }

  /// A single permission of the person.
  public enum Option: String, Sendable, CaseIterable {
    /// Show alerts.
    case alert
    /// Play sounds.
    case sound
    /// Show the badge.
    case badge
    /// Show in a car.
    case carPlay
    /// Play the sound even on a muted device.
    case criticalAlert
    /// The application has notification settings of its own.
    case providesAppNotificationSettings
    /// Deliver quietly without asking first.
    case provisional
    /// Read aloud.
    case announcement
    /// Break through a focus.
    case timeSensitive
    /// Show on the locked screen.
    case lockScreen
    /// Keep in the list.
    case notificationCenter
    /// Collect in a summary, shown at times that the person chose.
    case scheduledDelivery

    fileprivate var bit: UInt16 {
      switch self {
      case .alert: 1 << 0
      case .sound: 1 << 1
      case .badge: 1 << 2
      case .carPlay: 1 << 3
      case .criticalAlert: 1 << 4
      case .providesAppNotificationSettings: 1 << 5
      case .provisional: 1 << 6
      case .announcement: 1 << 7
      case .timeSensitive: 1 << 8
      case .lockScreen: 1 << 9
      case .notificationCenter: 1 << 10
      case .scheduledDelivery: 1 << 11
      }
    }
  }

  /// The options that a device has reported, in four bytes, since each session has them.
  public struct Options: Sendable, Equatable, ExpressibleByDictionaryLiteral, CustomStringConvertible {
    private var told: UInt16 = 0
    private var allowed: UInt16 = 0

    /// Creates options from a literal without repetitions.
    public init(dictionaryLiteral elements: (Option, Bool)...) { for (option, isAllowed) in elements { self[option] = isAllowed } }

    /// The reported options with `on` or `off`.
    public var description: String {
      "[\(Option.allCases.compactMap { option in self[option].map { "\(option.rawValue) \($0 ? "on" : "off")" } }.joined(separator: ", "))]"
    }

    /// Whether an option is allowed; nil if the device has not reported it.
    public subscript(option: Option) -> Bool? {
      get { told & option.bit == 0 ? nil : allowed & option.bit != 0 }
      set {
        told = newValue == nil ? told & ~option.bit : told | option.bit
        allowed = newValue == true ? allowed | option.bit : allowed & ~option.bit
      }
    }
  }

  /// When the device shows the content.
  public enum Previews: String, Sendable, CaseIterable {
    /// Even while the device is locked.
    case always
    /// Only while the device is unlocked.
    case whenAuthenticated
    /// Only when the notification is opened.
    case never
  }

  /// Whether the person was asked, and the answer.
  public var status: Status
  /// The reported options, each allowed or not.
  public var options: Options
  /// When the device shows the content; nil if it has not reported that.
  public var previews: Previews?

  /// Creates an authorization.
  public init(status: Status, options: Options = [:], previews: Previews? = nil) {
    (self.status, self.options, self.previews) = (status, options, previews)
  }

  init(_ value: JSONValue, path: String) throws(FieldError) {
    let reader = try ObjectReader(value, path: path)
    guard let status = reader["status"]?.stringValue.flatMap(Status.init(rawValue:)) else {
      throw reader.error("status", "A status is notDetermined, denied, authorized, provisional or ephemeral.")
    }
    self.status = status
    options = [:]
    for option in Option.allCases {
      options[option] = try reader.flag(option.rawValue, "An option is true or false.")
    }
    previews = try reader.choice("previews", "Previews are always, whenAuthenticated or never.")
  }

  /// Appends the authorization as a JSON object.
  public func write(to json: inout JSONWriter) {
    json.openObject()
    json.member("status", status.rawValue)
    for option in Option.allCases {
      guard let isAllowed = options[option] else { continue }
      json.key(text: option.rawValue)
      json.bool(isAllowed)
    }
    if let previews { json.member("previews", previews.rawValue) }
    json.closeObject()
  }
}
