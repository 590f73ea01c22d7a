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
  func table(_ groups: [LetterGroup]) -> [String] {
    let rows = groups.map { group in
      [TerminalText.visible(group.reason), group.application.map { TerminalText.visible($0) } ?? "-", "\(group.count)"]
        + Self.counts.map { "\($0.of(group))" } + [age(group.oldest), age(group.newest)]
    }
    return TerminalTable(
      heading: ["reason", "application", "letters"] + Self.counts.map(\.name) + ["oldest", "newest"], words: [1], alignsLast: true
    ).lines(rows, width: nil)
  }

  /// A count of a group, with its name.
  private static var counts: [(name: String, of: (LetterGroup) -> Int)] {
    LetterStanding.allCases.map { standing in (standing.rawValue, { $0.counts[standing] ?? 0 }) } + [("again", \.again)]
  }

  /// How long ago a time was.
  func age(_ time: Int64) -> String { TerminalText.duration(max(0, now - time)) }

  func json(_ group: LetterGroup) -> JSONValue {
    JSONValue.object(["reason": group.reason, "application": group.application, "letters": group.count])
      .appending(contentsOf: .object(Self.counts.map { .init($0.name, $0.of(group)) }))
      .appending([
        "oldest": Timestamp.text(group.oldest), "newest": Timestamp.text(group.newest), "oldestAgeMs": max(0, now - group.oldest),
        "newestAgeMs": max(0, now - group.newest),
      ])
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

  func json(_ letter: LetterSummary) -> JSONValue {
    let (facts, dead) = (letter.facts, letter.facts.letter)
    let first = facts.hasOrigin ? Optional(json(facts.first)) : .none
    return .object(present: [
      "letter": facts.place.description, "state": letter.standing.rawValue, "times": letter.times, "time": Timestamp.text(facts.time),
      "ageMs": max(0, now - facts.time), "reason": dead.reason, "field": dead.field, "rule": dead.rule, "error": dead.error,
      "tries": dead.tries, "source": json(dead.source), "last": dead.last, "first": first, "apnsId": facts.id.description,
      "application": facts.application, "target": facts.target,
    ])
  }

  private func json(_ source: SourceCoordinates) -> JSONValue {
    let position = source.position
    return .object(["topic": source.topic, "partition": position.partition, "offset": position.offset, "timestamp": position.timestamp])
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
    func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
    let states = letter.states.map { state in
      JSONValue.object(present: [
        "state": state.kind.rawValue, "by": state.by, "at": Timestamp.text(state.at), "request": state.request?.description,
        "apnsId": state.id?.description, "note": state.note,
      ])
    }
    let headers = letter.record.headers.map { header in
      let shown = showsAll || RequestHeader.named(header.key) != nil ? header.value : .none
      return JSONValue.object(present: ["name": header.key, "value": shown.map(text)]).appending(["bytes": header.value?.count])
    }
    let json = json(letter.summary).appending([
      "states": states, "key": letter.record.key.map(text), "headers": headers, "payloadBytes": letter.valueBytes,
    ])
    let value: JSONValue = showsAll ? .object(["payload": letter.record.value.map(text)]) : [:]
    return json.appending(contentsOf: value).appending(contentsOf: letter.isGone ? ["gone": true] : [:])
  }
}
