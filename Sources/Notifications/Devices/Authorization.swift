public import JSON

/// What the person lets an application's notifications do on a device.
///
/// As JSON `{"status": "authorized", "alert": true, "sound": false, "previews": "always"}`.
public struct Authorization: Sendable, Equatable {
  /// Whether the person was asked, and what the answer was.
  public enum Status: String, Sendable, CaseIterable {
    /// Not asked yet.
    case notDetermined
    /// Notifications are not wanted.
    case denied
    /// Notifications are wanted.
    case authorized
    /// Delivered quietly, to the list only, until the person decides.
    case provisional
    /// Wanted for a limited time.
    case ephemeral
  }

  /// A thing that the person allows or not.
  public enum Option: String, Sendable, CaseIterable {
    /// Show alerts.
    case alert
    /// Play sounds.
    case sound
    /// Show the badge.
    case badge
    /// Show in a car.
    case carPlay
    /// Sound though the device is muted.
    case criticalAlert
    /// The application has settings of its own.
    case providesAppNotificationSettings
    /// Deliver quietly without having asked.
    case provisional
    /// Read aloud.
    case announcement
    /// Break through a focus.
    case timeSensitive
    /// Show on the locked screen.
    case lockScreen
    /// Keep in the list.
    case notificationCenter
    /// Gather in a summary that the device shows at times of the person's choice.
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

  /// The options that a device has told, each allowed or not; in four bytes, since each session has them.
  public struct Options: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    private var told: UInt16 = 0
    private var allowed: UInt16 = 0

    /// Options of a literal, in which each stands once.
    public init(dictionaryLiteral elements: (Option, Bool)...) { for (option, isAllowed) in elements { self[option] = isAllowed } }

    /// Whether an option is allowed; nil where the device has not told it.
    public subscript(option: Option) -> Bool? {
      get { told & option.bit == 0 ? nil : allowed & option.bit != 0 }
      set {
        told = newValue == nil ? told & ~option.bit : told | option.bit
        allowed = newValue == true ? allowed | option.bit : allowed & ~option.bit
      }
    }
  }

  /// When the content is shown.
  public enum Previews: String, Sendable, CaseIterable {
    /// Also while the device is locked.
    case always
    /// Only when it is unlocked.
    case whenAuthenticated
    /// Not without being opened.
    case never
  }

  /// Whether the person was asked, and what the answer was.
  public var status: Status
  /// What is allowed and what is not; what is not said is not here.
  public var options: Options
  /// When the content is shown, if it was said.
  public var previews: Previews?

  /// An authorization.
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
      guard let value = reader[option.rawValue] else { continue }
      guard let isAllowed = value.boolValue else { throw reader.error(option.rawValue, "An option is true or false.") }
      options[option] = isAllowed
    }
    if let value = reader["previews"] {
      guard let previews = value.stringValue.flatMap(Previews.init(rawValue:)) else {
        throw reader.error("previews", "Previews are always, whenAuthenticated or never.")
      }
      self.previews = previews
    }
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
