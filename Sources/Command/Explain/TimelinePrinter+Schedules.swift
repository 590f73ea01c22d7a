import JSON
import Notifications
import Operations

/// What a request has scheduled, for a person or for a program.
extension TimelinePrinter {
  // MARK: For a person

  /// Renders how the schedule stands, then a line for each occurrence.
  func words(_ schedule: ScheduleExplanation) -> [String] {
    var words: [String] = []
    switch schedule.standing {
    case .pending(let times):
      let due = times.map { Timestamp.text($0.due) + ($0.zone == "" ? "" : " (\(TerminalText.visible($0.zone)))") }
      words.append("It waits for its time, and is due next at \(due.joined(separator: ", ")).")
    case .ended(let ending, let other):
      words.append("Its schedule has ended: \(sentence(ending))\(other.map { ", by \($0)" } ?? "").")
    case .unknown: words.append("The topic of the schedules has nothing of it: it has ended long ago, or was forgotten.")
    }
    if schedule.omitted > 0 { words.append("… \(TerminalText.count(schedule.omitted, "earlier occurrence"))") }
    for explanation in schedule.occurrences {
      guard let occurrence = explanation.occurrence else { continue }
      let late = lateness(explanation).map { ", fired \(TerminalText.duration($0)) later" } ?? ""
      words.append("\(explanation.id): due \(Timestamp.text(occurrence.due))\(late), \(standing(explanation))")
    }
    return words
  }

  private func sentence(_ ending: ScheduleRecord.Ending) -> String {
    switch ending {
    case .fired: "no further occurrence is due"
    case .replaced: "a newer request with its identifier took its place"
    case .canceled: "it was canceled"
    case .expired: "its last occurrence came after its lifetime"
    case .evicted: "its target had too many schedules, and it was the oldest"
    case .filtered: "the device belongs to another person now"
    case .never: "it is not due any more in the zones of its devices"
    case .placed: "its devices have it, and wait for the place"
    case .unscheduled: "it was canceled before a request scheduled it"
    case .evicting: "its target had too many schedules, and it was the oldest: the end is not told yet"
    }
  }

  /// How a request that went to no device ended, in few words.
  func settled(_ outcome: Outcome, _ explanation: Explanation) -> String {
    if outcome == .replayed { return "ignored, since it did not fit how its schedule stood" }
    let skipped = explanation.steps.lazy.compactMap { $0.detail("skipped").flatMap(Int.init) }.first
    return skipped.map { "too late, and skipped: \(TerminalText.count($0, "occurrence"))" } ?? outcome.sentence("")
  }

  /// Milliseconds from the due time to the record of the firing.
  private func lateness(_ explanation: Explanation) -> Int64? {
    guard let request = explanation.firing, let due = request.firing?.due else { return nil }
    return request.source.position.timestamp - due
  }

  // MARK: For a program

  /// Renders an object: how it stands, when it is due, and the occurrences.
  func json(_ schedule: ScheduleExplanation) -> JSONValue {
    var members: [JSONValue.Member] = []
    func add(_ key: String, _ value: JSONValue) { members.append(.init(key: key, value: value)) }
    switch schedule.standing {
    case .pending(let times):
      add("state", "pending")
      add(
        "due",
        .array(
          times.map { time in
            ["due": .string(Timestamp.text(time.due)), "zone": time.zone == "" ? .null : .string(time.zone.text)]
          }))
    case .ended(let ending, let other):
      add("state", .string("\(ending)"))
      if let other { add("by", .string(other.description)) }
    case .unknown: add("state", "unknown")
    }
    if schedule.omitted > 0 { add("omitted", .integer(Int64(schedule.omitted))) }
    add("occurrences", .array(schedule.occurrences.map(occurrence)))
    return .object(members)
  }

  private func occurrence(_ explanation: Explanation) -> JSONValue {
    var members: [JSONValue.Member] = [.init(key: "apnsId", value: .string(explanation.id.description))]
    func add(_ key: String, _ value: JSONValue?) { if let value { members.append(.init(key: key, value: value)) } }
    add("due", explanation.occurrence.map { .string(Timestamp.text($0.due)) })
    add("zone", explanation.occurrence.flatMap { $0.zone == "" ? nil : .string($0.zone.text) })
    add("lateMs", lateness(explanation).map { .integer($0) })
    add("state", .string(word(explanation.state)))
    if case .settled(let outcome) = explanation.state { add("outcome", .string(outcome.name)) }
    add("skipped", explanation.steps.lazy.compactMap { $0.detail("skipped").flatMap(Int64.init) }.first.map { .integer($0) })
    add("devices", .array(explanation.devices.map(json)))
    return .object(members)
  }
}
