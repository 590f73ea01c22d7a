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
  public var options: [Option: Bool]
  /// When the content is shown, if it was said.
  public var previews: Previews?

  /// An authorization.
  public init(status: Status, options: [Option: Bool] = [:], previews: Previews? = nil) {
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
