import JSON
import Kafka
import Notifications
import Worker

/// Reads facts from records.
struct FactReader {
  private let rules: RequestRules
  private let requestsTopic: [UInt8]
  private static let types = Outcome.events.compactMap { type in type.cloudEventsType.map { (name: $0, type: type) } }

  init(_ rules: RequestRules) {
    self.rules = rules
    requestsTopic = Array(rules.topics.requests.utf8)
  }

  // MARK: Requests

  /// Reads a record of the requests topic.
  ///
  /// - Parameter onSchedule: called with what the record states about a schedule.
  func request(_ record: RecordView, _ onSchedule: (ScheduleFact) -> Void = { _ in }) -> AuditFact {
    var fact = rules.withRecord(record) { read($0, AuditFact(.request), onSchedule) }
    (fact.partition, fact.offset, fact.time) = (record.partition, record.offset, Timestamp.bounded(record.timestamp))
    fact.flags.insert(.isOfTopic)
    return fact
  }

  /// Reads a record of the dead letters; nil if it does not name its source.
  func deadLetter(_ record: RecordView) -> AuditFact? {
    guard let letter = DeadLetter(headers: record.texts) else { return nil }
    var fact = rules.withRecord(record, from: letter.source) { read($0, AuditFact(.deadLetter)) { _ in } }
    (fact.partition, fact.offset, fact.time) = (record.partition, record.offset, Timestamp.bounded(record.timestamp))
    (fact.device, fact.flags) = (0, [])
    return fact
  }

  private func read(_ request: RequestRecord, _ fact: AuditFact, _ onSchedule: (ScheduleFact) -> Void) -> AuditFact {
    var fact = fact
    let envelope: RequestEnvelope
    switch RequestView.read(request, limits: rules.limits) {
    case .accepted(let view):
      envelope = view.envelope
      fact.number = rules.end(of: view)
      view.forEachIdentifier { fact.identifier = hash(identifier: $0) }
      if view.operation != .notify { fact.flags.insert(.isRemoval) }
      if view.removesAll { fact.flags.insert(.removesAll) }
      if view.bound(below: envelope.revision) != nil { fact.flags.insert(.isBounded) }
      if view.isOfPending { fact.flags.insert(.isOfPending) }
      if let token = view.target.device { fact.device = max(1, DeviceToken.hash(token)) } else { fact.flags.insert(.isForUser) }
      readSchedule(view, request.position, &fact, onSchedule)
    case .rejected(_, let rejected):
      envelope = rejected
      fact.flags.insert(.isBroken)
      fact.number = .max
    }
    if envelope.origin?.purpose == .redrive { fact.flags.insert(.isRedrive) }
    fact.id = envelope.id
    (fact.sourcePartition, fact.sourceOffset) = (envelope.source.partition, envelope.source.offset)
    fact.revision = envelope.revision.timestamp
    return fact
  }

  /// Reads what a request that schedules or fires states about the schedule.
  ///
  /// A firing that is published again has no effect, so only its first record counts.
  private func readSchedule(
    _ view: RequestView, _ position: SourcePosition, _ fact: inout AuditFact, _ onSchedule: (ScheduleFact) -> Void
  ) {
    let statement: ScheduleFact.Statement
    switch view.timing {
    case .now, .place: return
    case .time(let text):
      fact.flags.insert(.isLater)
      fact.statement = ScheduleFact.schedule(JournalReference(revision: view.envelope.revision, id: view.envelope.id))
      guard case .timed(let trigger)? = try? Trigger(text) else { return }
      statement = .request(.init(trigger, requested: position.timestamp))
    case .firing(let header):
      fact.flags.insert(.isFiring)
      fact.statement = ScheduleFact.schedule(header.schedule)
      guard view.envelope.origin == nil else { return }
      let due = header.dueTime
      statement = .firing(
        .init(
          id: view.envelope.id, at: position.timestamp, due: due.due, name: due.name, previous: due.previous,
          zone: due.zone == "" ? 0 : max(1, StableHash.hash(due.zone)), home: Int32(header.schedule.revision.sourcePartition)))
    }
    onSchedule(
      ScheduleFact(schedule: fact.statement, statement: statement, partition: position.partition, offset: position.offset))
  }

  // MARK: Events

  /// The result for a record of the events topic.
  enum EventReading {
    case fact(AuditFact)
    /// An event that the audit does not need.
    case other
    /// Not an event.
    case unreadable
  }

  /// Reads a record of the events topic.
  func event(_ record: RecordView) -> EventReading {
    var type: Outcome?
    var hasType = false
    var (statement, time): (UInt64?, Int64?) = (nil, nil)
    var subject: UnsafeRawBufferPointer?
    record.forEachHeader { name, value in
      guard let value else { return }
      // `ce_type`, `ce_time`, `ce_id`, `ce_subject`: a few characters distinguish them.
      guard name[0] == 0x63, name[1] == 0x65, name[2] == 0x5F else { return }
      switch String(cString: name + 3) {
      case "type":
        hasType = true
        type = Self.types.first { value.count == $0.name.utf8CodeUnitCount && value.elementsEqual($0.name.buffer) }?.type
      case "time": time = Timestamp.parse(value)
      case "id": statement = StableHash.hash(value)
      case "subject": subject = value
      default: break
      }
    }
    guard hasType, let statement, let value = record.value else { return .unreadable }
    guard let type, !type.auditUse.isEmpty else { return .other }
    var fact = AuditFact(.told(type))
    (fact.partition, fact.offset, fact.statement) = (record.partition, record.offset, statement)
    fact.time = Timestamp.bounded(time ?? record.timestamp)
    guard let subject, (try? read(value, &fact)) != nil else { return .unreadable }
    if type == .expired { fact.number = record.isTimestampOfBroker ? Timestamp.bounded(record.timestamp) : 0 }
    if type.isAboutDevice {
      fact.device = max(1, StableHash.hash(subject))
      return .fact(fact)
    }
    // Any id is valid, even zeros.
    guard let id = NotificationID(text: subject), fact.sourceOffset >= 0 else { return .unreadable }
    fact.id = id
    if fact.identifier == 0 { fact.identifier = hash(identifier: subject) }
    return .fact(fact)
  }

  private func read(_ value: UnsafeRawBufferPointer, _ fact: inout AuditFact) throws(JSONError) {
    var scanner = JSONScanner(value)
    try scanner.openObject()
    while let key = try scanner.nextKey() {
      let span = try scanner.skip()
      if scanner.matches(key, "device") {
        fact.device = max(1, hash(span, scanner))
      } else if scanner.matches(key, "identifier") {
        fact.identifier = scanner.unescapedBytes(span).map(hash(identifier:)) ?? max(1, hash(span, scanner))
      } else if scanner.matches(key, "revision") {
        if let revision = scanner.unescapedBytes(span).flatMap(Revision.init(text:)) {
          (fact.revision, fact.incarnation) = (revision.timestamp, UInt16(truncatingIfNeeded: revision.partition >> 16))
        }
      } else if scanner.matches(key, "worker") {
        fact.worker = UInt32(truncatingIfNeeded: hash(span, scanner))
      } else if scanner.matches(key, "source") {
        try readSource(scanner.scanner(of: span), &fact)
      } else if scanner.matches(key, "devices") {
        fact.number = Int64(Int32(clamping: max(0, scanner.integer(span) ?? 0)))
      } else if scanner.matches(key, "response") {
        fact.number = Int64(bitPattern: max(1, hash(span, scanner)))
      } else if scanner.matches(key, "by") {
        fact.flags.insert(.namesSuccessor)
      } else if scanner.matches(key, "skipped") {
        fact.flags.insert(.isSkipped)
      } else if scanner.matches(key, "retryAfter") {
        fact.flags.insert(.isBeyondLimit)
      } else if scanner.matches(key, "reason") {
        if scanner.matches(span, "nothing is pending that could be canceled") { fact.flags.insert(.isSkipped) }
        if scanner.matches(span, "known") { fact.flags.insert(.isKnown) }
        if scanner.matches(span, "InternalServerError") { fact.flags.insert(.isOfPoison) }
        if scanner.matches(span, "DeviceTokenNotForTopic") { fact.flags.insert(.isForOtherApplication) }
      }
    }
    try scanner.finish()
  }

  private func readSource(_ source: JSONScanner, _ fact: inout AuditFact) throws(JSONError) {
    var scanner = source
    try scanner.openObject()
    while let key = try scanner.nextKey() {
      let span = try scanner.skip()
      if scanner.matches(key, "topic") {
        if scanner.unescapedBytes(span)?.elementsEqual(requestsTopic) == true { fact.flags.insert(.isOfTopic) }
      } else if scanner.matches(key, "partition") {
        if let partition = scanner.integer(span).flatMap({ Int32(exactly: $0) }) { fact.sourcePartition = partition }
      } else if scanner.matches(key, "offset") {
        if let offset = scanner.integer(span) { fact.sourceOffset = offset }
      } else if scanner.matches(key, "timestamp"), fact.revision == 0 {
        // An event without a revision has its source's time.
        if let time = scanner.integer(span) { fact.revision = UInt64(clamping: time) }
      }
    }
  }

  /// Returns the hash of an identifier. A removal may write an apns-id in either case.
  private func hash(identifier: UnsafeRawBufferPointer) -> UInt64 {
    NotificationID.withCanonical(identifier) { max(1, StableHash.hash($0)) }
  }

  private func hash(_ span: JSONSpan, _ scanner: JSONScanner) -> UInt64 {
    scanner.unescapedBytes(span).map { StableHash.hash($0) } ?? scanner.text(span).map { StableHash.hash($0) } ?? 0
  }
}

extension StaticString {
  fileprivate var buffer: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount) }
}
