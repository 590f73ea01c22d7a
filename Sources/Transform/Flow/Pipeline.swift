import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// What the records in flight tell their lane.
protocol PipelineOwner: AnyObject {
  /// A record is finished: its ticket goes back to the tracker.
  func finished(_ ticket: RecordTicket)
  /// Whether the assignment that a record was begun in still holds.
  func isCurrent(_ ticket: RecordTicket) -> Bool
  /// Redis has answered that it does not have a bucket.
  func redisLostBucket()
  /// Redis takes nothing that writes.
  func redisRefusedWrites(_ error: StoreError)
}

/// Does what the flow of the records in flight asks for: reads them, has them judged, and says what became of them. Loop-confined.
///
/// A record is *begun* when it comes, and *finished* when each of its outcomes is durable: then its ticket goes back to the tracker, which
/// commits the contiguous prefix. When that is, and what is started again, `Flow` decides.
final class Pipeline {
  let loop: EventLoop
  let settings: TransformSettings
  private let shards: Shards
  let outcomes: Outcomes
  /// Nil: nothing is told of what is judged.
  let journal: Journal?
  let metrics: TransformMetrics
  let logger: Logger
  // What the stages share; each has its part of `Store`, and its own file.
  var flow: Flow
  var records = InFlightTable()
  let reader: RequestReader
  let judging: Judge
  let recipients: Recipients
  var paging = RecipientPaging()
  let mailboxes: Mailboxes
  var evictions = Evictions()
  let registrations: Registrations
  private let budget = MemoryBudget()
  /// Requests for people, while the registry is not complete.
  private var awaitingRegistry: [Flow.Parked] = []
  private let retry: Timer
  private var isRetrying = false
  /// Told what concerns the lane.
  weak var owner: (any PipelineOwner)?
  private let state: LaneState

  init(
    on loop: EventLoop, _ settings: TransformSettings, state: LaneState, shards: Shards, outcomes: Outcomes, journal: Journal?,
    logger: Logger, metrics: TransformMetrics
  ) {
    self.loop = loop
    self.settings = settings
    self.shards = shards
    self.outcomes = outcomes
    self.journal = journal
    self.state = state
    self.logger = logger
    self.metrics = metrics
    flow = Flow(tries: settings.tries)
    reader = RequestReader(settings)
    judging = Judge(shards, settings.judgeLimits)
    recipients = Recipients(shards)
    mailboxes = Mailboxes(shards)
    registrations = Registrations(shards, recipients, rememberedMilliseconds: settings.longestLifetime * 1000)
    retry = Timer(on: loop)
    retry.handler = { [unowned self] in retryFired() }
    judging.handler = self
  }

  /// Ends the timer and breaks the handlers; nothing may be under way.
  func close() {
    retry.close()
    owner = nil
  }

  // MARK: In

  /// Takes the records of a batch whose tickets the tracker has given.
  func take(_ batch: RecordBatch, _ begun: [BegunRecord]) {
    let retained = retain(batch, begun.map(\.index))
    let now = loop.milliseconds()
    for record in begun { start(add(retained, record, arrived: now)) }
    send()
  }

  private func add(_ batch: RetainedBatch, _ begun: BegunRecord, arrived: UInt64, deadLetteredAfter faults: Int = 0) -> Flow.Slot {
    metrics.took(isRegistration: begun.isRegistration)
    let slot = flow.begin(deadLetteredAfter: faults)
    records.set(slot, InFlightRecord(batch: batch, begun, arrived: arrived))
    return slot
  }

  private func retain(_ batch: RecordBatch, _ indexes: [Int]) -> RetainedBatch {
    let bytes = indexes.reduce(into: 0) { $0 += (batch[$1].value?.count ?? 0) + RetainedBatch.entryBytes }
    return RetainedBatch(batch, bytes: bytes, arena: bytes, budget: budget)
  }

  /// Whether more records may be taken: when nothing is under way they may, and as long as requests wait for the registry, to become whole
  /// by registrations.
  var hasRoom: Bool { budget.bytes < Self.maximumBytes || isIdle || !state.phase.mayResolveRecipients }

  /// What the records in flight may retain, with what is made from them; so many of the largest kind are well below `inFlight`.
  private static let maximumBytes = 96 << 20

  /// Takes a record that goes to the dead letters as it is.
  func deadLetter(_ batch: RecordBatch, _ begun: BegunRecord, tries: Int) {
    let retained = retain(batch, [begun.index])
    let slot = add(retained, begun, arrived: loop.milliseconds(), deadLetteredAfter: tries)
    records[slot].fault = DeadLetter.workersEnded
    start(slot)
  }

  private static let unknownFault = "it could not be processed"

  /// Sends a record to the dead letters; nothing of it is looked at but its headers.
  private func deadLetter(_ slot: Flow.Slot, _ record: RecordView) {
    let error = records[slot].fault ?? Self.unknownFault
    records[slot].verdict = .poison
    records[slot].judgement = JournalJudgement(.deadLettered, revision: source(slot, record).impliedRevision)
    reader.readEnvelope(record) { envelope in
      settle(
        slot,
        outcomes.deadLetter(
          record, records[slot].isRegistration ? nil : envelope, error: error, tries: flow.faults(slot), refusals: flow.refusals(slot),
          token: slot))
    }
  }

  /// Something went wrong that lies in the record, or in what Redis has of its devices: no waiting mends it.
  func fault(_ slot: Flow.Slot, _ what: String) {
    records[slot].fault = what
    _ = flow.fault(slot)
  }

  /// Reads a record, and has it pass its stages and be judged.
  private func start(_ slot: Flow.Slot) {
    let record = records[slot].record
    // A dead letter is never read: reading may be what it fails at.
    if flow.isDeadLetter(slot) {
      deadLetter(slot, record)
    } else if records[slot].isRegistration {
      register(slot, record)
    } else {
      read(slot, record)
    }
    finish(slot)
  }

  private func read(_ slot: Flow.Slot, _ record: RecordView) {
    reader.read(record) { reading in
      switch reading {
      case .accepted(let view): pass(view, slot)
      case .rejected(let rejection, let envelope):
        records[slot].verdict = .rejected
        records[slot].judgement = JournalJudgement(.rejected, revision: source(slot, record).impliedRevision)
        settle(
          slot,
          outcomes.reject(
            record, rejection, envelope, tries: flow.attempts(slot) + 1, refusals: flow.refusals(slot), token: slot))
      }
    }
  }

  /// The stages before the judge: so far only people's requests wait there, for the registry.
  private func pass(_ view: RequestView, _ slot: Flow.Slot) {
    var isParked = false
    if case .user = view.target { isParked = !state.phase.mayResolveRecipients }
    switch flow.pass(slot, target: StableHash.hash(view.envelope.target), isParked: isParked) {
    case .judge: judge(view, slot)
    case .wait: if isParked { awaitingRegistry.append(flow.parked(slot)) }
    }
  }

  /// Records have passed their stages, and nobody of their targets is before them any more.
  private func passed(_ slots: [Flow.Slot]) {
    for slot in slots {
      reader.readAccepted(records[slot].record) { judge($0, slot) }
      finish(slot)
    }
    if !slots.isEmpty { send() }
  }

  private func judge(_ view: RequestView, _ slot: Flow.Slot) {
    let batch = records[slot].batch
    guard let entry = reader.entry(view, in: batch.arena, incarnation: records[slot].incarnation) else {
      fault(slot, "its delivery entry cannot be written")
      return flow.fail(slot)
    }
    switch view.target {
    case .device(let token): judge(slot, batch.arena, batch.arena.keep { DeviceToken.append(token, to: &$0) }, entry)
    case .user(let user):
      records[slot].recipients = RecipientPaging.Progress(
        application: batch.arena.keep(view.application), user: batch.arena.keep(user), entry: entry)
      nextPage(slot)
    }
  }

  // MARK: The registry

  /// The registry is complete: requests for people go on.
  func registryRestored() {
    let waiting = awaitingRegistry
    awaitingRegistry = []
    for parked in waiting { passed(flow.stageAnswered(parked)) }
  }

  // MARK: Out

  /// Notes how many records to Kafka an outcome has.
  func settle(_ slot: Flow.Slot, _ produced: Outcomes.Produced) {
    flow.expect(produced.count, of: slot)
    if !produced.isComplete { flow.fail(slot) }
  }

  /// A record to Kafka that belongs to a work is durable, or is not.
  func reported(_ slot: Flow.Slot, failure: KafkaError.Code?) {
    if let failure {
      if failure == .messageTooLarge {
        flow.refused(slot)
        if !flow.isDeadLetter(slot) { fault(slot, "an event of it is too large for Kafka") }
      }
      flow.fail(slot)
    }
    finish(slot)
    askWaiting()
  }

  /// A call of the store has failed that a record has asked for.
  func failed(_ slot: Flow.Slot, _ error: StoreError) {
    noticed(error)
    if error.code == .faulty { fault(slot, error.message) }
    fail(slot)
  }

  /// What a failed call says of Redis is the lane's business.
  func noticed(_ error: StoreError) {
    switch error.code {
    case .bucketLost: owner?.redisLostBucket()
    case .writesRefused: owner?.redisRefusedWrites(error)
    case .unavailable, .faulty: break
    }
    if error.code != .bucketLost { metrics.redisFailures.increment() }
  }

  func fail(_ slot: Flow.Slot) {
    flow.fail(slot)
    finish(slot)
  }

  /// One thing less to wait for; with the last one the record is finished, or is started again.
  func finish(_ slot: Flow.Slot) {
    switch flow.answered(slot) {
    case .wait: return
    case .retry:
      paging.leave(&records[slot])
      return scheduleRetry(flow.attempts(slot))
    case .finish: break
    }
    metrics.latency.observe(Double(loop.milliseconds() - records[slot].arrived) / 1000)
    if records[slot].verdict == .poison { logPoison(slot) }
    conclude(slot)
  }

  /// All outcomes of a record are durable, but for the journal, which has its ticket from now on.
  private func conclude(_ slot: Flow.Slot) {
    guard let journal, !records[slot].isRegistration else { return remove(slot, records[slot].verdict) }
    let (source, ticket) = (source(slot, records[slot].record), records[slot].ticket)
    if let judgement = records[slot].judgement { journal.append(source, judgement) }
    if let verdict = records[slot].verdict { metrics.count(verdict, isRegistration: false) }
    free(slot)
    journal.finish(ticket, source)
  }

  func source(_ slot: Flow.Slot, _ record: RecordView) -> JournalSource {
    JournalSource(record, incarnation: records[slot].incarnation)
  }

  private func logPoison(_ slot: Flow.Slot) {
    let record = records[slot].record
    logger.warning(
      "a record could not be processed: the dead letters have it",
      [
        "topic": record.topic, "partition": record.partition, "offset": record.offset, "reason": records[slot].fault ?? Self.unknownFault,
        "tries": flow.faults(slot),
      ])
  }

  /// It is done, or given up.
  private func remove(_ slot: Flow.Slot, _ verdict: RecordVerdict?) {
    if let verdict { metrics.count(verdict, isRegistration: records[slot].isRegistration) }
    let ticket = records[slot].ticket
    free(slot)
    owner?.finished(ticket)
  }

  private func free(_ slot: Flow.Slot) {
    records.clear(slot)
    flow.remove(slot)
  }

  // MARK: Again

  private func scheduleRetry(_ tries: Int) {
    guard !isRetrying else { return }
    isRetrying = true
    retry.start(after: min(2000, 20 << min(tries, 7)))
  }

  /// Lets go of what waits and was begun in an assignment that is over: whoever reads it again knows what there is now. Where nobody can,
  /// since its topic was deleted or cut, there is nobody to tell of it either.
  func dropEnded() {
    let (ended, judged) = flow.takeEnded { owner?.isCurrent(records[$0].ticket) == false }
    for slot in ended { remove(slot, .revoked) }
    passed(judged)
  }

  private func retryFired() {
    isRetrying = false
    dropEnded()
    // Pages whose turn it is may be all that is left: those that failed with them may have been let go of.
    guard flow.hasRetries || paging.isWaiting else { return }
    guard shards.isUp, state.phase.mayJudge, !outcomes.isFull else { return scheduleRetry(5) }
    for slot in flow.takeRetries() {
      // What is made from it is made again: the former bytes go when all of its batch are finished, or are started again.
      records[slot].restart(in: retain(records[slot].batch.records, [records[slot].index]))
      metrics.retries.increment()
      start(slot)
    }
    send()
    askWaiting()
  }

  /// Whether nothing is under way.
  var isIdle: Bool { flow.count == 0 }
}
