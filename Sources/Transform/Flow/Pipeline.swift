import EventLoop
import Extensions
import Kafka
import Notifications
import Store
import Worker

/// The lane, as the pipeline sees it.
protocol PipelineOwner: AnyObject {
  /// Whether the assignment that a record was begun in still holds.
  func isCurrent(_ ticket: RecordTicket) -> Bool
  /// Redis has answered that it does not have a bucket.
  func redisLostBucket()
  /// Redis refuses writes.
  func redisRefusedWrites(_ error: StoreError)
  /// A newer program has written what a record needs. The record waits.
  func foundNewer(_ error: StoreError)
  /// A request waits for a newer program. Lanes that start do not wait for it.
  func setAside(_ ticket: RecordTicket)
}

/// The way of the records in flight: makes the stages, begins and ends the records, and hands each from stage to stage.
///
/// A record's way: `take`, which gives it a slot; `start`, where dead letters, registrations and what is beyond a limit leave it; `pass`, through
/// the stages; `address`, to its schedule or its recipients; the judge; `drainNotes` and `finish`, which hand its ticket to the journal. Two
/// ways lead back: from `retryFired` to `start`, and from `askSchedules` to `pass`, where something is pending for a request's target.
final class Pipeline {
  /// What becomes of the records.
  enum Purpose {
    /// Their outcomes go to Kafka, and what is due later fires.
    case serving(ScheduleWriter, Journal)
    /// An empty Redis gets what these verdicts say. The schedules come from their topic.
    case rebuilding(JournaledVerdicts)

    /// Nil where verdicts are not written.
    fileprivate var journal: Journal? { if case .serving(_, let journal) = self { journal } else { nil } }
    /// The former verdicts, during a rebuild.
    fileprivate var journaled: JournaledVerdicts? { if case .rebuilding(let verdicts) = self { verdicts } else { nil } }
  }

  private let lane: LaneContext
  private let outcomes: Outcomes
  private let journal: Journal?
  private let reader: RequestReader
  private let inFlight: InFlight
  private let errors: StoreErrors
  private let budget = MemoryBudget()
  private let maximumBytes: Int
  private let rejections: Rejections
  private let registry: RegistryWait
  private let stages: StageSequence<InFlightRecord>
  private let recipients: RecipientStage
  private let judge: JudgeStage
  private let registrations: RegistrationStage
  private let evictions: EvictionStage
  /// Nil during a rebuild, which restores the schedules from their topic.
  private let schedules: LaneSchedules?
  private let retry: Timer
  private var pace = RetryPace()
  /// The lane.
  weak var owner: (any PipelineOwner)? { didSet { errors.owner = owner } }

  init(_ lane: LaneContext, for purpose: Purpose, _ applications: ApplicationsReader, _ outcomes: Outcomes) {
    let (settings, journaled) = (lane.settings, purpose.journaled)
    (self.lane, self.outcomes, journal) = (lane, outcomes, purpose.journal)
    maximumBytes = settings.inFlightBytes
    reader = RequestReader(settings)
    inFlight = InFlight(tries: settings.tries)
    errors = StoreErrors(inFlight, lane.metrics)
    rejections = Rejections(inFlight, outcomes, reader, lane.metrics)
    registry = RegistryWait(lane.state)
    // In the order in which requests pass them.
    let persons = Recipients(lane.shards)
    let facts = DeviceFacts(lane.shards, persons)
    let rules = ContentRules(settings.limits)
    let extensions = LaneExtensions(settings.extensions)
    schedules =
      if case .serving(let writer, _) = purpose {
        LaneSchedules(lane, facts, writer, inFlight, errors, outcomes, rejections, reader)
      } else { nil }
    stages = StageSequence(
      [ApplicationStage(on: lane.loop, applications, isRebuilding: journaled != nil), registry]
        + (schedules.map { [$0.firingWait, $0.stage] } ?? []) + [
          CallStage(on: lane.loop, extensions, rules, journaled == nil ? Results(lane.shards, on: lane.loop) : nil, facts),
          ExtensionStage(extensions, rules, facts, ExtendedEntryWriter(lane.metrics, lane.logger)),
        ], inFlight)
    judge = JudgeStage(Judge(lane.shards, settings.judgeLimits), inFlight, errors, outcomes, rejections, lane.metrics, journaled)
    recipients = RecipientStage(persons, facts, inFlight, errors, judge, reader, outcomes, journal: journal, journaled: journaled)
    registrations = RegistrationStage(
      Registrations(lane.shards, persons, rememberedMilliseconds: settings.longestLifetime * 1000), schedules?.zoneChanges, inFlight,
      errors, lane.logger)
    evictions = EvictionStage(Mailboxes(lane.shards), settings.mailboxBounds, errors, outcomes, metrics: lane.metrics, logger: lane.logger)
    retry = Timer(on: lane.loop)
    retry.handler = { [unowned self] in retryFired() }
    inFlight.onNote = { [notes = lane.notes] in notes.note() }
    stages.owner = self
    judge.owner = self
    recipients.owner = self
  }

  /// Closes the stages. No call may be outstanding.
  func close() async {
    retry.close()
    schedules?.close()
    owner = nil
    await stages.close()
  }

  // MARK: Begin

  /// Whether the lane may take more records. It always may while idle, and while requests wait for the registry: only more records can
  /// complete it.
  var hasRoom: Bool { bytesInFlight < maximumBytes && !judge.isBusy || isIdle || !lane.state.phase.mayResolveRecipients }

  /// The bytes that the records in flight and what is made from them retain, and those of the journal that Kafka does not have.
  var bytesInFlight: Int { budget.bytes + (journal?.bytes ?? 0) }

  /// Whether no record is in flight.
  var isIdle: Bool { inFlight.count == 0 }

  /// Whether all records in flight wait for registrations, or for a record that does.
  var onlyWaitsForRegistry: Bool { inFlight.count == registry.count + (schedules?.firingWait.count ?? 0) }

  /// Takes records of a batch for which the tracker has given tickets.
  ///
  /// - Parameter poison: the permanent errors of a record that goes to the dead letters as it is.
  func take(_ batch: RecordBatch, _ begun: [BegunRecord], poison: (faults: Int, reason: String)? = nil) {
    let retained = RetainedBatch(batch, begun.lazy.map(\.index), budget)
    let now = lane.loop.milliseconds()
    start(
      begun.map { record in
        lane.metrics.took(isRegistration: record.isRegistration)
        return inFlight.begin(InFlightRecord(batch: retained, record, arrived: now), poison: poison)
      })
  }

  private func start(_ slots: [Slot]) {
    stages.beginTurn()
    for slot in slots { inFlight.conclude(inFlight.answer(slot), start(slot)) }
    stages.flush()
    judge.send()
  }

  private func start(_ slot: Slot) -> Conclusion {
    // A dead letter is never read: reading may be what it fails at.
    if inFlight.isDeadLetter(slot) { return rejections.deadLetter(slot) }
    if inFlight[slot].isRegistration {
      registrations.take(slot)
      return .done
    }
    if let excess = inFlight[slot].excess { return rejections.limit(slot, excess) }
    return reader.read(inFlight[slot].record) { reading in
      switch reading {
      case .accepted(let view): passUnlessReplayed(view, slot)
      case .rejected(let rejection, let envelope): rejections.reject(slot, rejection, envelope)
      }
    }
  }

  private func passUnlessReplayed(_ view: RequestView, _ slot: Slot) -> Conclusion {
    // A replay has no effect: the first record lies before it in this partition, so this lane has judged that, or will judge it first, even
    // after a rewind.
    guard view.envelope.origin?.purpose == .replay else { return pass(view, slot) }
    inFlight[slot].end(JournalJudgement(.replayed, revision: inFlight[slot].source.impliedRevision))
    return .done
  }

  /// - Parameter replaces: whether something is pending for the request's target.
  private func pass(_ view: RequestView, _ slot: Slot, replaces: Bool = false) -> Conclusion {
    // The topic of the schedules has the requests that are due later.
    if schedules == nil, view.timing.isLater || view.operation == .cancel {
      inFlight[slot].end(JournalJudgement(.scheduled, revision: inFlight[slot].source.impliedRevision))
      return .done
    }
    guard var content = reader.content(view, in: inFlight[slot].batch.arena, incarnation: inFlight[slot].source.incarnation) else {
      return .poisoned("its delivery entry cannot be written")
    }
    lane.metrics.countUnknownFields(view)
    content.called = inFlight[slot].called
    content.schedule = schedules?.job(of: view, inFlight[slot], replaces: replaces)
    content.entry.mayReplace = schedules != nil && content.schedule == nil && view.namesIdentifier
    if inFlight[slot].skipsExtensions, content.mutability == .mutable { content.mutability = .suspected }
    if content.concernsSchedules {
      schedules?.firingWait.begins(slot, order: inFlight.order(of: slot), content, target: content.targetHash)
    }
    guard let content = stages.take(slot, content, target: content.targetHash) else { return .done }
    return address(slot, content)
  }

  /// Sends a request to its devices: it has passed the stages, and the earlier requests of its target are judged.
  private func address(_ slot: Slot, _ content: RequestContent) -> Conclusion {
    if let schedules, let job = content.schedule, let conclusion = schedules.outcomes.finish(slot, content, job) { return conclusion }
    if let stop = content.stop {
      // It takes the place of what is pending under its identifier all the same. No device is looked up for it, which would tell.
      return content.entry.mayReplace ? askSchedules(slot) : rejections.filter(slot, content, by: stop)
    }
    recipients.take(slot, content)
    return .done
  }

  /// The registry is complete: requests for persons go on.
  func registryRestored() { registry.restored() }

  /// Asks for the pages that requests for persons wait for, as far as there is room now.
  func askWaiting() { recipients.askWaiting() }

  /// A check of what Redis does begins.
  func checkBegins() { errors.checkBegins() }

  /// It has ended. Returns whether another check is due.
  func checkEnded(passed: Bool) -> Bool { errors.checkEnded(passed: passed) }

  // MARK: Delivery reports

  /// A record that was produced is durable, or is not. `askWaiting` follows after all reports.
  ///
  /// Kafka finds a record too large only after it has refused it alone: see `Producer.Options.givesAgain`.
  func reported(_ purpose: OutcomePurpose, failure: KafkaError.Code?) {
    let (slot, number, isTooLarge) = (purpose.slot, purpose.number, failure == .messageTooLarge)
    switch purpose.kind {
    case .record:
      let answer = inFlight.answer(slot)
      if failure == nil { return inFlight.done(answer) }
      if isTooLarge { inFlight.poisoned(answer, "an event of it is too large for Kafka") } else { inFlight.failed(answer) }
    case .letter:
      if isTooLarge { inFlight[slot].letter.refused() }
      guard failure == nil else { return inFlight.failed(inFlight.answer(slot)) }
      inFlight[slot].letter.written()
      inFlight.done(inFlight.answer(slot))
    case .letterEvent:
      // One that is too large makes no further letter.
      guard failure == nil || isTooLarge else { return inFlight.failed(inFlight.answer(slot)) }
      inFlight[slot].letter.eventDone()
      inFlight.done(inFlight.answer(slot))
    case .eviction: evictions.reported(Int(number), failed: failure != nil)
    case .journal: journal?.reported(number, failure: failure)
    case .schedule: schedules?.outcomes.reported(number, failure: failure)
    case .scheduleFollowUp: schedules?.followUps.reported(number, failed: failure != nil)
    case .firing: schedules?.firings.reported(number, failed: failure != nil)
    case .unreadable: break
    }
  }

  /// Fires the schedules that are due; nil during a rebuild.
  var firings: Firings? { schedules?.firings }

  // MARK: End

  /// Finishes the records that have ended since the last call, and schedules the retry of those that have failed.
  func drainNotes() {
    for slot in inFlight.takeEnded() { finish(slot) }
    let failed = inFlight.takeFailed()
    for slot in failed {
      recipients.leave(slot)
      if inFlight.attempts(slot) > 0 { pace.failedAgain() }
    }
    // The pages of the failed records have left room for others.
    if !failed.isEmpty { recipients.askWaiting() }
    scheduleRetry()
  }

  /// Finishes a record whose outcomes are durable, except for the journal. The journal gets its ticket.
  private func finish(_ slot: Slot) {
    // A defect of this program, which would be a request without an outcome: it is retried, and then goes to the dead letters.
    guard let verdict = inFlight[slot].verdict else {
      inFlight.expect(1, of: slot)
      return inFlight.poisoned(inFlight.answer(slot), "it ended without a verdict")
    }
    if verdict.isPoison { logPoison(slot) }
    if inFlight.attempts(slot) > 0 { pace.succeeded() }
    let record = remove(slot, isDone: true)
    lane.metrics.latency.observe(Double(lane.loop.milliseconds() - record.arrived) / 1000)
    lane.metrics.count(verdict, isRegistration: record.isRegistration)
    if record.isRegistration { return lane.notes.finished(record.ticket) }
    let source = record.source
    lane.metrics.transformed(at: lane.loop.wallMilliseconds(), published: source.timestamp)
    guard let journal else { return lane.notes.finished(record.ticket) }
    if let judgement = record.judgement {
      journal.append(source) { $0.append(offset: source.offset, timestamp: source.timestamp, judgement, now: $1) }
    }
    journal.finish(record.ticket, source)
  }

  private func remove(_ slot: Slot, isDone: Bool) -> InFlightRecord {
    let record = inFlight.remove(slot)
    schedules?.ended(slot, isDone: isDone)
    return record
  }

  private func logPoison(_ slot: Slot) {
    let record = inFlight[slot].record
    let headers = RequestRecord(record, topic: .empty).headers
    lane.logger.with(trace: TraceParent.carried(headers[.traceparent])).warning(
      "a record could not be processed: the dead letters have it",
      [
        "topic": record.topic, "partition": record.partition, "offset": record.offset, "reason": inFlight.reason(slot),
        "tries": inFlight.faults(slot),
      ])
  }

  /// Drops parked records and retries whose partition was revoked. The new owner reads them again. Where the topic was deleted or cut,
  /// nobody can read them.
  func dropRevoked() {
    let (revoked, released) = stages.takeRevoked { owner?.isCurrent(inFlight[$0].ticket) == false }
    for slot in revoked {
      let record = remove(slot, isDone: false)
      lane.metrics.count(.revoked, isRegistration: record.isRegistration)
      lane.notes.finished(record.ticket)
    }
    if !revoked.isEmpty, inFlight.retries == 0 { pace = RetryPace() }
    if !released.isEmpty { passed(released) }
  }

  // MARK: Retry

  private func scheduleRetry() {
    guard inFlight.retries > 0 else { return }
    let isDueSoon = inFlight.firstRetries > 0
    retry.start(noLaterThan: isDueSoon ? RetryPace.shortestMilliseconds : pace.delay(at: lane.loop.milliseconds()))
  }

  private func retryFired() {
    dropRevoked()
    // The requests whose pages have failed may have been dropped, and others still wait for their pages.
    guard inFlight.retries > 0 || recipients.isWaiting else { return }
    guard lane.shards.isUp, lane.state.phase.mayJudge, !outcomes.isFull else { return retry.start(after: Self.checkMilliseconds) }
    let round = pace.nextRound(of: inFlight.retries - inFlight.firstRetries, at: lane.loop.milliseconds())
    let slots = inFlight.takeRetries(failedBefore: round)
    for slot in slots {
      // The record's entries are made again. Its former batch is released when no other record retains it.
      let record = inFlight[slot]
      inFlight[slot].restart(in: RetainedBatch(record.batch.records, CollectionOfOne(record.index), budget))
      lane.metrics.retries.increment()
    }
    start(slots)
    recipients.askWaiting()
    scheduleRetry()
  }

  /// How soon the retries look again whether the lane may judge.
  private static let checkMilliseconds = 640
}

extension Pipeline: StageSequenceOwner {
  /// Whether a request that has waited may continue: the lane still owns its partition and still judges. Otherwise it is retried.
  private func mayGoOn(_ slot: Slot, _ content: RequestContent, _ now: UInt64) -> Bool {
    guard lane.state.phase.mayJudge, owner?.isCurrent(inFlight[slot].ticket) == true, content.called?.isOutdated(at: now) != true else {
      return false
    }
    return content.receiver.device != nil || lane.state.phase.mayResolveRecipients
  }

  func keep(_ slot: Slot, _ called: CalledExtensions) { inFlight[slot].keep(called) }

  func failed(_ slot: Slot, _ error: StoreError) { errors.failed(inFlight.answer(slot), error) }

  func passed(_ requests: [(slot: Slot, content: RequestContent)]) {
    let now = lane.loop.milliseconds()
    for (slot, content) in requests {
      inFlight.conclude(inFlight.answer(slot), mayGoOn(slot, content, now) ? address(slot, content) : .failed)
    }
    judge.send()
  }
}

extension Pipeline {
  /// A request was judged at one of its person's devices.
  func judged(_ slot: Slot, _ token: ArenaSpan, _ judgement: JournalJudgement) -> Conclusion {
    recipients.judged(slot, token, judgement)
  }

  /// Something is pending for a request's target: ask the schedules before the request is judged.
  func askSchedules(_ slot: Slot) -> Conclusion {
    stages.beginTurn()
    defer { stages.flush() }
    return reader.readAccepted(inFlight[slot].record) { pass($0, slot, replaces: true) }
  }

  /// Entries of a device's mailbox have to end: it has more than it may keep, or a removal of all may cancel them.
  func foundEndings(_ token: UnsafeRawBufferPointer, _ ending: Evictions.Ending) { evictions.found(token, ending) }

  /// The verdicts of a call are applied.
  func judged() {
    recipients.askWaiting()
    if judge.hasCaughtUp { lane.notes.note() }
  }
}
