import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// The purpose of a record that was produced. The delivery report brings it back.
struct OutcomePurpose {
  enum Kind: UInt64 {
    /// An event of a record in flight, by its slot.
    case record = 1
    /// The event of an eviction's entry.
    case eviction
    /// A record of the journal.
    case journal
    /// The dead letter that a record in flight becomes, by its slot.
    case letter
    /// The event that belongs to a dead letter, by the record's slot.
    case letterEvent
    /// The dead letter of an unreadable stretch.
    case unreadable
    /// The new state of a schedule that a record in flight concerns.
    case schedule
    /// What follows from the state of a schedule that has ended.
    case scheduleFollowUp
    /// The firing of an occurrence.
    case firing
  }

  let kind: Kind
  /// Tells records of one kind apart.
  let number: UInt32

  init(_ kind: Kind, _ number: UInt32) { (self.kind, self.number) = (kind, number) }

  init(_ kind: Kind, _ slot: Slot) { self.init(kind, UInt32(bitPattern: slot.number)) }

  init?(opaque: UInt64) {
    guard let kind = Kind(rawValue: opaque >> 32) else { return nil }
    self.init(kind, UInt32(truncatingIfNeeded: opaque))
  }

  /// The number that the producer gets with the record.
  var opaque: UInt64 { kind.rawValue << 32 | UInt64(number) }
  /// The slot of a record in flight.
  var slot: Slot { Slot(number: Int32(bitPattern: number)) }
}

/// Emits what became of requests: events, deliveries and dead letters.
///
/// Each function returns how many produced records have reports to wait for. A delivery has none: when it is lost, the device finds the
/// notification in its mailbox.
final class Outcomes {
  /// The records to Kafka that an outcome has made.
  struct Produced {
    /// Records whose reports will come.
    var count = 0
    /// Whether no record is missing. Else Kafka's queue was full, and all of the outcome is emitted again.
    var isComplete = true

    static func + (one: Produced, other: Produced) -> Produced {
      Produced(count: one.count + other.count, isComplete: one.isComplete && other.isComplete)
    }
  }

  /// A request at one device.
  struct Subject {
    let token: UnsafeRawBufferPointer
    let entry: DeliveryEntryView
    /// What its events are for.
    let purpose: OutcomePurpose
  }

  private let loop: EventLoop
  private let producers: (events: Producer, deliveries: Producer)
  private let metrics: ClientMetrics
  /// Whether nothing is emitted: a rebuild repeats what was emitted before.
  let isSilent: Bool
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

  /// Whether so many records wait for Kafka that no page of devices should be asked for.
  var isBusy: Bool {
    !isSilent && [producers.events, producers.deliveries].contains { $0.inFlight > Self.busyRecords || $0.bytesInFlight > Self.busyBytes }
  }

  /// Half of what a producer takes, since the requests in flight make records, too. 100,000 requests a second with 200 ms to Kafka and back
  /// are 50,000 records.
  private static let (busyRecords, busyBytes) = (LaneProducers.maximumRecords / 2, 64 << 20)

  /// Emits what happened to a request at a device.
  func emit(_ type: Outcome, _ subject: Subject, revision: Revision, _ details: EventDetails) -> Produced {
    var facts = EventFacts(type, of: subject.entry, device: subject.token, revision: revision)
    facts.details = details
    return produce(facts, key: subject.token, subject.purpose)
  }

  /// Emits that the subject has superseded a notification of the mailbox.
  func collapsed(_ superseded: JournalReference, by subject: Subject) -> Produced {
    var facts = EventFacts(.collapsed, of: subject.entry, device: subject.token, revision: superseded.revision)
    facts.id = superseded.id
    facts.traceparent = .empty
    // The subject's extensions say nothing of the superseded notification.
    facts.extensions = .empty
    facts.source = SourcePosition(
      partition: Int32(clamping: superseded.revision.sourcePartition), offset: Int64(clamping: superseded.revision.offset),
      timestamp: Int64(clamping: superseded.revision.timestamp))
    facts.details = .by(subject.entry.id)
    return produce(facts, key: subject.token, subject.purpose)
  }

  /// Emits that an entry of a mailbox has ended. Returns whether a report comes.
  func ended(_ type: Outcome, _ subject: Subject, revision: Revision?, by removal: NotificationID? = nil) -> Bool {
    var facts = EventFacts(type, of: subject.entry, device: subject.token, revision: revision)
    if let removal { facts.details = .by(removal) }
    return produce(facts, key: subject.token, subject.purpose).count > 0
  }

  /// Emits how many devices a person has. Without any the request ends here.
  func addressed(_ view: RequestView, devices: Int, slot: Slot) -> Produced {
    var facts = EventFacts(.addressed, of: view)
    facts.details = .addressed(devices: devices)
    let first = produce(facts, key: view.envelope.target, OutcomePurpose(.record, slot))
    return devices == 0
      ? first + produce(EventFacts(.unregistered, of: view), key: view.envelope.target, OutcomePurpose(.record, slot)) : first
  }

  /// Emits that a request's application was stopped when the request was published.
  ///
  /// - Parameter device: the token of the request's device; nil where the request is for a person.
  func filtered(
    _ view: RequestView, device: UnsafeRawBufferPointer?, revision: Revision, by stop: ApplicationStop, slot: Slot
  ) -> Produced {
    var facts = EventFacts(.filtered, of: view)
    facts.revision = revision
    if let device { facts.device = device }
    var reason = stop.reason ?? ""
    return reason.withUTF8 { reason in
      facts.details = .stopped(UnsafeRawBufferPointer(reason))
      return produce(facts, key: device ?? view.envelope.target, OutcomePurpose(.record, slot))
    }
  }

  /// Emits the end of a request at its schedule.
  ///
  /// - Parameter device: the token of the request's device; nil where the request is for a person.
  func ended(
    _ type: Outcome, _ view: RequestView, device: UnsafeRawBufferPointer?, revision: Revision, _ details: EventDetails,
    _ purpose: OutcomePurpose
  ) -> Produced {
    var facts = EventFacts(type, of: view)
    (facts.revision, facts.details) = (revision, details)
    if let device { facts.device = device }
    return produce(facts, key: device ?? view.envelope.target, purpose)
  }

  /// Emits the end of a request that was pending.
  ///
  /// - Parameter by: the request that has ended it.
  func ended(
    _ type: Outcome, _ request: JournalReference, of key: ScheduleKey, by: NotificationID?, _ purpose: OutcomePurpose
  ) -> Produced {
    key.target.withBytes { target in
      key.application.withBytes { application in
        key.identifier.withBytes { identifier in
          var facts = EventFacts(type)
          (facts.id, facts.revision, facts.application) = (request.id, request.revision, application)
          if !request.id.withText({ $0.elementsEqual(identifier) }) { facts.identifier = identifier }
          let reference = Target(target)
          if let device = reference?.device { facts.device = device } else { facts.target = target }
          if let user = reference?.user { facts.user = user }
          facts.source = SourcePosition(
            partition: Int32(clamping: request.revision.sourcePartition), offset: Int64(clamping: request.revision.offset),
            timestamp: Int64(clamping: request.revision.timestamp))
          if let by { facts.details = .by(by) }
          return produce(facts, key: reference?.device ?? target, purpose)
        }
      }
    }
  }

  /// Emits that a record breaks a rule, and dead-letters the record as it was.
  ///
  /// - Parameter missing: what Kafka does not have yet of the letter and its event.
  func reject(
    _ source: RecordView, _ rejection: Rejection, _ envelope: RequestEnvelope, tries: Int, missing: MissingLetter, slot: Slot
  ) -> Produced {
    if isSilent { return Produced() }
    var event = Produced()
    if missing.event {
      var facts = EventFacts(.rejected, of: envelope)
      facts.details = .rejected(rejection)
      event = produce(facts, key: envelope.target, OutcomePurpose(.letterEvent, slot))
    }
    return event + put(source, DeadLetter(rejection, tries: tries, source: SourceCoordinates(source)), missing, slot)
  }

  /// Emits that a request is beyond a rate limit of its application.
  func limited(_ source: RecordView, _ excess: RateExcess, _ envelope: RequestEnvelope, slot: Slot) -> Produced {
    var facts = EventFacts(.rejected, of: envelope)
    facts.details = .limited(Rejection(excess), retryAfter: excess.retryAfter)
    guard envelope.origin?.purpose == .redrive else { return produce(facts, key: envelope.target, OutcomePurpose(.record, slot)) }
    // The record was published again after a rejection, of which this one is no repeat.
    return withUnsafeBytes(of: source.offset.littleEndian) { offset in
      facts.discriminator = offset
      return produce(facts, key: envelope.target, OutcomePurpose(.record, slot))
    }
  }

  /// Emits that a record cannot be processed, and dead-letters the record as it was.
  func deadLetter(
    _ source: RecordView, _ envelope: RequestEnvelope?, error: String, tries: Int, missing: MissingLetter, slot: Slot
  ) -> Produced {
    if isSilent { return Produced() }
    var event = Produced()
    if let envelope, missing.event {
      var facts = EventFacts(.rejected, of: envelope)
      facts.details = .rejected(
        Rejection(
          .internalServerError, field: "record", rule: "The cluster could not process the record; the dead letters have it, and say why.")
      )
      event = produce(facts, key: envelope.target, OutcomePurpose(.letterEvent, slot))
    }
    return event + put(source, DeadLetter(poison: error, tries: tries, source: SourceCoordinates(source)), missing, slot)
  }

  /// How much of a record its dead letter has.
  private enum LetterForm: CaseIterable {
    case complete, withoutValue, bare
  }

  /// Dead-letters a record as it was, once.
  ///
  /// The letter's headers may make the record too large. Then it goes without its value, and if that is not enough without its key and its
  /// headers, too. The coordinates say where these lie.
  private func put(_ record: RecordView, _ letter: DeadLetter, _ missing: MissingLetter, _ slot: Slot) -> Produced {
    if !missing.letter { return Produced() }
    for form in LetterForm.allCases.dropFirst(min(missing.refusals, LetterForm.allCases.count - 1)) {
      var letter = letter
      if form != .complete {
        letter.error = letter.error.map { "\($0); \(DeadLetter.liesElsewhere)" } ?? DeadLetter.liesElsewhere
      }
      if form != .bare { headers.copy(from: record) }
      for (name, value) in letter.headers { headers.append(name, value) }
      let outcome = producers.events.produce(
        deadLetters, key: form == .bare ? nil : record.key, value: form == .complete ? record.value : nil, headers: headers,
        opaque: OutcomePurpose(.letter, slot).opaque)
      if case .refused(let error) = outcome, error.code == .messageTooLarge, form != .bare {
        headers.removeAll()
        continue
      }
      return count(outcome)
    }
    return Produced(isComplete: false)
  }

  /// Sends an entry to the lane that has the device's session. Returns whether the producer has taken it.
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

extension Ledger {
  /// Expects the reports of an outcome of a record.
  func emitted(_ slot: Slot, _ produced: Outcomes.Produced) -> Conclusion {
    expect(produced.count, of: slot)
    return produced.isComplete ? .done : .failed
  }
}

extension Rejection {
  /// The rejection of a request beyond a rate limit.
  fileprivate init(_ excess: RateExcess) {
    let window = excess.window % 1_000 == 0 ? "\(excess.window / 1_000) s" : "\(excess.window) ms"
    let number = "\(excess.limit) \(excess.limit == 1 ? "request" : "requests")"
    switch excess.scope {
    case .target:
      self.init(.tooManyRequests, field: "target", rule: "The application may send \(number) to one target in \(window).")
    case .application: self.init(.tooManyRequests, field: "apns-topic", rule: "The application may send \(number) in \(window).")
    }
  }
}
