import DeviceClient
import JSON
import Notifications

/// An instruction to the device, from a person or a script.
enum DeviceInstruction: Sendable, Equatable {
  /// The notification that is meant.
  enum Reference: Sendable, Equatable {
    /// The number that it was shown with.
    case number(Int)
    /// Its identifier.
    case identifier(Name)
  }

  /// A change of a setting.
  enum Setting: Sendable, Equatable {
    case authorization(Authorization)
    case status(Authorization.Status)
    case option(Authorization.Option, Bool)
    case previews(Authorization.Previews)
    case locale(String?, timeZone: String?)
  }

  case list
  /// Add a local request.
  case add(NotificationRequest)
  /// List the requests that wait.
  case pending
  /// Remove requests that wait; all without names.
  case cancel([Name])
  case open(Reference)
  case act(Reference, action: Name, userText: String?)
  /// Reply with the first text action of the category.
  case reply(Reference, text: String)
  case dismiss(Reference)
  /// Open its panel.
  case expand(Reference)
  case collapse
  /// Tap a control of the panel.
  case tap(Name, text: String?)
  /// Tap the panel's button that plays and pauses.
  case media
  case remove([Reference])
  case removeAll
  case fire(Reference)
  /// Get new links to its attachments.
  case links(Reference)
  case settings([Setting])
  case showSettings
  /// Set the person's quiet hours; nil to remove them.
  case quiet(QuietHours?)
  /// Set the state of the program; nil to show it.
  case state(ApplicationState?)
  /// Go to the application's own settings, from a notification or from none.
  case openSettings(Reference?)
  case categories([NotificationCategory])
  /// Answer the question whether the application may show notifications.
  case answer(Bool)
  case unregister
  case connect
  case help
  case quit
}

/// Why typed text is not an instruction.
struct InstructionError: Error, CustomStringConvertible {
  let description: String
}

extension DeviceInstruction {
  /// Reads a typed line; nil for an empty one.
  init?(typed line: String) throws(InstructionError) {
    let words = line.split(whereSeparator: \.isWhitespace)
    guard let first = words.first else { return nil }
    let rest = words.dropFirst().map(String.init)
    func reference(_ usage: String) throws(InstructionError) -> Reference {
      guard let word = rest.first else { throw InstructionError(description: "say which: \(usage)") }
      return Reference(word)
    }
    switch first.lowercased() {
    case "list", "ls": self = .list
    case "add": self = .add(try Self.request(line, rest))
    case "pending": self = .pending
    case "cancel":
      guard !rest.isEmpty else { throw InstructionError(description: "say which: cancel IDENTIFIER…, or cancel all") }
      self = .cancel(rest == ["all"] ? [] : rest.map { Name($0) })
    case "open": self = .open(try reference("open N"))
    case "act":
      let reference = try reference("act N ACTION [TEXT]")
      guard rest.count > 1 else { throw InstructionError(description: "say which action: act N ACTION [TEXT]") }
      self = .act(reference, action: Name(rest[1]), userText: Self.text(line, after: 3))
    case "reply":
      let reference = try reference("reply N TEXT")
      guard let text = Self.text(line, after: 2) else { throw InstructionError(description: "say what: reply N TEXT") }
      self = .reply(reference, text: text)
    case "dismiss": self = .dismiss(try reference("dismiss N"))
    case "expand": self = .expand(try reference("expand N"))
    case "collapse": self = .collapse
    case "tap":
      guard let control = rest.first else { throw InstructionError(description: "say which control: tap CONTROL [TEXT]") }
      self = .tap(Name(control), text: Self.text(line, after: 2))
    case "media": self = .media
    case "remove", "rm":
      _ = try reference("remove N…, or remove all")
      self = rest == ["all"] ? .removeAll : .remove(rest.map { Reference($0) })
    case "fire": self = .fire(try reference("fire IDENTIFIER"))
    case "links": self = .links(try reference("links N"))
    case "settings", "set": self = rest.isEmpty ? .showSettings : .settings([try Self.setting(rest)])
    case "quiet": self = rest.isEmpty ? .showSettings : .quiet(try Self.quietHours(rest))
    case "state":
      let state = rest.first.flatMap(ApplicationState.init(rawValue:))
      guard rest.isEmpty || state != nil else { throw InstructionError(description: Self.states) }
      self = .state(state)
    case "app-settings": self = .openSettings(rest.first.map { Reference($0) })
    case "allow", "deny": self = .answer(first.lowercased() == "allow")
    case "unregister": self = .unregister
    case "connect": self = .connect
    case "help", "?": self = .help
    case "quit", "exit": self = .quit
    default: throw InstructionError(description: "'\(first)' is not a command; type help")
    }
  }

  private static let states = "state: one of \(ApplicationState.allCases.map(\.rawValue).joined(separator: ", "))"

  /// Reads `add IDENTIFIER [in SECONDS | every SECONDS | at HH:MM | daily HH:MM] TEXT`.
  private static func request(_ line: String, _ words: [String]) throws(InstructionError) -> NotificationRequest {
    let usage = "add IDENTIFIER [in SECONDS | every SECONDS | at HH:MM | daily HH:MM] TEXT"
    guard let identifier = words.first else { throw InstructionError(description: "say what: \(usage)") }
    var trigger: NotificationTrigger?
    let when = words.count > 2 ? words[1] : ""
    switch when {
    case "in", "every":
      guard let seconds = Double(words[2]) else { throw InstructionError(description: "'\(words[2])' is no number of seconds: \(usage)") }
      trigger = .timeInterval(seconds, repeats: when == "every")
    case "at", "daily":
      let minutes = try minutes(ofDay: words[2], usage)
      var units = CalendarUnits()
      (units[.hour], units[.minute]) = (minutes / 60, minutes % 60)
      trigger = .calendar(units, repeats: when == "daily")
    default: break
    }
    guard let text = text(line, after: trigger == nil ? 2 : 4) else { throw InstructionError(description: "say what: \(usage)") }
    return NotificationRequest(
      identifier: Name(identifier), content: NotificationContent(body: text, sound: "default"), trigger: trigger)
  }

  /// The text after the first words of a line, with its inner spaces; nil if there is none.
  private static func text(_ line: String, after words: Int) -> String? {
    var rest = Substring(line).drop(while: \.isWhitespace)
    for _ in 0..<words { rest = rest.drop { !$0.isWhitespace }.drop(while: \.isWhitespace) }
    while rest.last?.isWhitespace == true { rest.removeLast() }
    return rest.isEmpty ? nil : String(rest)
  }

  private static func setting(_ words: [String]) throws(InstructionError) -> Setting {
    let usage =
      "settings status \(Authorization.Status.allCases.map(\.rawValue).joined(separator: "|")), settings alert|sound|badge|… on|off, settings previews \(Authorization.Previews.allCases.map(\.rawValue).joined(separator: "|")), settings locale de_AT, settings zone Europe/Vienna"
    guard words.count == 2 else { throw InstructionError(description: usage) }
    let (name, value) = (words[0], words[1])
    switch name {
    case "status":
      if let status = Authorization.Status(rawValue: value) { return .status(status) }
    case "previews":
      if let previews = Authorization.Previews(rawValue: value) { return .previews(previews) }
    case "locale": return .locale(value, timeZone: nil)
    case "zone", "time-zone": return .locale(nil, timeZone: value)
    default:
      let isOn: [String: Bool] = ["on": true, "off": false, "true": true, "false": false]
      if let option = Authorization.Option(rawValue: name), let isOn = isOn[value] { return .option(option, isOn) }
    }
    throw InstructionError(description: usage)
  }
}

extension DeviceInstruction.Reference {
  /// Reads a number, or else an identifier.
  init(_ word: String) { self = Int(word).map { .number($0) } ?? .identifier(Name(word)) }
}

extension DeviceInstruction {
  /// Reads a line of a script: `{"command": "act", "identifier": "order-7", "action": "reply", "userText": "thank you"}`.
  init(json value: JSONValue) throws(InstructionError) {
    func text(_ key: String) -> String? { value[key]?.stringValue }
    func identifier() throws(InstructionError) -> Reference {
      guard let identifier = value["identifier"]?.nameValue else {
        throw InstructionError(description: "identifier: which notification is meant?")
      }
      return .identifier(identifier)
    }
    func identifiers() throws(InstructionError) -> [Name]? {
      guard let value = value["identifiers"] else { return nil }
      let names = value.elements?.compactMap(\.nameValue)
      guard let names, names.count == value.elements?.count else {
        throw InstructionError(description: "identifiers: a list of texts")
      }
      return names
    }
    switch text("command") {
    case "list": self = .list
    case "add": self = .add(try Self.request(value))
    case "pending": self = .pending
    case "cancel": self = .cancel(try identifiers() ?? [])
    case "open": self = .open(try identifier())
    case "act":
      guard let action = value["action"]?.nameValue else { throw InstructionError(description: "action: which one?") }
      self = .act(try identifier(), action: action, userText: text("userText"))
    case "reply":
      guard let userText = text("userText") ?? text("text") else { throw InstructionError(description: "userText: what is the answer?") }
      self = .reply(try identifier(), text: userText)
    case "dismiss": self = .dismiss(try identifier())
    case "expand": self = .expand(try identifier())
    case "collapse": self = .collapse
    case "tap":
      guard let control = value["control"]?.nameValue else { throw InstructionError(description: "control: which one?") }
      self = .tap(control, text: text("text"))
    case "media": self = .media
    case "remove":
      if let names = try identifiers() {
        self = .remove(names.map { .identifier($0) })
      } else {
        self = .remove([try identifier()])
      }
    case "remove-all": self = .removeAll
    case "fire": self = .fire(try identifier())
    case "links": self = .links(try identifier())
    case "settings": self = .settings(try Self.settings(value))
    case "quiet":
      let words = ["from", "to", "timeZone"].compactMap(text)
      self = .quiet(try Self.quietHours(words.isEmpty ? ["off"] : words))
    case "categories":
      do throws(FieldError) {
        self = .categories(try DeviceShapes.categories(value["categories"] ?? .null))
      } catch { throw InstructionError(description: "\(error)") }
    case "state":
      guard let state = text("state").flatMap(ApplicationState.init(rawValue:)) else { throw InstructionError(description: Self.states) }
      self = .state(state)
    case "app-settings": self = .openSettings(value["identifier"]?.nameValue.map { .identifier($0) })
    case "unregister": self = .unregister
    case "connect": self = .connect
    case "quit": self = .quit
    default:
      throw InstructionError(
        description:
          "command: one of list, add, pending, cancel, open, act, reply, dismiss, expand, collapse, tap, media, remove, remove-all, fire, links, settings, quiet, state, app-settings, categories, unregister, connect, quit"
      )
    }
  }

  /// Reads `{"command": "add", "identifier": "tea", "payload": {"aps": {"alert": "Tea"}}, "trigger": {"type": "timeInterval", …}}`.
  private static func request(_ value: JSONValue) throws(InstructionError) -> NotificationRequest {
    guard let identifier = value["identifier"]?.nameValue else { throw InstructionError(description: "identifier: what is its name?") }
    guard let payload = value["payload"], payload.members != nil else {
      throw InstructionError(description: "payload: an object with aps, as a request of the cluster has it")
    }
    var trigger: NotificationTrigger?
    if let text = value["trigger"]?.text {
      trigger = NotificationTrigger(json: text)
      if trigger == nil { throw InstructionError(description: "trigger: an object as in the header trigger of a request") }
    }
    return NotificationRequest(identifier: identifier, content: NotificationContent(payload), trigger: trigger)
  }

  private static func settings(_ value: JSONValue) throws(InstructionError) -> [Setting] {
    var settings: [Setting] = []
    if let authorization = value["authorization"] {
      do throws(FieldError) {
        settings.append(.authorization(try DeviceShapes.authorization(authorization)))
      } catch { throw InstructionError(description: "\(error)") }
    }
    let (locale, timeZone) = (value["locale"]?.stringValue, value["timeZone"]?.stringValue)
    if locale != nil || timeZone != nil { settings.append(.locale(locale, timeZone: timeZone)) }
    guard !settings.isEmpty else { throw InstructionError(description: "settings: give authorization, locale or timeZone") }
    return settings
  }
}
