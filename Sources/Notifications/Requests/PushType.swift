/// The kind of a notification, as in `apns-push-type`.
///
/// The raw value is its byte in stored records: never renumber.
public enum PushType: UInt8, Sendable, CaseIterable {
  /// Shown to the person.
  case alert = 1
  /// Wakes the application, shows nothing.
  case background = 2
  /// Reloads controls.
  case controls = 3
  /// Updates a watch complication.
  case complication = 4
  /// Signals changes to a file provider.
  case fileprovider = 5
  /// Updates a Live Activity.
  case liveactivity = 6
  /// Asks for the location.
  case location = 7
  /// Contacts a device management server.
  case mdm = 8
  /// Push to Talk.
  case pushtotalk = 9
  /// An incoming call.
  case voip = 10
  /// Reloads widgets.
  case widgets = 11

  /// The word in the header.
  public var name: StaticString { row.name }

  /// The suffix of `apns-topic` after the bundle id; empty if there is none.
  public var topicSuffix: StaticString { row.topicSuffix }

  private var row: (name: StaticString, topicSuffix: StaticString) {
    switch self {
    case .alert: ("alert", "")
    case .background: ("background", "")
    case .controls: ("controls", ".push-type.controls")
    case .complication: ("complication", ".complication")
    case .fileprovider: ("fileprovider", ".pushkit.fileprovider")
    case .liveactivity: ("liveactivity", ".push-type.liveactivity")
    case .location: ("location", ".location-query")
    case .mdm: ("mdm", "")
    case .pushtotalk: ("pushtotalk", ".voip-ptt")
    case .voip: ("voip", ".voip")
    case .widgets: ("widgets", ".push-type.widgets")
    }
  }

  /// Whether the payload may lack `aps`: PushKit passes the payload to the application.
  var needsNoAPS: Bool {
    switch self {
    case .voip, .complication, .fileprovider: true
    default: false
    }
  }

  /// Reads a push type from its word.
  public init?(name: UnsafeRawBufferPointer) {
    // Nearly all requests have one of the first two types.
    if name.equals("alert") {
      self = .alert
    } else if name.equals("background") {
      self = .background
    } else {
      guard let type = Self.allCases.first(where: { name.equals($0.name) }) else { return nil }
      self = type
    }
  }
}
