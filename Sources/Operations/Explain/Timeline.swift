import JSON
import Kafka
package import Notifications
import Worker

/// Builds the explanation of a request from its records, which may come in any order. A value.
package struct Timeline: Sendable {
  private struct Entry {
    var step: TimelineStep
    var eventID: String?
    var source: SourceCoordinates?
    /// The record that the journal speaks of.
    var request: SourcePosition?
    var application: Name?
  }

  private struct Place: Hashable {
    let topic: String
    let partition: Int32
    let offset: Int64
    /// The entry in its journal record, which has many requests and devices.
    var entry: Int64 = -1
    var device: Name?
  }

  /// The request.
  package let id: NotificationID
  /// Its records in the requests topic.
  private(set) var records: [PublishedRequest] = []
  private var entries: [Entry] = []
  private var places: Set<Place> = []

  /// The applications that its target has devices for, if they were read.
  var registered: [Name: Int]?

  /// Makes a timeline without records.
  package init(_ id: NotificationID) { self.id = id }

  // MARK: Records

  private mutating func add(_ entry: Entry) {
    var entry = entry
    entry.step.time = entry.step.time.map(Timestamp.bounded)
    let place = Place(
      topic: entry.step.topic, partition: entry.step.partition, offset: entry.step.offset,
      device: entry.step.device.map { Name($0) })
    add(entry, at: place)
  }

  private mutating func add(_ entry: Entry, at place: Place) {
    if places.insert(place).inserted { entries.append(entry) }
  }

  /// Adds a record of the requests topic.
  package mutating func add(_ request: PublishedRequest) {
    let position = request.source.position
    if request.id == id, !records.contains(request) { records.append(request) }
    let step = TimelineStep(
      name: "published", time: position.timestamp, topic: request.source.topic, partition: position.partition, offset: position.offset,
      details: other(request.id) + request.details)
    add(Entry(step: step, application: request.application))
  }

  /// Adds an event from this place.
  package mutating func add(_ event: Event, at place: SourceCoordinates) {
    let step = TimelineStep(
      name: event.type?.name ?? event.typeName, time: event.time ?? place.position.timestamp, topic: place.topic,
      partition: place.position.partition, offset: place.position.offset, device: event.device, worker: event.worker,
      details: other(event.id) + event.details, outcome: event.type)
    add(Entry(step: step, eventID: event.eventID, source: event.source, application: event.application))
  }

  /// Adds a record of any topic that speaks of it. The journal's statements count only for the requests that were added before.
  mutating func add(_ record: RecordView, _ rules: RequestRules) {
    switch record.topic {
    case rules.topics.requests: add(PublishedRequest(record, rules))
    case rules.topics.journal: add(JournalSteps(record, of: records))
    case rules.topics.events:
      guard let event = try? Event(headers: record.texts, value: record.value ?? .empty) else { return }
      add(event, at: SourceCoordinates(record))
    default:
      if let letter = DeadLetter(headers: record.texts) { add(TimelineStep(letter, record)) }
    }
  }

  /// Adds the journal's statements about its requests; others are ignored.
  mutating func add(_ judgements: JournalSteps) {
    for judgement in judgements.steps where judgement.id == id {
      // A person's devices may get different contents by their languages. Then a request has passed its extensions in several ways.
      let way =
        judgement.step.name == TimelineStep.extensions ? judgement.step.details.map(\.value).joined(separator: " ") : judgement.step.device
      let place = Place(
        topic: judgement.step.topic, partition: judgement.step.partition, offset: judgement.step.offset, entry: judgement.request.offset,
        device: way.map { Name($0) })
      let eventID = "\(judgement.step.name) \(judgement.request) \(way ?? "")"
      add(Entry(step: judgement.step, eventID: eventID, request: judgement.request), at: place)
    }
  }

  /// Adds a record of another topic: a delivery, a dead letter.
  package mutating func add(_ step: TimelineStep) { add(Entry(step: step)) }

  /// The detail that names another request.
  private func other(_ other: NotificationID?) -> [TimelineStep.Detail] {
    other.map { $0 == id ? [] : [TimelineStep.Detail("apnsId", $0.description)] } ?? []
  }

  // MARK: Records to find

  /// Whether it has no record.
  package var isEmpty: Bool { entries.isEmpty }

  /// Sources in this topic that events name, and whose records are missing here.
  func unreadSources(in topic: String) -> [SourcePosition] {
    var sources: [SourcePosition] = []
    for source in entries.compactMap(\.source) where source.topic == topic {
      let position = source.position
      let place = Place(topic: topic, partition: position.partition, offset: position.offset)
      if !places.contains(place), !sources.contains(where: { $0.partition == position.partition && $0.offset == position.offset }) {
        sources.append(position)
      }
    }
    return sources
  }

  /// When it was first published, by its records, else by its events.
  var published: Int64? {
    records.map { Timestamp.bounded($0.source.position.timestamp) }.filter { $0 > 0 }.min()
      ?? entries.compactMap { ($0.source?.position.timestamp).map(Timestamp.bounded) }.filter { $0 > 0 }.min()
  }

  /// Whether a newer request may have replaced it in the mailbox in which it waits.
  var mayBeReplaced: Bool {
    records.contains { $0.identifier != nil } && devices(steps(), end: nil, now: 0).contains { $0.outcome == .queued }
  }

  /// The targets of its records.
  var targets: [Name] { records.map(\.target) }

  /// Whether it may be in the dead letters.
  var mayBeDead: Bool { !entries.contains { $0.step.outcome.map { $0 != .rejected && $0 != .replayed } ?? false } }

  /// Its target, if it found no device of its application there.
  var targetWithoutDevice: Name? {
    let target = records.last.map { $0.target.token.map { "device:\($0)" } ?? $0.target }
    let found = entries.contains { entry in
      // One unregistered device of a person says nothing of the others.
      entry.step.outcome == .unregistered && (entry.step.device == nil || target?.token != nil)
        || entry.step.outcome == .rejected && entry.step.detail("reason") == RejectionReason.deviceTokenNotForTopic.rawValue
    }
    return found ? target : nil
  }

  // MARK: The explanation

  /// The explanation at this time, in milliseconds since 1970.
  package func explanation(now: Int64) -> Explanation {
    var explanation = Explanation(id: id)
    let ignored = Set(entries.filter { $0.step.name == TimelineStep.ignored }.compactMap(\.request))
    explanation.requests = records.sorted { $0.source.position.timestamp < $1.source.position.timestamp }
    for place in explanation.requests.indices where ignored.contains(explanation.requests[place].source.position) {
      explanation.requests[place].isIgnored = true
    }
    explanation.steps = steps()
    let end = records.compactMap(\.end).max()
    explanation.devices = devices(explanation.steps, end: end, now: now)
    explanation.state = state(explanation, end: end)
    // What it has scheduled goes to devices, and not the request.
    if explanation.state == .scheduled { explanation.devices = [] }
    explanation.registered = registered
    explanation.applications = Set(records.compactMap(\.application) + entries.compactMap(\.application))
    return explanation
  }

  private func steps() -> [TimelineStep] {
    // A consequence comes after its cause, even within the same millisecond.
    let ordered = entries.enumerated().sorted { one, other in
      let (a, b) = (one.element.step, other.element.step)
      if a.time != b.time { return (a.time ?? .max) < (b.time ?? .max) }
      if a.rank != b.rank { return a.rank < b.rank }
      if a.topic == b.topic, a.partition == b.partition { return a.offset < b.offset }
      return one.offset < other.offset
    }
    var told: Set<Name> = []
    var last: Int64?
    let published = published
    return ordered.map { _, entry in
      var step = entry.step
      if let eventID = entry.eventID { step.isRepeat = !told.insert(Name(eventID)).inserted }
      if let time = step.time.map(Timestamp.bounded) {
        step.sincePrevious = last.map { time - $0 }
        step.sincePublication = published.map { time - $0 }
        last = time
      }
      return step
    }
  }

  private func devices(_ steps: [TimelineStep], end: Int64?, now: Int64) -> [DeviceOutcome] {
    var outcomes: [DeviceOutcome] = []
    var weights: [Int] = []
    var places: [Name: Int] = [:]
    for step in steps {
      guard let device = step.device, let told = step.outcome, let weight = told.weight else { continue }
      let outcome = DeviceOutcome(
        device: device, outcome: told.finalOutcome ?? told, time: step.time, sincePublication: step.sincePublication)
      if let place = places[Name(device)] {
        if weight > weights[place] { (outcomes[place], weights[place]) = (outcome, weight) }
      } else {
        places[Name(device)] = outcomes.count
        outcomes.append(outcome)
        weights.append(weight)
      }
    }
    for place in outcomes.indices where !outcomes[place].isFinal {
      if let end, end <= now { outcomes[place].isOverdue = true }
    }
    return outcomes
  }

  private func state(_ explanation: Explanation, end: Int64?) -> RequestState {
    guard explanation.isFound else { return .unknown }
    let isShown = explanation.steps.contains { $0.outcome?.isTaken == true }
    if !isShown, explanation.steps.contains(where: { $0.outcome == .scheduled }) { return .scheduled }
    let devices = explanation.devices.filter { $0.outcome != .wrongUser }
    let filtered = explanation.steps.last { $0.outcome == .filtered && $0.device == nil }
    if !devices.isEmpty {
      let open = devices.count { !$0.isFinal }
      let addressed = explanation.steps.filter { $0.outcome == .addressed }.compactMap { $0.detail("devices").flatMap { Int32($0) } }.max()
      // Devices of a stopped application are not looked up.
      let missing = filtered == nil ? max(0, Int(addressed ?? 0) - devices.count) : 0
      let unsummed = filtered == nil && records.contains { $0.target.token == nil && $0.broken == nil } && addressed == nil
      if open + missing == 0, !unsummed { return .ended }
      return .underWay(open: open + missing, of: devices.count + missing, end: end)
    }
    if let outcome = explanation.steps.last(where: \.isOfWholeRequest)?.outcome { return .settled(outcome) }
    if let step = explanation.steps.last(where: { $0.outcome == .rejected }) {
      return .rejected(step.detail("reason") ?? "no reason given")
    }
    if explanation.steps.contains(where: { $0.outcome == .unregistered }) { return .unregistered }
    if let filtered { return .filtered([filtered.detail("reason"), filtered.detail("detail")].compactMap { $0 }.joined(separator: ": ")) }
    if let step = explanation.steps.last(where: { $0.name == TimelineStep.deadLetter }) {
      return .dead(step.detail("reason") ?? "no reason given")
    }
    if explanation.steps.contains(where: { $0.name == Outcome.unreadable.name }) { return .dead(DeadLetter.unreadable) }
    if explanation.steps.contains(where: { $0.name == TimelineStep.ignored }) { return .settled(.replayed) }
    // Its first record and its outcomes are deleted.
    let isFirstGone = records.allSatisfy { $0.origin != nil }
    return isFirstGone && explanation.steps.contains { $0.outcome == .replayed } ? .ended : .unprocessed
  }
}

extension TimelineStep {
  static let deadLetter = "dead letter"
  static let routed = "routed"
  static let replaced = "replaced"
  static let extensions = "extensions"
  static let ignored = "ignored"

  /// Whether it ends a request that goes to no device.
  fileprivate var isOfWholeRequest: Bool {
    outcome == .carriedOut || device == nil && outcome?.endsWholeRequest == true
  }

  /// The value of a detail.
  package func detail(_ name: String) -> String? { details.first { $0.name == name }?.value }

  /// Makes a step of the time and the place of a record.
  init(_ name: String, _ record: RecordView, device: String? = nil, details: [Detail] = []) {
    self.init(
      name: name, time: record.timestamp, topic: record.topic, partition: record.partition, offset: record.offset, device: device,
      details: details)
  }

  /// Makes the step of a dead letter.
  init(_ letter: DeadLetter, _ record: RecordView) {
    self.init(
      Self.deadLetter, record, details: .present([("reason", letter.reason), ("tries", String(letter.tries)), ("error", letter.error)]))
  }

  /// Makes the step of a dead letter's state.
  init(_ state: LetterState, _ record: RecordView) {
    self.init(
      state.kind.rawValue, record, details: .present([("letter", state.letter.description), ("by", state.by), ("note", state.note)]))
  }

  /// Makes the step of a delivery to a lane: the device was connected there.
  init(routed record: RecordView) {
    self.init(Self.routed, record, device: record.key.flatMap { DeviceToken(packed: $0)?.text })
  }

  /// The order of steps of the same time.
  fileprivate var rank: Int {
    if name == "published" { return 0 }
    if name == Self.extensions { return 1 }
    if name == Self.routed { return 3 }
    guard let outcome else { return 4 }
    if outcome.event == nil || outcome == .rejected { return 2 }
    return outcome.isByPerson ? 5 : 4
  }
}

extension PublishedRequest {
  var details: [TimelineStep.Detail] {
    .present([
      ("target", target.text), ("application", application?.text), ("identifier", identifier?.text),
      ("operation", operation == "notify" ? nil : operation), ("schedule", firing?.schedule.description),
      ("due", firing.map { Timestamp.text($0.due) }), ("zone", firing.flatMap { $0.zone == "" ? nil : $0.zone.text }),
      ("until", end.map(Timestamp.text)), ("id", isDerivedID ? "derived from where the record lies" : nil), ("breaks", broken),
      ("unknown", unknown.isEmpty ? nil : unknown.joined(separator: ", ")),
      ("origin", origin.map { "\($0.topic)/\($0.position.partition)@\($0.position.offset)" }),
    ])
  }
}

extension Event {
  /// The members of its value that a step does not show otherwise, and that a person needs.
  var details: [TimelineStep.Detail] {
    let members = (try? JSONValue(parsing: json))?.members ?? []
    return members.filter { !Self.shown.contains($0.key) }.map { member in
      let value = member.value["apnsId"] ?? member.value
      return TimelineStep.Detail(member.key, value.stringValue ?? value.text)
    }
  }

  private static let shown: Set = [
    "identifier", "device", "target", "application", "user", "source", "revision", "extensions", "worker", "registration", "offset",
  ]
}

extension [TimelineStep.Detail] {
  /// The details that have a value.
  fileprivate static func present(_ details: [(name: String, value: String?)]) -> Self {
    details.compactMap { detail in detail.value.map { TimelineStep.Detail(detail.name, $0) } }
  }
}

extension TimelineStep.Detail {
  init(_ name: String, _ value: String) { self.init(name: name, value: value) }
}
