import JSON
import Notifications
import Operations

/// The explanation of a request, for a person or for a program.
struct TimelinePrinter {
  /// The prefix of all topics, which is removed for a person.
  let prefix: String
  /// The characters of a line; nil for any number.
  var width: Int?

  // MARK: For a person

  /// Renders a line for each step, then how the request stands.
  func text(_ explanation: Explanation) -> [String] {
    explanation.steps.map(line)
      + words(explanation).map { TerminalText.row($0.split(separator: " ").map(String.init), separator: " ", width: width) }
  }

  /// Renders a step. The parts are its time, the time since the step above and since the publication, its name, device, place, worker, and
  /// details.
  func line(_ step: TimelineStep) -> String {
    let previous = step.sincePrevious.map { ($0 < 0 ? "" : "+") + TerminalText.duration($0) } ?? ""
    var columns = [
      time(step.time) + TerminalText.aligned(previous, 12)
        + TerminalText.aligned(step.sincePublication.map(TerminalText.duration) ?? "", 11),
      TerminalText.padded(TerminalText.visible(step.name), 12), TerminalText.padded(step.device.map(TerminalText.device) ?? "-", 17),
      TerminalText.padded(place(step), 18), step.worker.map { TerminalText.visible($0) } ?? "-",
    ]
    columns += step.details.map { TerminalText.word(TerminalText.visible($0.name), $0.value) }
    if step.isRepeat { columns.append("(emitted again)") }
    return TerminalText.row(columns, width: width)
  }

  private func time(_ time: Int64?) -> String { TerminalText.padded(time.map(Timestamp.text) ?? "(no time)", 24) }

  /// Renders one request of several: its publication, id, recipient, and how it stands.
  func summary(_ explanation: Explanation) -> String {
    let request = explanation.requests.last
    var columns = [time(request?.source.position.timestamp), explanation.id.description, standing(explanation)]
    for (name, value) in [("target", request?.target), ("application", request?.application), ("identifier", request?.identifier)] {
      if let value { columns.append(TerminalText.word(name, value)) }
    }
    return TerminalText.row(columns, width: width)
  }

  /// How it stands, in few words: `2 delivered, 1 queued`.
  func standing(_ explanation: Explanation) -> String {
    switch explanation.state {
    case .unknown: return "unknown"
    case .unprocessed: return "not processed yet, or lost, or its events are gone"
    case .rejected(let reason): return "rejected: \(TerminalText.visible(reason))"
    case .dead(let reason): return "dead letter: \(TerminalText.visible(reason))"
    case .filtered(let reason): return "filtered: \(TerminalText.visible(reason))"
    case .scheduled: return "scheduled"
    case .settled(let outcome): return settled(outcome, explanation)
    case .unregistered:
      let application = explanation.requests.last?.application.map { " for \(TerminalText.visible($0))" } ?? ""
      return "no registered device\(application)"
    case .underWay, .ended:
      var states: [(word: String, count: Int)] = []
      for outcome in explanation.devices {
        if let place = states.firstIndex(where: { $0.word == outcome.word }) {
          states[place].count += 1
        } else {
          states.append((outcome.word, 1))
        }
      }
      if case .underWay(_, let all, _) = explanation.state, all > explanation.devices.count {
        states.append(("under way", all - explanation.devices.count))
      }
      return states.map { "\($0.count) \($0.word)" }.joined(separator: ", ")
    }
  }

  private func place(_ step: TimelineStep) -> String {
    let topic = step.topic.hasPrefix(prefix) ? String(step.topic.dropFirst(prefix.utf8.count)) : step.topic
    return "\(TerminalText.visible(topic))/\(step.partition)@\(step.offset)"
  }

  /// How it stands, as a whole and at each device.
  private func words(_ explanation: Explanation) -> [String] {
    // The schedule, or each device, says more.
    let isSaid = explanation.state == .ended || explanation.state == .scheduled && explanation.schedule != nil
    var words = isSaid ? [] : [standing(explanation)]
    if let schedule = explanation.schedule { words += self.words(schedule) }
    if let occurrence = explanation.occurrence {
      words.append("It is an occurrence of \(occurrence.schedule), due at \(Timestamp.text(occurrence.due)).")
    }
    if let registered = explanation.registered { words.append(self.words(registered)) }
    if explanation.requests.isEmpty, explanation.isFound { words.append("Its own record is no longer in the topic.") }
    for outcome in explanation.devices.prefix(Self.maximumDevices) { words.append(sentence(outcome)) }
    let further = explanation.devices.count - Self.maximumDevices
    if further > 0 { words.append("… and \(TerminalText.count(further, "further device"))") }
    return words
  }

  /// The present registrations of the target of a request that found no device. It probably names the wrong application.
  private func words(_ registered: [Name: Int]) -> String {
    let all = registered.sorted { $0.key < $1.key }
    let named = all.prefix(Self.maximumApplications).map { "\(TerminalText.visible($0)) (\(TerminalText.count($1, "device")))" }
    let more = all.count > named.count ? " and \(all.count - named.count) more applications" : ""
    return all.isEmpty
      ? "Its target has no device for any application now."
      : "Its target has devices for \(named.joined(separator: ", "))\(more) now: does the request name the right application?"
  }

  /// The most applications that are named.
  private static let maximumApplications = 5

  /// The most devices with a sentence each; a person has few.
  private static let maximumDevices = 20

  private func sentence(_ outcome: DeviceOutcome) -> String {
    let after = outcome.sincePublication.map { " \(TerminalText.duration($0)) after its publication" } ?? ""
    let what =
      outcome.isOverdue
      ? "\(outcome.outcome.name)\(after), and has expired: it is not shown any more" : outcome.outcome.sentence(after)
    return "\(TerminalText.device(outcome.device)): \(what)"
  }

  // MARK: For a program

  /// Renders an object: the request, how it stands, the devices, the steps.
  func json(_ explanation: Explanation, searched: [String] = []) -> JSONValue {
    var (open, all, until, reason, settled): (Int?, Int?, Int64?, String?, Outcome?)
    switch explanation.state {
    case .underWay(let count, let devices, let end): (open, all, until) = (count, devices, end)
    case .rejected(let why), .dead(let why), .filtered(let why): reason = why
    case .settled(let outcome): settled = outcome
    default: break
    }
    return .object(present: [
      "apnsId": explanation.id.description, "state": word(explanation.state), "open": open, "of": all, "until": until.map(Timestamp.text),
      "reason": reason, "registeredFor": explanation.registered.map(json), "outcome": settled.map { $0 == .replayed ? "ignored" : $0.name },
      "occurrenceOf": explanation.occurrence?.schedule.description,
      "due": explanation.occurrence.map { Timestamp.text($0.due) }, "schedule": explanation.schedule.map { json($0) },
      "devices": explanation.devices.map(json), "steps": explanation.steps.map(json), "searched": explanation.isFound ? nil : searched,
    ])
  }

  private func json(_ registered: [Name: Int]) -> [JSONValue] {
    registered.sorted { $0.key < $1.key }.map { .object(["application": $0, "devices": $1]) }
  }

  func word(_ state: RequestState) -> String { String("\(state)".prefix { $0 != "(" }) }

  func json(_ outcome: DeviceOutcome) -> JSONValue {
    .object(present: [
      "device": outcome.device, "state": outcome.word, "time": outcome.time.map(Timestamp.text),
      "sincePublicationMs": outcome.sincePublication,
    ])
  }

  func json(_ step: TimelineStep) -> JSONValue {
    .object(present: [
      "step": step.name, "time": step.time.map(Timestamp.text), "sincePreviousMs": step.sincePrevious,
      "sincePublicationMs": step.sincePublication, "device": step.device, "worker": step.worker, "topic": step.topic,
      "partition": step.partition, "offset": step.offset, "again": step.isRepeat ? true : nil,
      // A plain nil would become the JSON null here.
      "details": step.details.isEmpty ? Optional.none : JSONValue.object(step.details.map { .init($0.name, $0.value) }),
    ])
  }
}
