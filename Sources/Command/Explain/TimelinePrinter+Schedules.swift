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
    case .never: "it is not due any more in the zones of its devices"
    case .placed: "its devices have it, and wait for the place"
    case .unscheduled: "it was canceled before a request scheduled it"
    case .evicting: "its target had too many schedules, and it was the oldest: the end is not told yet"
    }
  }

  /// How a request that went to no device ended, in few words.
  func settled(_ outcome: Outcome, _ explanation: Explanation) -> String {
    if outcome == .replayed { return "ignored, since it did not fit how its schedule stood" }
    return skipped(explanation).map { "too late, and skipped: \(TerminalText.count($0, "occurrence"))" } ?? outcome.sentence("")
  }

  /// Milliseconds from the due time to the record of the firing.
  private func lateness(_ explanation: Explanation) -> Int64? {
    guard let request = explanation.firing, let due = request.firing?.due else { return nil }
    return request.source.position.timestamp - due
  }

  // MARK: For a program

  /// Renders an object: how it stands, when it is due, and the occurrences.
  func json(_ schedule: ScheduleExplanation) -> JSONValue {
    let (state, due, by): (String, [JSONValue]?, NotificationID?) =
      switch schedule.standing {
      case .pending(let times):
        ("pending", times.map { .object(["due": Timestamp.text($0.due), "zone": $0.zone == "" ? nil : $0.zone]) }, nil)
      case .ended(let ending, let other): ("\(ending)", nil, other)
      case .unknown: ("unknown", nil, nil)
      }
    return .object(present: [
      "state": state, "due": due, "by": by?.description, "omitted": schedule.omitted > 0 ? schedule.omitted : nil,
      "occurrences": schedule.occurrences.map(occurrence),
    ])
  }

  private func occurrence(_ explanation: Explanation) -> JSONValue {
    var settled: Outcome?
    if case .settled(let outcome) = explanation.state { settled = outcome }
    return .object(present: [
      "apnsId": explanation.id.description, "due": explanation.occurrence.map { Timestamp.text($0.due) },
      "zone": explanation.occurrence.flatMap { $0.zone == "" ? nil : $0.zone }, "lateMs": lateness(explanation),
      "state": word(explanation.state), "outcome": settled?.name, "skipped": skipped(explanation),
      "devices": explanation.devices.map(json),
    ])
  }

  /// How many occurrences were too late.
  private func skipped(_ explanation: Explanation) -> Int? {
    explanation.steps.lazy.compactMap { $0.detail("skipped").flatMap(Int.init) }.first
  }
}
