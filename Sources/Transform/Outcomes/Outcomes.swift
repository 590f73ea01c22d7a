import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// What a record to Kafka belongs to: it comes back with the delivery report.
enum OutcomePurpose {
  /// An event of a record in flight.
  case record(Flow.Slot)
  /// The dead letter that a record in flight becomes.
  case letter(Flow.Slot)
  /// The event that says so.
  case letterEvent(Flow.Slot)
  case eviction(Int)
  case journal(UInt32)
  case unreadable(UInt32)

  init?(opaque: UInt64) {
    switch opaque >> 32 {
    case 1: self = .record(Flow.Slot(truncatingIfNeeded: opaque))
    case 2: self = .eviction(Int(opaque & 0xFFFF_FFFF))
    case 3: self = .journal(UInt32(truncatingIfNeeded: opaque))
    case 4: self = .letter(Flow.Slot(truncatingIfNeeded: opaque))
    case 5: self = .letterEvent(Flow.Slot(truncatingIfNeeded: opaque))
    case 6: self = .unreadable(UInt32(truncatingIfNeeded: opaque))
    default: return nil
    }
  }

  /// What the producer is given with the record.
  var opaque: UInt64 {
    switch self {
    case .record(let slot): 1 << 32 | UInt64(UInt32(bitPattern: slot))
    case .eviction(let number): 2 << 32 | UInt64(number)
    case .journal(let number): 3 << 32 | UInt64(number)
    case .letter(let slot): 4 << 32 | UInt64(UInt32(bitPattern: slot))
    case .letterEvent(let slot): 5 << 32 | UInt64(UInt32(bitPattern: slot))
    case .unreadable(let number): 6 << 32 | UInt64(number)
    }
  }
}

/// Emits what became of requests: events, deliveries and dead letters. Loop-confined.
///
/// Each function answers how many records were produced whose reports are to be waited for. A delivery is not waited for: when it is
/// lost the device finds the notification in its mailbox.
final class Outcomes {
  /// What came of an outcome.
  struct Produced {
    /// Records whose reports will come.
    var count = 0
    /// Nothing is missing; else Kafka's queue was full, and all of the outcome is to be emitted again.
    var isComplete = true

    static func + (one: Produced, other: Produced) -> Produced {
      Produced(count: one.count + other.count, isComplete: one.isComplete && other.isComplete)
    }
  }

  /// A request at one device.
  struct Subject {
    let token: UnsafeRawBufferPointer
    let entry: DeliveryEntryView
    let record: Flow.Slot
  }

  private let loop: EventLoop
  private let producers: (events: Producer, deliveries: Producer)
  private let metrics: ClientMetrics
  /// Nothing is emitted: what is done was done and emitted before.
  private let isSilent: Bool
  private let events: ProducerTopic
  private let deliveries: ProducerTopic
  private let deadLetters: ProducerTopic
  private var writer: EventWriter
  private let headers = RecordHeaders()
  private var record = ByteBuffer(capacity: 8192)

  /// - Parameters:
  ///   - events: sends events and dead letters.
  ///   - deliveries: sends deliveries.
  init(
    on loop: EventLoop, _ settings: TransformSettings, events: Producer, deliveries: Producer, metrics: ClientMetrics,
    isSilent: Bool = false
  ) throws(KafkaError) {
    self.loop = loop
    producers = (events, deliveries)
    self.metrics = metrics
    self.isSilent = isSilent
    self.events = try events.topic(settings.topics.events)
    self.deliveries = try deliveries.topic(settings.topics.deliveries)
    deadLetters = try events.topic(settings.topics.deadLetters)
    writer = EventWriter(source: "/carillon/\(settings.cluster)", worker: settings.worker, requestsTopic: settings.topics.requests)
  }

  /// Whether Kafka's queue has no room.
  var isFull: Bool { !isSilent && !producers.events.hasRoom }

  /// Whether so much waits for Kafka that nothing should be begun that makes much more.
  var isBusy: Bool {
    !isSilent && [producers.events, producers.deliveries].contains { $0.inFlight > Self.busyRecords || $0.bytesInFlight > Self.busyBytes }
  }

  /// Half of what a producer takes, since what is under way already makes records, too: 100,000 requests a second with 200 ms to Kafka and
  /// back are 50,000 records.
  private static let (busyRecords, busyBytes) = (LaneProducers.maximumRecords / 2, 64 << 20)

  /// Something happened to a request at a device.
  ///
  /// - Parameter by: the notification that takes its place.
  func emit(_ type: EventType, _ subject: Subject, revision: Revision, by: NotificationID?) -> Produced {
    var facts = EventFacts(type, of: subject.entry, device: subject.token, revision: revision)
    if let by { facts.details = .by(by) }
    return produce(facts, key: subject.token, .record(subject.record))
  }

  /// What lay in the mailbox is superseded by the subject.
  func collapsed(_ superseded: JournalReference, by subject: Subject) -> Produced {
    var facts = EventFacts(.collapsed, of: subject.entry, device: subject.token, revision: superseded.revision)
    facts.id = superseded.id
    facts.traceparent = UnsafeRawBufferPointer(start: nil, count: 0)
    // What the subject has passed says nothing of what it superseded.
    facts.extensions = UnsafeRawBufferPointer(start: nil, count: 0)
    facts.source = SourcePosition(
      partition: Int32(clamping: superseded.revision.sourcePartition), offset: Int64(clamping: superseded.revision.offset),
      timestamp: Int64(clamping: superseded.revision.timestamp))
    facts.details = .by(subject.entry.id)
    return produce(facts, key: subject.token, .record(subject.record))
  }

  /// The mailbox was full, and the subject the oldest: the subject's `record` is the number of the eviction. Answers whether a report comes.
  func evicted(_ subject: Subject, revision: Revision?) -> Bool {
    let facts = EventFacts(.evicted, of: subject.entry, device: subject.token, revision: revision)
    return produce(facts, key: subject.token, .eviction(Int(subject.record))).count > 0
  }

  /// A person's devices were found: for none of them the request ends here.
  func addressed(_ view: RequestView, devices: Int, slot: Flow.Slot) -> Produced {
    var facts = EventFacts(.addressed, of: view)
    facts.details = .addressed(devices: devices)
    let first = produce(facts, key: view.envelope.target, .record(slot))
    return devices == 0 ? first + produce(EventFacts(.unregistered, of: view), key: view.envelope.target, .record(slot)) : first
  }

  /// A request's application was stopped when it was published.
  ///
  /// - Parameter device: the token of the device that it is for; nil where it is for a person.
  func filtered(
    _ view: RequestView, device: UnsafeRawBufferPointer?, revision: Revision, by stop: ApplicationStop, slot: Flow.Slot
  ) -> Produced {
    var facts = EventFacts(.filtered, of: view)
    facts.revision = revision
    if let device { facts.device = device }
    var reason = stop.reason ?? ""
    return reason.withUTF8 { reason in
      facts.details = .stopped(UnsafeRawBufferPointer(reason))
      return produce(facts, key: device ?? view.envelope.target, .record(slot))
    }
  }

  /// A record breaks a rule: an event is emitted, and the record goes to the dead letters as it was.
  ///
  /// - Parameter missing: what Kafka does not have of both.
  func reject(
    _ source: RecordView, _ rejection: Rejection, _ envelope: RequestEnvelope, tries: Int, missing: Flow.MissingLetter, slot: Flow.Slot
  ) -> Produced {
    if isSilent { return Produced() }
    var event = Produced()
    if missing.event {
      var facts = EventFacts(.rejected, of: envelope)
      facts.details = .rejected(rejection)
      event = produce(facts, key: envelope.target, .letterEvent(slot))
    }
    return event + put(source, DeadLetter(rejection, tries: tries, source: SourceCoordinates(source)), missing, slot)
  }

  /// A record cannot be processed: an event is emitted, and the record goes to the dead letters as it was.
  func deadLetter(
    _ source: RecordView, _ envelope: RequestEnvelope?, error: String, tries: Int, missing: Flow.MissingLetter, slot: Flow.Slot
  ) -> Produced {
    if isSilent { return Produced() }
    var event = Produced()
    if let envelope, missing.event {
      var facts = EventFacts(.rejected, of: envelope)
      facts.details = .rejected(
        Rejection(
          .internalServerError, field: "record", rule: "The cluster could not process the record; the dead letters have it, and say why.")
      )
      event = produce(facts, key: envelope.target, .letterEvent(slot))
    }
    return event + put(source, DeadLetter(poison: error, tries: tries, source: SourceCoordinates(source)), missing, slot)
  }

  /// How much of a record there is in its dead letter.
  private enum LetterForm: CaseIterable {
    case complete, withoutValue, bare
  }

  /// Puts a record into the dead letters as it was, once.
  ///
  /// One that has no room there, since the letter's headers come to its own, goes without its value, and when that is not enough without
  /// its key and its headers, too: the coordinates say where they lie.
  private func put(_ record: RecordView, _ letter: DeadLetter, _ missing: Flow.MissingLetter, _ slot: Flow.Slot) -> Produced {
    if !missing.letter { return Produced() }
    for form in LetterForm.allCases.dropFirst(min(missing.refusals, LetterForm.allCases.count - 1)) {
      var letter = letter
      if form != .complete {
        letter.error = letter.error.map { "\($0); \(DeadLetter.liesElsewhere)" } ?? DeadLetter.liesElsewhere
      }
      if form != .bare { headers.copy(from: record) }
      letter.forEachHeader { header, value in headers.append(header.name, value) }
      let outcome = producers.events.produce(
        deadLetters, key: form == .bare ? nil : record.key, value: form == .complete ? record.value : nil, headers: headers,
        opaque: OutcomePurpose.letter(slot).opaque)
      if case .refused(let error) = outcome, error.code == .messageTooLarge, form != .bare {
        headers.removeAll()
        continue
      }
      return count(outcome)
    }
    return Produced(isComplete: false)
  }

  /// Sends an entry to the lane that has the device's session; answers whether the producer has taken it.
  func deliver(
    _ entry: UnsafeRawBufferPointer, _ kind: DeliveryEntry.Kind, _ revision: Revision, to presence: Presence,
    _ token: UnsafeRawBufferPointer
  ) -> Bool {
    if isSilent { return true }
    record.reset()
    DeviceToken.append(packed: token, to: &record)
    let key = record.count
    DeliveryRecord.append(encoded: entry, kind: kind, revision: revision, generation: presence.generation, to: &record)
    let outcome = record.withUnsafeBytes {
      producers.deliveries.produce(
        deliveries, partition: presence.partition, key: UnsafeRawBufferPointer(rebasing: $0.prefix(key)),
        value: UnsafeRawBufferPointer(rebasing: $0[key...]), opaque: 0)
    }
    if case .taken = outcome { return true }
    return false
  }

  private func produce(_ facts: EventFacts, key: UnsafeRawBufferPointer, _ purpose: OutcomePurpose) -> Produced {
    if isSilent { return Produced() }
    writer.write(facts, at: loop.wallMilliseconds())
    writer.forEachHeader { header, value in headers.append(header.name, value) }
    // A target that breaks the rules may be as long as a record.
    let key = UnsafeRawBufferPointer(rebasing: key.prefix(EventWriter.longestText))
    let (outcome, bytes) = writer.withValue {
      (producers.events.produce(events, key: key, value: $0, headers: headers, opaque: purpose.opaque), $0.count)
    }
    if case .taken = outcome { metrics.emitted(facts.type, bytes: bytes) }
    return count(outcome)
  }

  private func count(_ outcome: Producer.Outcome) -> Produced {
    if case .taken = outcome { return Produced(count: 1) }
    headers.removeAll()
    return Produced(isComplete: false)
  }
}

extension SourceCoordinates {
  /// Where a record lies.
  init(_ record: RecordView) {
    self.init(topic: record.topic, partition: record.partition, offset: record.offset, timestamp: record.timestamp)
  }
}
