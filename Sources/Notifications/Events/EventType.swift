/// What can happen to a request, or to a device. The raw values count the cases, and mean nothing outside of the process.
public enum EventType: Int, Sendable, CaseIterable {
  /// The request is for so many devices.
  case addressed
  /// It was pending and is not any more.
  case canceled
  /// The device has it.
  case delivered
  /// The device has it, in place of an older one of the same identifier.
  case updated
  /// The person opened it, chose an action, or typed a text.
  case response
  /// The person dismissed it.
  case dismissed
  /// The device acknowledged a removal; it may have had nothing of what is removed.
  case removed
  /// It breaks a rule.
  case rejected
  /// The device has had this apns-id from another record.
  case duplicate
  /// A newer one of the same identifier takes its place.
  case collapsed
  /// The device or its settings did not want it.
  case filtered
  /// Its time was over before the device had it.
  case expired
  /// The device's mailbox was full, and it was the oldest.
  case evicted
  /// The device is not registered, or not any more.
  case unregistered
  /// A device said who it is, for the first time or differently.
  case registered
  /// The person or the application changed the device's settings or categories.
  case settingsChanged
  /// A device is gone: the person signed out, or the application was removed.
  case unregisteredDevice

  /// The CloudEvents type, `ce_type`.
  public var cloudEventsType: StaticString {
    switch self {
    case .addressed: "carillon.addressed.v1"
    case .canceled: "carillon.canceled.v1"
    case .delivered: "carillon.delivered.v1"
    case .updated: "carillon.updated.v1"
    case .response: "carillon.response.v1"
    case .dismissed: "carillon.dismissed.v1"
    case .removed: "carillon.removed.v1"
    case .rejected: "carillon.rejected.v1"
    case .duplicate: "carillon.duplicate.v1"
    case .collapsed: "carillon.collapsed.v1"
    case .filtered: "carillon.filtered.v1"
    case .expired: "carillon.expired.v1"
    case .evicted: "carillon.evicted.v1"
    case .unregistered: "carillon.unregistered.v1"
    case .registered: "carillon.registered.v1"
    case .settingsChanged: "carillon.settings-changed.v1"
    case .unregisteredDevice: "carillon.unregistered-device.v1"
    }
  }

  /// The middle of the CloudEvents type: `carillon.<name>.v1`.
  public var name: String { String(cloudEventsType.description.dropFirst("carillon.".count).dropLast(".v1".count)) }

  /// The type of a name.
  public init?(name: String) {
    guard let type = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = type
  }

  /// The type that a `ce_type` names.
  public init?(cloudEventsType name: String) {
    guard let type = Self.allCases.first(where: { $0.cloudEventsType.description == name }) else { return nil }
    self = type
  }

  /// Whether it is about a device and not about a request.
  public var isAboutDevice: Bool {
    switch self {
    case .registered, .settingsChanged, .unregisteredDevice: true
    default: false
    }
  }
}
