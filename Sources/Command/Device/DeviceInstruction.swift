import Calendars
import DeviceClient
import JSON
import Notifications

/// An instruction to the device, as a script writes it:
/// `{"command": "act", "identifier": "order-7", "action": "reply", "userText": "thank you"}`.
///
/// What a person types becomes the same object. There a number is that of the notification on the screen.
struct DeviceInstruction: Sendable, Equatable {
  /// The object.
  let value: JSONValue

  /// The word for what is to be done.
  var command: String? { value["command"]?.stringValue }
}

/// Why a line is not an instruction.
struct InstructionError: Error, CustomStringConvertible {
  let description: String
}

// MARK: What is typed

extension DeviceInstruction {
  /// The members that the words of a typed line are, in their order, and how many of them it needs.
  private static let forms: [String: (needed: Int, members: [String])] = [
    "list": (0, []), "allow": (0, []), "deny": (0, []), "unregister": (0, []), "connect": (0, []), "help": (0, []), "quit": (0, []),
    "open": (1, ["identifier"]), "dismiss": (1, ["identifier"]), "fire": (1, ["identifier"]), "links": (1, ["identifier"]),
    "act": (2, ["identifier", "action", "userText"]), "reply": (2, ["identifier", "userText"]), "state": (0, ["state"]),
    "quiet": (3, ["from", "to", "timeZone"]),
  ]
  /// Other words for commands.
  private static let synonyms = ["ls": "list", "rm": "remove", "set": "settings", "?": "help", "exit": "quit"]

  /// Reads a typed line; nil for an empty one.
  init?(typed line: String) throws(InstructionError) {
    let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
    guard let first = words.first?.lowercased() else { return nil }
    let (command, rest) = (Self.synonyms[first] ?? first, Array(words.dropFirst()))
    switch (command, rest) {
    case ("add", _): self.init(command, try Self.request(line, rest))
    case ("settings", []), ("quiet", []): self.init("show-settings")
    case ("settings", _): self.init(command, [try Self.setting(rest)])
    case ("quiet", ["off"]), ("cancel", ["all"]): self.init(command)
    case ("remove", ["all"]): self.init("remove-all")
    case ("cancel", _), ("remove", _):
      guard !rest.isEmpty else { throw Self.incomplete(command) }
      // What waits has no number.
      self.init(command, [.init("identifiers", rest.map { command == "cancel" ? .string($0) : Self.reference($0) })])
    default:
      guard let form = Self.forms[command] else { throw InstructionError(description: "'\(words[0])' is not a command; type help") }
      guard rest.count >= form.needed else { throw Self.incomplete(command) }
      let members = zip(form.members, rest).enumerated().map { place, part -> JSONValue.Member in
        switch part.0 {
        case "identifier": .init(part.0, Self.reference(part.1))
        case "userText": .init(part.0, Self.text(line, after: place + 1))
        default: .init(part.0, part.1)
        }
      }
      self.init(command, members)
    }
  }

  private init(_ command: String, _ members: [JSONValue.Member] = []) { value = .object([.init("command", command)] + members) }

  /// The error of a line that lacks a word, with the line of the help.
  private static func incomplete(_ command: String) -> InstructionError {
    let usage = DeviceText.help.split(separator: "\n").first { $0.hasPrefix(command + " ") } ?? ""
    return InstructionError(description: "say more: \(usage.split(separator: " ").joined(separator: " "))")
  }

  /// A number, or else an identifier.
  private static func reference(_ word: String) -> JSONValue { Int64(word).map { .integer($0) } ?? .string(word) }

  /// Reads `add NAME [in SECONDS | every SECONDS | at HH:MM | daily HH:MM] TEXT`.
  private static func request(_ line: String, _ words: [String]) throws(InstructionError) -> [JSONValue.Member] {
    guard let identifier = words.first else { throw incomplete("add") }
    var trigger: JSONValue?
    let when = words.count > 2 ? words[1] : ""
    switch when {
    case "in", "every":
      guard let seconds = Double(words[2]) else { throw InstructionError(description: "'\(words[2])' is no number of seconds") }
      trigger = .object(["type": "timeInterval", "timeInterval": seconds, "repeats": when == "every"])
    case "at", "daily":
      let minutes = try minutes(ofDay: words[2])
      let components = JSONValue.object(["hour": minutes / 60, "minute": minutes % 60])
      trigger = .object(["type": "calendar", "dateComponents": components, "repeats": when == "daily"])
    default: break
    }
    guard let text = text(line, after: trigger == nil ? 2 : 4) else { throw incomplete("add") }
    let members = [JSONValue.Member("identifier", identifier), .init("payload", NotificationContent(body: text, sound: "default").payload)]
    return members + (trigger.map { [.init("trigger", $0)] } ?? [])
  }

  /// The text after the first words of a line, with its inner spaces; nil if there is none.
  private static func text(_ line: String, after words: Int) -> String? {
    var rest = Substring(line).drop(while: \.isWhitespace)
    for _ in 0..<words { rest = rest.drop { !$0.isWhitespace }.drop(while: \.isWhitespace) }
    while rest.last?.isWhitespace == true { rest.removeLast() }
    return rest.isEmpty ? nil : String(rest)
  }

  private static func setting(_ words: [String]) throws(InstructionError) -> JSONValue.Member {
    let (name, value) = (words[0], words.count == 2 ? words[1] : "")
    let isOn: [String: Bool] = ["on": true, "off": false, "true": true, "false": false]
    switch name {
    case _ where value.isEmpty: break
    case "status", "previews": return .init("change", JSONValue.object([.init(name, value)]))
    case "locale": return .init("locale", value)
    case "zone", "time-zone": return .init("timeZone", value)
    default:
      guard Authorization.Option(rawValue: name) != nil, let isOn = isOn[value] else { break }
      return .init("change", JSONValue.object([.init(name, isOn)]))
    }
    throw InstructionError(
      description:
        "settings status \(Authorization.Status.allCases.map(\.rawValue).joined(separator: "|")), settings alert|sound|badge|… on|off, settings previews \(Authorization.Previews.allCases.map(\.rawValue).joined(separator: "|")), settings locale de_AT, settings zone Europe/Vienna"
    )
  }
}

// MARK: Its members

extension DeviceInstruction {
  /// The notification that is meant.
  ///
  /// - Parameter numbered: returns the identifier of a number on the screen.
  func identifier(_ numbered: (Int) -> Name?) throws(InstructionError) -> Name { try Self.identifier(value["identifier"], numbered) }

  /// The notifications that are meant; nil if it names none.
  func identifiers(_ numbered: (Int) -> Name?) throws(InstructionError) -> [Name]? {
    guard let value = value["identifiers"] else { return nil }
    guard let elements = value.elements else { throw InstructionError(description: "identifiers: a list of texts") }
    return try elements.map { (element) throws(InstructionError) in try Self.identifier(element, numbered) }
  }

  private static func identifier(_ value: JSONValue?, _ numbered: (Int) -> Name?) throws(InstructionError) -> Name {
    if let name = value?.nameValue { return name }
    guard let number = value?.integerValue else { throw InstructionError(description: "identifier: which notification is meant?") }
    guard let name = numbered(Int(number)) else { throw InstructionError(description: "no notification has the number \(number)") }
    return name
  }

  /// A member with a text that it cannot do without.
  func text(_ member: String) throws(InstructionError) -> String {
    guard let text = value[member]?.stringValue else { throw InstructionError(description: "\(member): which one?") }
    return text
  }

  /// The local request of `{"identifier": "tea", "payload": {"aps": {"alert": "Tea"}}, "trigger": {"type": "timeInterval", …}}`.
  func request() throws(InstructionError) -> NotificationRequest {
    guard let payload = value["payload"], payload.members != nil else {
      throw InstructionError(description: "payload: an object with aps, as a request of the cluster has it")
    }
    let trigger = value["trigger"]?.text
    do throws(Rejection) {
      _ = try trigger?.withBytes { bytes throws(Rejection) in try Trigger(bytes) }
    } catch { throw InstructionError(description: "\(error.field): \(error.rule)") }
    return NotificationRequest(
      identifier: Name(try text("identifier")), content: NotificationContent(payload),
      trigger: trigger.flatMap { NotificationTrigger(json: $0) })
  }

  /// The person's quiet hours; nil to remove them.
  func quietHours() throws(InstructionError) -> QuietHours? {
    let words = ["from", "to", "timeZone"].compactMap { value[$0]?.stringValue }
    if words.isEmpty { return nil }
    guard words.count == 3 else { throw Self.incomplete("quiet") }
    let (from, to) = (try Self.minutes(ofDay: words[0]), try Self.minutes(ofDay: words[1]))
    guard QuietCalendar.isZone(words[2]) else {
      throw InstructionError(description: "there is no time zone '\(words[2])' such as in quiet 22:00 07:00 Europe/Rome")
    }
    return QuietHours(from: from, to: to, timeZone: words[2])
  }

  /// Reads a wall-clock time such as `09:30`: minutes since midnight.
  private static func minutes(ofDay text: String) throws(InstructionError) -> Int {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let hour = parts[0], let minute = parts[1], (0..<24).contains(hour), (0..<60).contains(minute) else {
      throw InstructionError(description: "'\(text)' is no time: write 'daily 09:30' or 'quiet 22:00 07:00 Europe/Rome'")
    }
    return hour * 60 + minute
  }
}
