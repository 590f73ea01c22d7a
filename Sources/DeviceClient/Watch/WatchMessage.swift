internal import JSON
internal import Notifications

/// A message between a phone and its watch: a JSON object, whose members are those of the device protocol.
enum WatchMessage: Sendable, Equatable {
  // The phone sends these.

  /// The watch may claim a notification, and then has so many milliseconds to show it.
  case offer(NotificationShowing, NotifyFrame, milliseconds: UInt64)
  /// The watch may show what it has claimed.
  case grant(NotificationShowing, claim: Name)
  /// What became of a notification?
  case ask(NotificationShowing)
  /// A notification is not offered any more.
  case gone(NotificationShowing)
  /// A notification has left the phone's list.
  case remove(NotificationShowing)
  /// The phone has stored a response.
  case taken(response: String)
  /// The person's quiet hours; nil if there are none.
  case hours(QuietHours?)

  // The watch sends these.

  /// The watch can show a notification.
  case claim(NotificationShowing, claim: Name)
  /// The watch has shown a notification.
  case shown(NotificationShowing)
  /// The watch has not shown a notification, and never will.
  case never(NotificationShowing)
  /// What the person did with a notification on the watch.
  case response(ResponseFrame, NotificationShowing, NotifyFrame)
  /// A notification has left the watch's list without a response.
  case cleared(NotificationShowing)
  /// What are the person's quiet hours?
  case askHours

  /// The longest lease that a message may name, in milliseconds.
  static let longestMilliseconds: UInt64 = 3_600_000

  /// The bytes for the channel.
  var bytes: [UInt8] {
    var members: [JSONValue.Member] = [.init(key: "watch", value: .string(word))]
    func add(_ key: String, _ value: JSONValue) { members.append(.init(key: key, value: value)) }
    func add(_ showing: NotificationShowing) { add("showing", showing.value) }
    func add(_ frame: NotifyFrame) { add("frame", Self.value(StoredFrame.bytes(frame))) }
    switch self {
    case .offer(let showing, let frame, let milliseconds):
      add(showing)
      add(frame)
      add("milliseconds", .integer(Int64(clamping: milliseconds)))
    case .grant(let showing, let claim), .claim(let showing, let claim):
      add(showing)
      add("claim", .string(claim.text))
    case .ask(let showing), .gone(let showing), .remove(let showing), .shown(let showing), .never(let showing), .cleared(let showing):
      add(showing)
    case .taken(let response): add("response", .string(response))
    case .hours(let hours):
      var json = JSONWriter()
      SettingsFrame(person: PersonSettings(quiet: hours)).write(to: &json)
      add("settings", Self.value(json.withUnsafeBytes { Array($0) }))
    case .askHours: break
    case .response(let response, let showing, let frame):
      add(showing)
      add(frame)
      var json = JSONWriter(capacity: 512)
      var response = response
      // One to a local notification of the phone has none, and an empty one would not be read again.
      if response.receipt.isEmpty { response.receipt = "local" }
      response.write(to: &json)
      add("response", Self.value(json.withUnsafeBytes { Array($0) }))
    }
    return Array(JSONValue.object(members).text.utf8)
  }

  /// Reads a message; nil if the bytes are none that this version knows.
  init?(_ bytes: [UInt8]) {
    guard let value = bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }) else { return nil }
    let showing = value["showing"].flatMap(NotificationShowing.init)
    let claim = value["claim"]?.nameValue
    var frame: NotifyFrame? { value["frame"].flatMap { StoredFrame.frame(Array($0.text.utf8)) } }
    switch (value["watch"]?.stringValue, showing) {
    case ("offer", let showing?):
      guard let frame, let milliseconds = value["milliseconds"]?.integerValue.flatMap({ UInt64(exactly: $0) }),
        milliseconds <= Self.longestMilliseconds
      else { return nil }
      self = .offer(showing, frame, milliseconds: milliseconds)
    case ("grant", let showing?):
      guard let claim else { return nil }
      self = .grant(showing, claim: claim)
    case ("claim", let showing?):
      guard let claim else { return nil }
      self = .claim(showing, claim: claim)
    case ("ask", let showing?): self = .ask(showing)
    case ("gone", let showing?): self = .gone(showing)
    case ("remove", let showing?): self = .remove(showing)
    case ("shown", let showing?): self = .shown(showing)
    case ("never", let showing?): self = .never(showing)
    case ("cleared", let showing?): self = .cleared(showing)
    case ("taken", nil):
      guard let response = value["response"]?.stringValue else { return nil }
      self = .taken(response: response)
    case ("hours", nil):
      guard let text = value["settings"]?.text, case .settings(let frame)? = Self.frame(text), let person = frame.person else { return nil }
      self = .hours(person.quiet)
    case ("askHours", nil): self = .askHours
    case ("response", let showing?):
      guard let frame, let text = value["response"]?.text, case .response(let response)? = Self.frame(text) else { return nil }
      self = .response(response, showing, frame)
    default: return nil
    }
  }

  private var word: String {
    switch self {
    case .offer: "offer"
    case .grant: "grant"
    case .ask: "ask"
    case .gone: "gone"
    case .remove: "remove"
    case .taken: "taken"
    case .hours: "hours"
    case .askHours: "askHours"
    case .claim: "claim"
    case .shown: "shown"
    case .never: "never"
    case .cleared: "cleared"
    case .response: "response"
    }
  }

  private static func value(_ bytes: [UInt8]) -> JSONValue {
    guard let value = bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }) else { preconditionFailure("a frame is JSON") }
    return value
  }

  private static func frame(_ text: String) -> DeviceFrame? { Array(text.utf8).withUnsafeBytes { try? DeviceFrame($0) } }
}
