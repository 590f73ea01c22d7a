public import JSON
public import Notifications

/// A notification's content, which a service extension may change: the members of its payload, named as in `UNMutableNotificationContent`,
/// and the payload itself.
///
/// Changes are not checked here, but in the whole result of an extension (``ContentRules``).
public struct MutableContent: Sendable, Equatable {
  /// The payload: an object with the member `aps`.
  public var payload: JSONValue
  /// The attachments, in the order in which they are shown.
  public var attachments: [ContentAttachment]

  /// A content.
  public init(payload: JSONValue, attachments: [ContentAttachment] = []) { (self.payload, self.attachments) = (payload, attachments) }

  /// `aps.alert.title`
  public var title: String? {
    get { alert("title") }
    set { setAlert("title", newValue) }
  }

  /// `aps.alert.subtitle`
  public var subtitle: String? {
    get { alert("subtitle") }
    set { setAlert("subtitle", newValue) }
  }

  /// `aps.alert.body`, or the whole alert if that is a text.
  public var body: String? {
    get { payload["aps"]?["alert"]?.stringValue ?? alert("body") }
    set { setAlert("body", newValue) }
  }

  /// Changes the payload by a merge patch (RFC 7396). An alert that is a text counts as its body, which a patch of the alert's members keeps.
  mutating func merge(_ patch: JSONValue) {
    if case .string? = payload["aps"]?["alert"], case .object? = patch["aps"]?["alert"] { body = body }
    payload.merge(patch)
  }

  /// `aps.thread-id`: notifications of one thread are shown together.
  public var threadIdentifier: Name? {
    get { payload["aps"]?["thread-id"]?.nameValue }
    set { setAPS("thread-id", newValue.map { .string($0.text) }) }
  }

  /// `aps.category`: which actions the notification has.
  public var categoryIdentifier: Name? {
    get { payload["aps"]?["category"]?.nameValue }
    set { setAPS("category", newValue.map { .string($0.text) }) }
  }

  /// `aps.target-content-id`: which window of the application opens.
  public var targetContentIdentifier: Name? {
    get { payload["aps"]?["target-content-id"]?.nameValue }
    set { setAPS("target-content-id", newValue.map { .string($0.text) }) }
  }

  /// `aps.badge`: the number on the application's icon; 0 clears it.
  public var badge: Int64? {
    get { payload["aps"]?["badge"]?.integerValue }
    set { setAPS("badge", newValue.map { .integer($0) }) }
  }

  /// `aps.sound`, if it is a name.
  public var sound: String? {
    get { payload["aps"]?["sound"]?.stringValue }
    set { setAPS("sound", newValue.map { .string($0) }) }
  }

  /// `aps.interruption-level`
  public var interruptionLevel: String? {
    get { payload["aps"]?["interruption-level"]?.stringValue }
    set { setAPS("interruption-level", newValue.map { .string($0) }) }
  }

  /// `aps.relevance-score`: 0 to 1.
  public var relevanceScore: Double? {
    get { payload["aps"]?["relevance-score"]?.doubleValue }
    set { setAPS("relevance-score", newValue.map { JSONValue(floatLiteral: $0) }) }
  }

  /// The application's own members of the payload: all except `aps`.
  public subscript(userInfo key: String) -> JSONValue? {
    get { key == "aps" ? nil : payload[key] }
    set { if key != "aps" { payload.set(key, newValue) } }
  }

  private func alert(_ key: String) -> String? { payload["aps"]?["alert"]?[key]?.stringValue }

  /// Sets a text of the alert. An alert that is a text becomes an object with that body.
  private mutating func setAlert(_ key: String, _ text: String?) {
    payload.withMember("aps") { aps in
      aps?.withMember("alert") { alert in
        if case .string(let body) = alert { alert = ["body": .string(body)] }
        if alert == nil, text != nil { alert = .object([]) }
        alert?.set(key, text.map { .string($0) })
      }
    }
  }

  private mutating func setAPS(_ key: String, _ value: JSONValue?) { payload.withMember("aps") { $0?.set(key, value) } }
}
