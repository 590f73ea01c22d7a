import JSON
import Notifications
import Operations

/// Dead letters for a person or for a program.
struct LetterPrinter {
  /// Milliseconds since 1970.
  let now: Int64
  /// The characters of a line; nil for any number.
  var width: Int?

  /// Renders a table with a line for each group.
  func table(_ groups: [LetterGroup]) -> [String] {
    let rows = groups.map { group in
      [TerminalText.visible(group.reason), group.application.map { TerminalText.visible($0) } ?? "-", "\(group.count)"]
        + LetterStanding.allCases.map { "\(group.counts[$0] ?? 0)" } + [age(group.oldest), age(group.newest)]
    }
    return TerminalTable(
      heading: ["reason", "application", "letters"] + LetterStanding.allCases.map(\.rawValue) + ["oldest", "newest"], words: [1],
      alignsLast: true
    ).lines(rows, width: nil)
  }

  /// How long ago a time was.
  func age(_ time: Int64) -> String { TerminalText.duration(max(0, now - time)) }

  func json(_ group: LetterGroup) -> JSONValue {
    JSONValue.object(["reason": group.reason, "application": group.application, "letters": group.count])
      .appending(contentsOf: .object(LetterStanding.allCases.map { .init($0.rawValue, group.counts[$0] ?? 0) }))
      .appending([
        "oldest": Timestamp.text(group.oldest), "newest": Timestamp.text(group.newest), "oldestAgeMs": max(0, now - group.oldest),
        "newestAgeMs": max(0, now - group.newest),
      ])
  }

  /// Renders one letter of a list.
  func line(_ letter: LetterSummary) -> String {
    let facts = letter.facts
    var columns = [
      TerminalText.padded(facts.place.description, 10), Timestamp.text(facts.time), TerminalText.padded(letter.standing.rawValue, 9),
      TerminalText.visible(facts.letter.reason), facts.id.description,
    ]
    if let application = facts.application { columns.append(TerminalText.word("application", application)) }
    if let field = facts.letter.field { columns.append(TerminalText.word("field", field)) }
    return TerminalText.row(columns, width: width)
  }

  func json(_ letter: LetterSummary) -> JSONValue {
    let (facts, dead) = (letter.facts, letter.facts.letter)
    let first = facts.hasOrigin ? Optional(json(facts.first)) : .none
    return .object(present: [
      "letter": facts.place.description, "state": letter.standing.rawValue, "time": Timestamp.text(facts.time),
      "ageMs": max(0, now - facts.time), "reason": dead.reason, "field": dead.field, "rule": dead.rule, "error": dead.error,
      "tries": dead.tries, "source": json(dead.source), "last": dead.last, "first": first, "apnsId": facts.id.description,
      "application": facts.application, "target": facts.target,
    ])
  }

  private func json(_ source: SourceCoordinates) -> JSONValue {
    let position = source.position
    return .object(["topic": source.topic, "partition": position.partition, "offset": position.offset, "timestamp": position.timestamp])
  }

  /// Renders the same for a person, one fact a line.
  func text(_ letter: LetterDetails, showsAll: Bool) -> [String] {
    func words(_ value: JSONValue) -> String {
      guard let members = value.members else { return TerminalText.visible(value.stringValue ?? value.text) }
      return members.map { TerminalText.word($0.key, $0.value.stringValue ?? $0.value.text) }.joined(separator: " ")
    }
    return (json(letter, showsAll: showsAll).members ?? []).filter { $0.value != .null }.flatMap { member in
      (member.value.elements ?? [member.value]).map { TerminalText.padded(member.key, 13) + " " + words($0) }
    }
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
