public import JSON

/// The content of a notification, read from its payload: what `UNNotificationContent` has on a phone.
///
/// ``PayloadFacts`` checks a payload without reading it into values. This type reads a payload that was checked, for those who show it.
public struct NotificationContent: Sendable, Equatable {
  /// The title; empty when there is none.
  public var title = ""
  /// The subtitle; empty if there is none.
  public var subtitle = ""
  /// The text; empty if there is none.
  public var body = ""
  /// The key and the arguments of the title; `nil` without a key.
  public var localizedTitle: LocalizedText?
  /// The key and the arguments of the subtitle; `nil` without a key.
  public var localizedSubtitle: LocalizedText?
  /// The key and the arguments of the text; `nil` without a key.
  public var localizedBody: LocalizedText?
  /// The image or storyboard that the application shows while it starts; `nil` for its usual one.
  public var launchImageName: String?
  /// The number at the application's icon; 0 clears it, `nil` leaves it.
  public var badge: Int?
  /// The sound; `nil` without one.
  public var sound: NotificationSound?
  /// The name of its group.
  public var threadIdentifier: Name?
  /// The category with its actions.
  public var categoryIdentifier: Name?
  /// Which window of the application opens.
  public var targetContentIdentifier: Name?
  /// What a Focus compares with its filter.
  public var filterCriteria: String?
  /// How much it may interrupt.
  public var interruptionLevel = InterruptionLevel.active
  /// Its place in a summary: from 0 to 1, in a Live Activity any number.
  public var relevanceScore: Double?
  /// Whether it wakes the application.
  public var isContentAvailable = false
  /// Whether a service extension may change it.
  public var isMutable = false
  /// The whole payload, the application's own members included.
  public var payload: JSONValue

  /// Whether it has a text to read.
  public var hasAlert: Bool { !title.isEmpty || !subtitle.isEmpty || !body.isEmpty }
  /// Whether it only wakes the application.
  public var isBackground: Bool { !hasAlert && badge == nil && sound == nil }

  /// A member of the application's own: all members of the payload except `aps`.
  public subscript(userInfo key: String) -> JSONValue? { key == "aps" ? nil : payload[key] }

  /// Reads a payload. A value of an unexpected type counts as absent.
  ///
  /// A localisation key without a text is shown itself, as in an application without the translation.
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

  /// Reads a payload's bytes; invalid JSON has no content.
  public init(payload: [UInt8]) {
    self.init(payload.withUnsafeBytes { try? JSONValue(parsing: $0) } ?? .null)
  }

  private mutating func read(alert: JSONValue) {
    // In a Live Activity a text may be an object with its key.
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

/// A text that the application has in its own language: a key and what to fill in.
public struct LocalizedText: Sendable, Equatable {
  /// The key of the text.
  public let key: String
  /// The arguments that the text's placeholders take.
  public let arguments: [String]

  /// A text from its parts.
  public init(key: String, arguments: [String] = []) { (self.key, self.arguments) = (key, arguments) }

  fileprivate init?(key: JSONValue?, arguments: JSONValue?) {
    guard let key = key?.stringValue else { return nil }
    self.init(key: key, arguments: arguments?.elements?.compactMap(\.stringValue) ?? [])
  }
}
