import EventLoop
import Notifications

/// A value that checks each request by all facts of its apns-id.
///
/// It passes the rest to `DeviceAudit`.
///
/// A *request* is an apns-id and the position of its first record. A record that is published again (a replay) is the same request. The
/// request has one outcome on each device. Some statements may occur together:
///
/// - A device's acknowledgement overrides every ending. A delivery may race with its replacement, expiration, eviction or withdrawal.
/// - Endings that mean "not shown" agree with each other, and with a mailbox that kept the entry. So does `duplicate`: after a loss of
///   Redis the other record may have been judged first.
/// - `rejected` agrees with nothing else, with three exceptions. The record was edited and redriven. It could not be processed completely.
///   Or the rejection was of a device whose registration has changed since; then `DeviceAudit` decides. A rejection that names its
///   device is an ending there: the notification was damaged in the mailbox.
/// - The journal has a verdict for each record, and complete pages for a person's devices. If a record was published again, all statements
///   count, except those about a device that is missing on the last complete pages.
struct RequestAudit {
  let rules: AuditRules
  /// Called with the first record of each request without an outcome.
  var onLost: (AuditFact) -> Void = { _ in }
  /// Called with the effect of each firing, unless it took none, and with each end of a schedule.
  var onSchedule: (ScheduleFact) -> Void = { _ in }
  /// Gets the facts for `DeviceAudit`.
  var handOn: (AuditFact) -> Void = { _ in }

  /// Checks these facts, which it sorts. They must contain all facts of each id.
  func check(_ facts: inout [AuditFact], _ findings: inout AuditFindings) {
    facts.sort(by: Self.precedes)
    facts[...].forEachRun(of: \.id) { run in
      var run = run
      attribute(&run)
      check(run, &findings)
    }
  }

  /// Attributes the statements at a bound's position to the removal with that bound.
  ///
  /// The mailbox keeps the removal there.
  private func attribute(_ facts: inout ArraySlice<AuditFact>) {
    guard let record = facts.first(where: { $0.kind == .request && $0.flags.contains(.isBounded) }),
      facts.allSatisfy({ $0.kind != .request || $0.source == record.source })
    else { return }
    for index in facts.indices { (facts[index].sourcePartition, facts[index].sourceOffset) = (record.sourcePartition, record.sourceOffset) }
    facts.sort(by: Self.precedes)
  }

  /// Compares request, records before events, device, time.
  private static func precedes(_ a: AuditFact, _ b: AuditFact) -> Bool {
    if a.id != b.id { return a.id < b.id }
    if a.sourceOffset != b.sourceOffset { return a.sourceOffset < b.sourceOffset }
    if a.sourcePartition != b.sourcePartition { return a.sourcePartition < b.sourcePartition }
    if a.device != b.device, a.kind != .request, b.kind != .request { return a.device < b.device }
    if (a.kind == .request) != (b.kind == .request) { return a.kind == .request }
    if a.time != b.time { return a.time < b.time }
    return (a.partition, a.offset, a.kind.rank) < (b.partition, b.offset, b.kind.rank)
  }

  /// Checks all facts of one id.
  private func check(_ facts: ArraySlice<AuditFact>, _ findings: inout AuditFindings) {
    facts.forEachRun(of: \.source) { checkRequest($0, of: facts, &findings) }
    if facts.count(where: \.isNewShow) > 1, facts.contains(where: { $0.kind == .request }) {
      checkShows(facts.filter(\.isNewShow), &findings)
    }
  }

  // MARK: A request

  private func checkRequest(_ facts: ArraySlice<AuditFact>, of all: ArraySlice<AuditFact>, _ findings: inout AuditFindings) {
    var events = facts.startIndex
    while events < facts.endIndex, facts[events].kind == .request { events += 1 }
    let records = facts[..<events]
    guard let first = records.first else {
      // The request was published outside the range, or never.
      for fact in facts where fact.device != 0 && fact.kind.isCheckedByDevice { handOn(fact) }
      if let event = facts.first(where: { rules.isAudited($0) && $0.kind != .deadLetter }) {
        findings.add(.unknownRequest, event.id, facts, "no such record at partition \(event.sourcePartition), offset \(event.sourceOffset)")
      }
      return
    }
    findings.requests += 1
    var request = Request(first, facts, of: all, isYoung: records.contains { rules.isYoung($0.time) })
    for record in records {
      request.end = max(request.end, record.number)
      // One that is redriven has a lifetime of its own.
      request.earliestEnd = record.flags.contains(.isRedrive) ? record.number : min(request.earliestEnd, record.number)
      if record.flags.contains(.isRedrive) { request.isRedriven = true }
      if rules.isUnreadable(record) { request.isDead = true }
      if record.isFirst { request.hasFirst = true }
    }

    if request.isForUser { request.journal = JournalPages(facts[events...]) }
    var devices = 0
    facts[events...].forEachRun(of: \.device) { run in
      findings.repeats += repeats(run)
      guard run.first?.device != 0 else { return run.forEach { request.take($0) } }
      devices += 1
      checkDevice(run, request, &findings)
    }
    tellSchedules(request, records, facts[events...])
    checkLimit(request, records, facts[events...], &findings)
    if checkRest(request, devices: devices, &findings) { checkJournal(request, records, facts[events...], &findings) }
  }

  // MARK: Limits

  /// Checks the statements about a request against the rate limits.
  ///
  /// A record that was redriven is counted like a new one, so one of the records may be within the limit and the other beyond it.
  private func checkLimit(
    _ request: Request, _ records: ArraySlice<AuditFact>, _ statements: ArraySlice<AuditFact>, _ findings: inout AuditFindings
  ) {
    let isTold = statements.contains { $0.outcome == .rejected && $0.flags.contains(.isBeyondLimit) }
    guard isTold || records.contains(where: { $0.flags.contains(.isBeyondLimit) }) else { return }
    // A replay is not counted.
    let counted = records.filter { $0.flags.contains(.isRedrive) || $0.isFirst }
    guard request.hasFirst, !counted.contains(where: { $0.flags.contains(.isLimitUnknown) }) else { return }
    if isTold {
      guard !counted.contains(where: { $0.flags.contains(.isBeyondLimit) }) else { return }
      findings.add(.rejectedWithinLimit, request.id, request.facts)
    } else if counted.allSatisfy({ $0.flags.contains(.isBeyondLimit) }), !request.isDead, statements.contains(where: \.tellsOfPassage) {
      findings.add(.passedBeyondLimit, request.id, request.facts)
    }
  }

  // MARK: Schedules

  /// Returns the effect of a firing; nil if it did not fit its schedule.
  private func fate(of request: Request, _ statements: ArraySlice<AuditFact>) -> ScheduleFact.Fate? {
    guard !request.isDead, request.rejection == nil, !statements.isEmpty else { return .unknown }
    guard statements.contains(where: { $0.outcome != .replayed }) else { return nil }
    return statements.contains { $0.outcome == .expired && $0.flags.contains(.isSkipped) } ? .skipped : .fired
  }

  /// Tells the effect of a firing, the end of the request's own schedule, and the schedules that the request ended.
  private func tellSchedules(_ request: Request, _ records: ArraySlice<AuditFact>, _ statements: ArraySlice<AuditFact>) {
    func tell(_ statement: ScheduleFact.Statement, of schedule: UInt64, _ fact: AuditFact, at offset: Int64) {
      onSchedule(ScheduleFact(schedule: schedule, statement: statement, partition: fact.partition, offset: offset))
    }
    if request.isFiring, let record = records.first(where: \.isFirst), let fate = fate(of: request, statements) {
      tell(.effect(fate), of: record.statement, record, at: record.offset)
    }
    let own = records.first.flatMap { $0.flags.contains(.isLater) ? $0.statement : nil }
    for fact in statements {
      if fact.outcome == .carriedOut || fact.outcome == .scheduled, fact.statement != 0 {
        tell(.superseded, of: fact.statement, fact, at: fact.number)
      } else if let own, fact.outcome?.endingOfSchedule != nil {
        tell(.ended(at: fact.time), of: own, fact, at: fact.offset)
      }
    }
  }

  /// Checks that each record with outcomes has a journal entry. Otherwise its offset was committed too early.
  private func checkJournal(
    _ request: Request, _ records: ArraySlice<AuditFact>, _ events: ArraySlice<AuditFact>, _ findings: inout AuditFindings
  ) {
    for record in records where !rules.isYoung(record.time) && !rules.isUnreadable(record) {
      let isJournaled = events.contains { fact in
        guard fact.partition == record.partition else { return false }
        guard fact.number == record.offset else { return false }
        if fact.outcome == .queued { return !record.flags.contains(.isForUser) }
        return fact.kind == .judged || fact.outcome?.isOfWholeRequest == true
      }
      guard !isJournaled, !(request.isForUser && request.journal.isComplete) else { continue }
      let detail = "no entry of the journal for partition \(record.partition), offset \(record.offset)"
      findings.add(.unjournaled, request.id, request.facts, detail)
    }
  }

  /// Checks a request at devices without a statement; false if its outcome there is unknown.
  private func checkRest(_ request: Request, devices: Int, _ findings: inout AuditFindings) -> Bool {
    // The number of devices without an outcome.
    var missing = 1
    if request.isForUser, let addressed = request.addressed {
      missing = addressed == 0 && request.unregistered == nil ? 1 : max(0, Int(clamping: addressed) - devices)
    } else if !request.isForUser, devices > 0 {
      missing = 0
    }
    if let rejection = request.rejection {
      let isOfSome = rejection.flags.contains(.isForOtherApplication) && (devices > 0 || request.addressed != nil)
      findings.count(.rejected, isOfSome ? missing : devices == 0 ? 1 : 0)
      // Some of a person's devices may be registered for another application; their number is unknown.
      if !isOfSome || request.addressed != nil || !request.isForUser { return true }
    }
    if request.unregistered != nil, devices == 0, missing == 0 { findings.count(.unregistered) }
    guard missing > 0 else { return true }
    if request.isFiltered {
      // Its application was stopped, so no device was looked up.
      findings.count(.filtered, missing)
      return true
    } else if request.isDead, devices == 0 {
      findings.count(.deadLettered)
      return true
    } else if let settled = request.settled {
      findings.count(settled, missing)
      return true
    } else if request.isApplied, !request.hasFirst || request.isFiring, !request.isRedriven {
      // Its outcomes are older than the audited range, or it did not fit its schedule.
      findings.count(.replayed)
      return true
    } else if request.isYoung {
      findings.inFlight += missing
    } else {
      findings.lost += missing
      if let record = request.facts.first, rules.isAudited(record) { onLost(record) }
      let detail =
        request.addressed.map { "no outcome of \(missing) of \(ReadableText.count($0, "device"))" }
        ?? (devices == 0 ? "" : "the number of its devices is unknown")
      findings.add(.lost, request.id, request.facts, detail)
    }
    return false
  }

  /// A request, and the statements about it without a device.
  private struct Request {
    let id: NotificationID
    /// All facts of the request, and all of its id.
    let facts: ArraySlice<AuditFact>
    let all: ArraySlice<AuditFact>
    let isForUser: Bool
    let isBroken: Bool
    let isRemoval: Bool
    /// Whether the request removes all, or has a location trigger.
    ///
    /// No removal of all ends a location request.
    let reach: AuditFact.Flags
    let isYoung: Bool
    var isRedriven = false
    var end: Int64
    /// The end of the latest redrive, or of the record that ends first. A forged origin gives a record with another end the same source.
    var earliestEnd: Int64
    /// The highest number of recipients in an event.
    var addressed: Int64?
    var rejection: AuditFact?
    /// The last time of an event that it has no recipient.
    var unregistered: Int64?
    var isDead = false
    /// Whether it was filtered before its devices were looked up.
    var isFiltered = false
    /// Whether one of its records was published again after it was applied.
    var isApplied = false
    /// The outcome that names no device, such as `scheduled`.
    var settled: Outcome?
    /// Whether it is a firing.
    let isFiring: Bool
    /// Whether its first record is audited.
    var hasFirst = false
    /// The journal's pages of a person's devices.
    var journal = JournalPages([])

    init(_ record: AuditFact, _ facts: ArraySlice<AuditFact>, of all: ArraySlice<AuditFact>, isYoung: Bool) {
      id = record.id
      (self.facts, self.all) = (facts, all)
      isForUser = record.flags.contains(.isForUser)
      isBroken = record.flags.contains(.isBroken)
      isRemoval = record.flags.contains(.isRemoval)
      isFiring = record.flags.contains(.isFiring)
      reach = record.flags.intersection([.removesAll, .isOfPending])
      (end, earliestEnd) = (record.number, record.number)
      self.isYoung = isYoung
    }

    /// Whether one of its records is for the device, or for a person. A forged origin gives a record for another target the same source.
    func names(_ device: UInt64) -> Bool {
      facts.contains { $0.kind == .request && ($0.device == device || $0.flags.contains(.isForUser)) }
    }

    /// Takes a statement without a device.
    mutating func take(_ fact: AuditFact) {
      if fact.kind == .deadLetter { isDead = true }
      switch fact.outcome {
      case .addressed: addressed = max(addressed ?? 0, fact.number)
      case .rejected: rejection = fact
      case .unregistered: unregistered = max(unregistered ?? .min, fact.time)
      case .filtered: isFiltered = true
      case .replayed: isApplied = true
      // Without a device these are about a person's request: that it was scheduled, and its outcome at the schedule.
      case .scheduled, .carriedOut, .collapsed, .expired, .evicted, .duplicate, .canceled:
        settled = Outcome.weightiest(of: [settled, fact.outcome].compactMap(\.self)) ?? fact.outcome
      // Each of these names its device, or only the journal has it.
      case nil, .delivered, .updated, .removed, .wrongApplication, .deadLettered, .wrongUser, .unreadable, .queued, .response, .dismissed,
        .registered, .settingsChanged, .unregisteredDevice:
        break
      }
    }
  }

  /// Returns the number of repeated events.
  private func repeats(_ run: ArraySlice<AuditFact>) -> Int {
    guard run.count > 1 else { return 0 }
    let events = run.lazy.filter { $0.kind != .deadLetter && !$0.kind.isOfJournal }
    return events.count - Set(events.map(\.statement)).count
  }

  // MARK: A request on a device

  private func checkDevice(_ run: ArraySlice<AuditFact>, _ request: Request, _ findings: inout AuditFindings) {
    let device = run[run.startIndex].device
    var (kept, keepings): (AuditFact?, Int) = (nil, 0)
    let lastKept = run.last { $0.outcome == .queued }
    for fact in run {
      if fact.outcome == .queued, !request.journal.supersedes(fact) { (kept, keepings) = (fact, keepings + 1) }
      if fact.isTaken, fact.flags.contains(.isKnown) { findings.known += 1 }
      if fact.outcome == .collapsed, !fact.flags.contains(.namesSuccessor) { findings.staleDropped += 1 }
    }
    let outcomes = run.lazy.compactMap(\.outcome)
    let isTaken = outcomes.contains { $0 == .queued || $0.isTaken || $0.isByPerson }
    if !request.isBroken, isTaken, !request.names(device) {
      findings.add(.wrongDevice, request.id, request.facts)
    }
    if let rejection = request.rejection, isTaken, !request.isRedriven, !rejection.flags.contains(.isOfPoison) {
      if rejection.flags.contains(.isForOtherApplication) {
        var refused = rejection
        (refused.kind, refused.device) = (.refused, device)
        handOn(refused)
      } else {
        findings.add(.contradiction, rejection.id, request.facts, "rejected, and yet it came to a device")
      }
    }
    let outcome = Outcome.weightiest(of: outcomes)?.finalOutcome
    if let outcome {
      findings.count(outcome)
    } else if lastKept != nil, endedAsAnother(run, request) {
      // Redis had lost the other request of the id when it kept this one, and knows it again.
      findings.count(.duplicate)
    } else if let lastKept, let unregistered = request.unregistered, lastKept.time <= unregistered {
      // Redis had lost the entry. When the request was judged again, the person had no device.
      findings.count(.unregistered)
    } else if var open = kept {
      // The other facts of the device decide its ending.
      open.kind = .open
      open.number = request.end
      kept = open
    }
    // A request that ended at its schedule never reached the device.
    if request.settled != .scheduled {
      handOnAll(run, kept: keepings == 1 || kept?.kind == .open ? kept : nil) { fact in
        // What waits for its device keeps its place from a removal of what is pending.
        if fact.outcome == .collapsed, request.isRemoval, request.reach.contains(.isOfPending) { return }
        var fact = fact
        if fact.kind == .open || fact.outcome?.auditUse.contains(.keepsRevision) == true {
          fact.flags.formUnion(request.reach)
        } else if fact.outcome == .collapsed || fact.outcome == .canceled {
          fact.flags.formUnion(request.reach.intersection(.isOfPending))
        }
        handOn(fact)
      }
    }
    checkEnd(run, request, &findings)
    if outcome == .duplicate { checkDuplicate(run, request, &findings) }
  }

  /// Passes on the facts for `DeviceAudit`. The fact of an acknowledgement gets the time of keeping.
  private func handOnAll(_ run: ArraySlice<AuditFact>, kept: AuditFact?, _ handOn: (AuditFact) -> Void) {
    var left = kept
    for fact in run where fact.kind.isCheckedByDevice && !(fact.outcome == .expired && fact.flags.contains(.isSkipped)) {
      if let kept, fact.outcome == .queued, kept.outcome == .queued || fact.offset == kept.offset { continue }
      var fact = fact
      if let kept = left, fact.isTaken {
        fact.number = kept.time
        left = nil
      }
      handOn(fact)
    }
    if let left { handOn(left) }
  }

  /// Checks the statements about a request against its end.
  private func checkEnd(_ run: ArraySlice<AuditFact>, _ request: Request, _ findings: inout AuditFindings) {
    guard !request.isBroken, !request.isRemoval else { return }
    let wasShown = run.contains(where: \.isShow)
    for fact in run {
      let late = fact.time.subtractingReportingOverflow(request.end).partialValue
      if fact.isNewShow, request.end < fact.time, late > rules.clockSlack {
        // The time is that of the acknowledgement, which may have been delayed.
        if late > rules.certainlyLater {
          let detail = "acknowledged \(ReadableText.duration(milliseconds: late)) after its end"
          findings.add(.shownLate, fact.id, request.facts, detail)
        } else {
          findings.acknowledgedLate += 1
        }
      } else if fact.outcome == .expired, !wasShown, !fact.flags.contains(.isSkipped) {
        checkExpiration(fact, request, &findings)
      }
    }
  }

  /// Checks that no request expires before its end, by any clock.
  ///
  /// The clocks are the worker's, that of the event's broker, and this machine's. A worker with a fast clock expires requests too early,
  /// and the time in its events hides that.
  private func checkExpiration(_ fact: AuditFact, _ request: Request, _ findings: inout AuditFindings) {
    let times = [
      (fact.time, "by the worker's clock"), (fact.number > 0 ? fact.number : .max, "by the broker's clock"),
      (rules.written, "by the clock of this machine"),
    ]
    guard let first = times.min(by: { $0.0 < $1.0 }), first.0 < request.earliestEnd - rules.clockSlack else { return }
    let early = ReadableText.duration(milliseconds: request.earliestEnd - first.0)
    findings.add(.expiredEarly, fact.id, request.facts, "\(early) before its end \(first.1)")
  }

  /// Whether the device has an outcome of another request of the same id.
  private func endedAsAnother(_ run: ArraySlice<AuditFact>, _ request: Request) -> Bool {
    others(run, request).contains { $0.outcome?.auditUse.contains(.makesDuplicates) == true }
  }

  /// Returns the facts of the device about other records of the same id.
  private func others(_ run: ArraySlice<AuditFact>, _ request: Request) -> some Sequence<AuditFact> {
    request.all.lazy.filter { other in
      guard let one = run.first else { return false }
      return other.device == one.device && other.source != one.source
    }
  }

  /// Checks that a duplicate has another record of its id.
  private func checkDuplicate(_ run: ArraySlice<AuditFact>, _ request: Request, _ findings: inout AuditFindings) {
    // The other record of an occurrence has the apns-id of the request that scheduled it.
    guard rules.beginsAtBeginning, !request.isYoung, !request.isFiring, let duplicate = run.first else { return }
    let hasOther = others(run, request).contains { $0.outcome.map { $0 != .duplicate && $0 != .replayed } ?? false }
    // A record that is scheduled has no outcome at the device. Its occurrence has, under another apns-id.
    if !hasOther, !request.all.contains(where: { $0.outcome == .scheduled }) {
      findings.add(.duplicateOfNothing, duplicate.id, request.all)
    }
  }

  // MARK: An id on a device

  /// Checks that a device shows an id once.
  ///
  /// A second event of the same worker is a repeat. One of another worker is a second show.
  private func checkShows(_ shows: [AuditFact], _ findings: inout AuditFindings) {
    let shows = shows.sorted { ($0.device, $0.time, $0.offset) < ($1.device, $1.time, $1.offset) }
    shows[...].forEachRun(of: \.device) { run in
      if let first = run.first, run.contains(where: { $0.statement != first.statement || $0.worker != first.worker }) {
        findings.add(.shownTwice, first.id, run)
      }
    }
  }
}

extension AuditFact {
  /// Whether it is the first record of its request.
  fileprivate var isFirst: Bool { offset == sourceOffset && partition == sourcePartition }

  /// Whether a request was read and judged, whatever became of it.
  fileprivate var tellsOfPassage: Bool {
    switch kind {
    case .page, .closing: true
    case .told(let outcome): outcome != .replayed && !(outcome == .rejected && flags.contains(.isOfPoison))
    case .request, .deadLetter, .judged, .open, .refused: false
    }
  }
}
