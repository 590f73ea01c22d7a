public import JSON

/// The content of a notification, read from its payload: like `UNNotificationContent` on a phone.
///
/// ``PayloadFacts`` checks a payload without reading its values. This type reads the values of a checked payload for display.
public struct NotificationContent: Sendable, Equatable {
  /// The title; empty when there is none.
  public private(set) var title = ""
  /// The subtitle; empty if there is none.
  public private(set) var subtitle = ""
  /// The text; empty if there is none.
  public private(set) var body = ""
  /// The key and arguments of the title; `nil` without a key.
  public private(set) var localizedTitle: LocalizedText?
  /// The key and arguments of the subtitle; `nil` without a key.
  public private(set) var localizedSubtitle: LocalizedText?
  /// The key and arguments of the text; `nil` without a key.
  public private(set) var localizedBody: LocalizedText?
  /// The image or storyboard at the application's start; `nil` for its usual one.
  public private(set) var launchImageName: String?
  /// The number on the application's icon; 0 clears it, `nil` leaves it.
  public private(set) var badge: Int?
  /// The sound; `nil` without one.
  public private(set) var sound: NotificationSound?
  /// The name of the notification's group.
  public private(set) var threadIdentifier: Name?
  /// The identifier of the category with its actions.
  public private(set) var categoryIdentifier: Name?
  /// The window of the application that opens.
  public private(set) var targetContentIdentifier: Name?
  /// The text that a Focus compares with its filter.
  public private(set) var filterCriteria: String?
  /// How far the notification may interrupt.
  public private(set) var interruptionLevel = InterruptionLevel.active
  /// The rank in a summary: from 0 to 1, in a Live Activity any number.
  public private(set) var relevanceScore: Double?
  /// Whether it wakes the application.
  public private(set) var isContentAvailable = false
  /// Whether a service extension may change it.
  public private(set) var isMutable = false
  /// The complete payload with the application's own members.
  public private(set) var payload: JSONValue

  /// Whether there is text to read.
  public var hasAlert: Bool { !title.isEmpty || !subtitle.isEmpty || !body.isEmpty }
  /// Whether it only wakes the application.
  public var isBackground: Bool { !hasAlert && badge == nil && sound == nil }

  /// A member of the payload that belongs to the application: all but `aps`.
  public subscript(userInfo key: String) -> JSONValue? { key == "aps" ? nil : payload[key] }

  /// Reads a payload. A value of an unexpected type counts as absent.
  ///
  /// A localisation key without a text is shown as text, as in an application that lacks the translation.
  public init(_ payload: JSONValue) {
    self.payload = payload
    guard let aps = payload["aps"] else { return }
    switch aps["alert"] {
    case .string(let text)?: body = text
    case .object?: read(alert: aps["alert"] ?? .null)
    default: break
    }
    badge = aps["badge"]?.integerValue.flatMap { Int(exactly: $0) }
    sound = aps["sound"].flatMap(NotificationSound.init)
    threadIdentifier = aps["thread-id"]?.nameValue
    categoryIdentifier = aps["category"]?.nameValue
    targetContentIdentifier = aps["target-content-id"]?.nameValue
    filterCriteria = aps["filter-criteria"]?.stringValue
    relevanceScore = aps["relevance-score"]?.doubleValue
    isContentAvailable = aps["content-available"]?.integerValue == 1
    isMutable = aps["mutable-content"]?.integerValue == 1
    let level = aps["interruption-level"]?.stringValue.flatMap(InterruptionLevel.init(rawValue:))
    interruptionLevel = sound?.isCritical == true ? .critical : level ?? .active
  }

  /// Reads a payload's bytes. Invalid JSON gives empty content.
  public init(payload: [UInt8]) {
    self.init(payload.withUnsafeBytes { try? JSONValue(parsing: $0) } ?? .null)
  }

  private mutating func read(alert: JSONValue) {
    // In a Live Activity a text may be an object with a key.
    func localized(_ name: String, _ key: String, _ arguments: String) -> LocalizedText? {
      LocalizedText(key: alert[name]?["loc-key"], arguments: alert[name]?["loc-args"])
        ?? LocalizedText(key: alert[key], arguments: alert[arguments])
    }
    localizedTitle = localized("title", "title-loc-key", "title-loc-args")
    localizedSubtitle = localized("subtitle", "subtitle-loc-key", "subtitle-loc-args")
    localizedBody = localized("body", "loc-key", "loc-args")
    title = alert["title"]?.stringValue ?? localizedTitle?.key ?? ""
    subtitle = alert["subtitle"]?.stringValue ?? localizedSubtitle?.key ?? ""
    body = alert["body"]?.stringValue ?? localizedBody?.key ?? ""
    launchImageName = alert["launch-image"]?.stringValue
  }
}

/// A text in the application's own languages: a key and its arguments.
public struct LocalizedText: Sendable, Equatable {
  /// The key of the text.
  public let key: String
  /// The arguments for the placeholders of the text.
  public let arguments: [String]

  /// Creates a text from its parts.
  public init(key: String, arguments: [String] = []) { (self.key, self.arguments) = (key, arguments) }

  fileprivate init?(key: JSONValue?, arguments: JSONValue?) {
    guard let key = key?.stringValue else { return nil }
    self.init(key: key, arguments: arguments?.elements?.compactMap(\.stringValue) ?? [])
  }
}
