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
    let (word, showing, own) = parts
    return JSONValue.object(["watch": word]).appending(contentsOf: .object(present: ["showing": showing?.value]))
      .appending(contentsOf: .object(present: own)).jsonBytes
  }

  /// The word of the message, the notification that it is about, and its own members.
  private var parts: (word: String, NotificationShowing?, own: JSONValue.Members) {
    switch self {
    case .offer(let showing, let frame, let milliseconds):
      ("offer", showing, ["frame": Self.value(frame), "milliseconds": Int64(clamping: milliseconds)])
    case .grant(let showing, let claim): ("grant", showing, ["claim": claim])
    case .claim(let showing, let claim): ("claim", showing, ["claim": claim])
    case .ask(let showing): ("ask", showing, [:])
    case .gone(let showing): ("gone", showing, [:])
    case .remove(let showing): ("remove", showing, [:])
    case .shown(let showing): ("shown", showing, [:])
    case .never(let showing): ("never", showing, [:])
    case .cleared(let showing): ("cleared", showing, [:])
    case .taken(let response): ("taken", nil, ["response": response])
    case .hours(let hours): ("hours", nil, ["settings": Self.value(SettingsFrame(person: PersonSettings(quiet: hours)))])
    case .askHours: ("askHours", nil, [:])
    case .response(let response, let showing, let frame):
      ("response", showing, ["frame": Self.value(frame), "response": Self.value(response.withReceipt)])
    }
  }

  /// Reads a message; nil if the bytes are none that this version knows.
  init?(_ bytes: [UInt8]) {
    guard let value = bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }) else { return nil }
    let showing = value["showing"].flatMap(NotificationShowing.init)
    let claim = value["claim"]?.nameValue
    var frame: NotifyFrame? { value["frame"].flatMap { NotifyFrame(stored: Array($0.text.utf8)) } }
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

  private static func value(_ frame: some JSONWritable) -> JSONValue {
    guard let value = frame.jsonBytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }) else { preconditionFailure("a frame is JSON") }
    return value
  }

  private static func frame(_ text: String) -> DeviceFrame? { Array(text.utf8).withUnsafeBytes { try? DeviceFrame($0) } }
}

extension ResponseFrame {
  /// One to a local notification of the phone has no receipt, and an empty one would not be read again.
  fileprivate var withReceipt: ResponseFrame {
    var response = self
    if response.receipt.isEmpty { response.receipt = "local" }
    return response
  }
}
