import JSON
import Notifications
import Operations

/// Dead letters for a person or for a program.
struct LetterPrinter {
  /// The prefix of all topics, which is removed for a person.
  let prefix: String
  /// Milliseconds since 1970.
  let now: Int64
  /// The characters of a line; nil for any number.
  var width: Int?

  // MARK: Groups

  /// Renders a table with a line for each group.
  ///
  /// - Parameters:
  ///   - counts: the columns of counts.
  ///   - limit: the most groups; others are counted.
  func table(_ groups: [LetterGroup], _ counts: [Count] = Self.counts, atMost limit: Int = .max) -> [String] {
    let further = groups.dropFirst(limit).reduce(0) { $0 + $1.count }
    let rows = groups.prefix(limit).map { group in
      [TerminalText.visible(group.reason), group.application.map { TerminalText.visible($0) } ?? "-", "\(group.count)"]
        + counts.map { "\($0.of(group))" } + [age(group.oldest), age(group.newest)]
    }
    return TerminalTable(
      heading: ["reason", "application", "letters"] + counts.map(\.name) + ["oldest", "newest"], words: [1], alignsLast: true
    ).lines(rows, width: nil)
      + (further > 0 ? ["and \(TerminalText.count(further, "letter")) of other reasons and applications"] : [])
  }

  /// A count of a group, with its name.
  typealias Count = (name: String, of: (LetterGroup) -> Int)
  private static var counts: [Count] {
    LetterStanding.allCases.map { standing in (standing.rawValue, { $0.counts[standing] ?? 0 }) } + [("again", \.again)]
  }

  /// How long ago a time was.
  func age(_ time: Int64) -> String { TerminalText.duration(max(0, now - time)) }

  func json(_ group: LetterGroup) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init(key: "reason", value: .string(group.reason)),
      .init(key: "application", value: group.application.map { .string($0.text) } ?? .null),
      .init(key: "letters", value: .integer(Int64(group.count))),
    ]
    members += Self.counts.map { .init(key: $0.name, value: .integer(Int64($0.of(group)))) }
    members += [
      .init(key: "oldest", value: .string(Timestamp.text(group.oldest))),
      .init(key: "newest", value: .string(Timestamp.text(group.newest))),
      .init(key: "oldestAgeMs", value: .integer(max(0, now - group.oldest))),
      .init(key: "newestAgeMs", value: .integer(max(0, now - group.newest))),
    ]
    return .object(members)
  }

  // MARK: Single letters

  /// Renders one letter of a list.
  func line(_ letter: LetterSummary) -> String {
    let facts = letter.facts
    var columns = [
      TerminalText.padded(facts.place.description, 10), Timestamp.text(facts.time), TerminalText.padded(letter.standing.rawValue, 9),
      TerminalText.visible(facts.letter.reason), facts.id.description,
    ]
    if let application = facts.application { columns.append(TerminalText.word("application", application)) }
    if let field = facts.letter.field { columns.append(TerminalText.word("field", field)) }
    if let times = again(letter.times) { columns.append("(\(times))") }
    return TerminalText.row(columns, width: width)
  }

  /// How often it came, if several times.
  private func again(_ times: Int) -> String? { times > 1 ? "came \(times) times for this reason" : nil }

  func members(_ letter: LetterSummary) -> [JSONValue.Member] {
    let (facts, dead) = (letter.facts, letter.facts.letter)
    var members: [JSONValue.Member] = []
    func add(_ name: String, _ value: String?) { if let value { members.append(.init(key: name, value: .string(value))) } }
    add("letter", facts.place.description)
    add("state", letter.standing.rawValue)
    members.append(.init(key: "times", value: .integer(Int64(letter.times))))
    add("time", Timestamp.text(facts.time))
    members.append(.init(key: "ageMs", value: .integer(max(0, now - facts.time))))
    add("reason", dead.reason)
    add("field", dead.field)
    add("rule", dead.rule)
    add("error", dead.error)
    members.append(.init(key: "tries", value: .integer(Int64(dead.tries))))
    members.append(.init(key: "source", value: json(dead.source)))
    if let last = dead.last { members.append(.init(key: "last", value: .integer(last))) }
    if facts.hasOrigin { members.append(.init(key: "first", value: json(facts.first))) }
    add("apnsId", facts.id.description)
    add("application", facts.application?.text)
    add("target", facts.target?.text)
    return members
  }

  func json(_ letter: LetterSummary) -> JSONValue { .object(members(letter)) }

  private func json(_ source: SourceCoordinates) -> JSONValue {
    .object([
      .init(key: "topic", value: .string(source.topic)), .init(key: "partition", value: .integer(Int64(source.position.partition))),
      .init(key: "offset", value: .integer(source.position.offset)),
      .init(key: "timestamp", value: .integer(source.position.timestamp)),
    ])
  }

  // MARK: In full

  /// Renders a letter, one fact a line.
  ///
  /// - Parameter showsAll: whether to show its payload and unknown headers too.
  func text(_ letter: LetterDetails, showsAll: Bool) -> [String] {
    let (facts, dead) = (letter.summary.facts, letter.summary.facts.letter)
    var lines = ["letter \(facts.place)"]
    func add(_ name: String, _ value: String?) {
      guard let value else { return }
      lines.append("  " + TerminalText.padded(name, 13) + " " + TerminalText.visible(value))
    }
    add("state", letter.summary.standing.rawValue)
    for state in letter.states { add("", sentence(state)) }
    add("again", again(letter.summary.times))
    add("written", "\(Timestamp.text(facts.time)) (\(age(facts.time)) ago)")
    add("reason", dead.reason)
    add("field", dead.field)
    add("rule", dead.rule)
    add("error", dead.error)
    add("tries", String(dead.tries))
    if let last = dead.last {
      add("source", "\(place(dead.source)) to \(last)")
    } else {
      add("source", "\(place(dead.source)) at \(Timestamp.text(dead.source.position.timestamp))")
    }
    if facts.hasOrigin { add("first", "\(place(facts.first)) at \(Timestamp.text(facts.first.position.timestamp))") }
    add("apns-id", facts.id.description + (facts.isDerivedID ? " (derived from where the request lies)" : ""))
    add("application", facts.application?.text)
    add("key", letter.record.key.map { String(decoding: $0, as: UTF8.self) } ?? "(none)")
    for header in letter.record.headers { add("header", "\(header.key): \(value(header, showsAll))") }
    add("payload", payload(letter, showsAll))
    return lines
  }

  private func sentence(_ state: LetterState) -> String {
    let request = state.request.map { " as requests/\($0.partition)@\($0.offset)" } ?? ""
    let id = state.id.map { ", apns-id \($0)" } ?? ""
    return "\(state.kind.rawValue) by \(state.by) at \(Timestamp.text(state.at))\(request)\(id)" + (state.note.map { ": \($0)" } ?? "")
  }

  private func place(_ source: SourceCoordinates) -> String {
    let topic = source.topic.hasPrefix(prefix) ? String(source.topic.dropFirst(prefix.utf8.count)) : source.topic
    return "\(topic)/\(source.position.partition)@\(source.position.offset)"
  }

  private func value(_ header: StoredRecord.Header, _ showsAll: Bool) -> String {
    guard let value = header.value else { return "(no value)" }
    guard showsAll || RequestHeader.named(header.key) != nil else {
      return "(\(TerminalText.count(value.count, "byte")); --payload shows them)"
    }
    return String(decoding: value, as: UTF8.self)
  }

  private func payload(_ letter: LetterDetails, _ showsAll: Bool) -> String {
    if letter.isGone { return "gone: it did not fit into the letter, and its source does not have it any more" }
    if showsAll, let value = letter.record.value { return String(decoding: value, as: UTF8.self) }
    if !letter.summary.facts.letter.isComplete, letter.valueBytes == nil { return "not in the letter; --payload reads it from its source" }
    return letter.valueBytes.map { "\(TerminalText.count($0, "byte")); --payload shows them" } ?? "(none)"
  }

  func json(_ letter: LetterDetails, showsAll: Bool) -> JSONValue {
    var members = members(letter.summary)
    members.append(
      .init(
        key: "states",
        value: .array(
          letter.states.map { state in
            var members: [JSONValue.Member] = [
              .init(key: "state", value: .string(state.kind.rawValue)), .init(key: "by", value: .string(state.by)),
              .init(key: "at", value: .string(Timestamp.text(state.at))),
            ]
            if let request = state.request { members.append(.init(key: "request", value: .string(request.description))) }
            if let id = state.id { members.append(.init(key: "apnsId", value: .string(id.description))) }
            if let note = state.note { members.append(.init(key: "note", value: .string(note))) }
            return .object(members)
          })))
    members.append(.init(key: "key", value: letter.record.key.map { .string(String(decoding: $0, as: UTF8.self)) } ?? .null))
    members.append(
      .init(
        key: "headers",
        value: .array(
          letter.record.headers.map { header in
            var members: [JSONValue.Member] = [.init(key: "name", value: .string(header.key.text))]
            if let value = header.value, showsAll || RequestHeader.named(header.key) != nil {
              members.append(.init(key: "value", value: .string(String(decoding: value, as: UTF8.self))))
            }
            members.append(.init(key: "bytes", value: header.value.map { .integer(Int64($0.count)) } ?? .null))
            return .object(members)
          })))
    members.append(.init(key: "payloadBytes", value: letter.valueBytes.map { .integer(Int64($0)) } ?? .null))
    if showsAll {
      members.append(.init(key: "payload", value: letter.record.value.map { .string(String(decoding: $0, as: UTF8.self)) } ?? .null))
    }
    if letter.isGone { members.append(.init(key: "gone", value: .bool(true))) }
    return .object(members)
  }
}
