public import JSON
public import Notifications

/// The content of a notification, read from its payload.
public struct NotificationContent: Sendable, Equatable {
  /// The title; empty when there is none.
  public var title = ""
  /// The subtitle; empty if there is none.
  public var subtitle = ""
  /// The text; empty if there is none.
  public var body = ""
  /// The number at the application's icon; 0 clears it, `nil` leaves it.
  public var badge: Int?
  /// The sound's name; `nil` without a sound.
  public var sound: String?
  /// The name of its group.
  public var threadIdentifier: Name?
  /// The category with its actions.
  public var categoryIdentifier: Name?
  /// How much it may interrupt.
  public var interruptionLevel = InterruptionLevel.active
  /// The whole payload, the application's own members included.
  public var payload: JSONValue

  /// Whether it has a text to read.
  public var hasAlert: Bool { !title.isEmpty || !subtitle.isEmpty || !body.isEmpty }
  /// Whether it only wakes the application.
  public var isBackground: Bool { !hasAlert && badge == nil && sound == nil }

  /// Reads a payload. A value of an unexpected type counts as absent.
  ///
  /// A localisation key without a text is shown itself, as in an application without the translation.
  public init(_ payload: JSONValue) {
    self.payload = payload
    guard let aps = payload["aps"] else { return }
    switch aps["alert"] {
    case .string(let text)?: body = text
    case .object?:
      let alert = aps["alert"]
      // In a Live Activity a text may be an object with its key.
      func text(_ name: String, _ key: String) -> String {
        alert?[name]?.stringValue ?? alert?[name]?["loc-key"]?.stringValue ?? alert?[key]?.stringValue ?? ""
      }
      title = text("title", "title-loc-key")
      subtitle = text("subtitle", "subtitle-loc-key")
      body = text("body", "loc-key")
    default: break
    }
    badge = aps["badge"]?.integerValue.flatMap { Int(exactly: $0) }
    sound = aps["sound"]?.stringValue ?? (aps["sound"]?.members == nil ? nil : aps["sound"]?["name"]?.stringValue ?? "default")
    threadIdentifier = aps["thread-id"]?.nameValue
    categoryIdentifier = aps["category"]?.nameValue
    interruptionLevel = aps["interruption-level"]?.stringValue.flatMap(InterruptionLevel.init(rawValue:)) ?? .active
  }

  /// Reads a payload's bytes; invalid JSON has no content.
  init(payload: [UInt8]) {
    self.init(payload.withUnsafeBytes { try? JSONValue(parsing: $0) } ?? .null)
  }
}
