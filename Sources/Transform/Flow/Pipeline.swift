import EventLoop
import Extensions
import Kafka
import Notifications
import Store
import Worker

/// What the pipeline tells its lane.
protocol PipelineOwner: AnyObject {
  /// A record is finished: its ticket goes back to the tracker.
  func finished(_ ticket: RecordTicket)
  /// Whether the assignment that a record was begun in still holds.
  func isCurrent(_ ticket: RecordTicket) -> Bool
  /// Redis has answered that it does not have a bucket.
  func redisLostBucket()
  /// Redis takes nothing that writes.
  func redisRefusedWrites(_ error: StoreError)
  /// Redis has caught up: there may be room for more.
  func redisCaughtUp()
}

/// The stages of the records in flight: makes them, takes records in, and hands each on. Loop-confined.
final class Pipeline {
  private let loop: EventLoop
  private let shards: Shards
  private let outcomes: Outcomes
  private let journal: Journal?
  private let state: LaneState
  private let reader: RequestReader
  /// Nil where a Redis is rebuilt: what is replayed was read before, where it lay first.
  private let checkpoints: Checkpoints?
  private let inFlight: InFlight
  private let maximumBytes: Int
  private let rejections: Rejections
  private let registry: RegistryWait
  private let stages: StageSequence
  private let recipients: RecipientStage
  private let judge: JudgeStage
  private let registrations: RegistrationStage
  private let evictions: EvictionStage
  private let metrics: TransformMetrics
  private let retry: Timer
  private var isRetrying = false
  private let lettingGo: Timer
  /// Told what concerns the lane.
  weak var owner: (any PipelineOwner)?

  /// - Parameters:
  ///   - checkpoints: nil where a Redis is rebuilt.
  ///   - journal: nil: nothing is written of what is judged.
  ///   - journaled: how requests were judged, where a Redis is rebuilt.
  init(
    on loop: EventLoop, _ settings: TransformSettings, state: LaneState, shards: Shards, checkpoints: Checkpoints?,
    applications: ApplicationsReader, outcomes: Outcomes, journal: Journal?, journaled: JournaledVerdicts? = nil, logger: Logger,
    metrics: TransformMetrics
  ) {
    self.loop = loop
    self.shards = shards
    self.outcomes = outcomes
    self.journal = journal
    self.state = state
    self.checkpoints = checkpoints
    self.metrics = metrics
    maximumBytes = settings.inFlightBytes
    reader = RequestReader(settings)
    inFlight = InFlight(on: loop, tries: settings.tries, journal: journal, metrics: metrics, logger: logger)
    rejections = Rejections(inFlight, outcomes, reader, metrics)
    registry = RegistryWait(state)
    // What may answer later, in the order in which requests pass it.
    let (persons, locales) = (Recipients(shards), Locales(shards))
    let rules = ContentRules(settings.limits)
    let extensions = LaneExtensions(settings.extensions)
    stages = StageSequence(
      [
        ApplicationStage(on: loop, applications, isRebuilding: checkpoints == nil), registry,
        CallStage(on: loop, extensions, rules, checkpoints == nil ? nil : Results(shards, on: loop), persons, locales),
        ExtensionStage(extensions, rules, locales, ExtendedEntryWriter(metrics, logger)),
      ], inFlight)
    judge = JudgeStage(Judge(shards, settings.judgeLimits), inFlight, outcomes, rejections, metrics, journaled)
    recipients = RecipientStage(
      persons, locales, inFlight, judge, reader, outcomes, journal: journal, journaled: journaled, metrics: metrics, logger: logger)
    registrations = RegistrationStage(
      Registrations(shards, persons, rememberedMilliseconds: settings.longestLifetime * 1000), inFlight, logger)
    evictions = EvictionStage(
      Mailboxes(shards), maximum: settings.mailboxBound, inFlight, outcomes, metrics: metrics, logger: logger)
    retry = Timer(on: loop)
    lettingGo = Timer(on: loop)
    retry.handler = { [unowned self] in retryFired() }
    lettingGo.handler = { [unowned self] in dropEnded() }
    inFlight.owner = self
    stages.owner = self
    judge.owner = self
  }

  /// Ends what it holds and breaks the handlers; nothing may be under way.
  func close() async {
    retry.close()
    lettingGo.close()
    owner = nil
    await stages.close()
  }

  // MARK: In

  /// Whether more records may be taken: when nothing is under way they may, and as long as requests wait for the registry, to become
  /// complete by registrations.
  var hasRoom: Bool { bytesInFlight < maximumBytes && !judge.isBusy || isIdle || !state.phase.mayResolveRecipients }

  /// What the records in flight retain now, with what is made from them, and what Kafka does not have of the journal.
  var bytesInFlight: Int { inFlight.bytes + (journal?.bytes ?? 0) }

  /// Whether nothing is under way.
  var isIdle: Bool { inFlight.flow.count == 0 }

  /// Whether all that is under way waits for registrations.
  var onlyWaitsForRegistry: Bool { inFlight.flow.count == registry.count }

  /// Takes the records of a batch whose tickets the tracker has given.
  func take(_ batch: RecordBatch, _ begun: [BegunRecord]) { start(inFlight.begin(batch, begun)) }

  /// Takes a record that goes to the dead letters as it is.
  func deadLetter(_ batch: RecordBatch, _ begun: BegunRecord, tries: Int) {
    let slots = inFlight.begin(batch, [begun], deadLetteredAfter: tries)
    for slot in slots { inFlight[slot].fault = DeadLetter.workersEnded }
    start(slots)
  }

  private func start(_ slots: [Flow.Slot]) {
    stages.beginTurn()
    for slot in slots {
      start(slot)
      inFlight.answered(slot)
    }
    stages.flush()
    judge.send()
  }

  private func start(_ slot: Flow.Slot) {
    // A dead letter is never read: reading may be what it fails at.
    if inFlight.flow.isDeadLetter(slot) { return rejections.deadLetter(slot) }
    if inFlight[slot].isRegistration { return registrations.take(slot) }
    reader.read(inFlight[slot].record) { reading in
      switch reading {
      case .accepted(let view): take(view, slot)
      case .rejected(let rejection, let envelope): rejections.reject(slot, rejection, envelope)
      }
    }
  }

  private func take(_ view: RequestView, _ slot: Flow.Slot) {
    let marker = checkpoints?.table.marker(inFlight[slot].record.partitionIndex) ?? .max
    guard view.envelope.repeatsWhatWasApplied(below: marker) else { return pass(view, slot) }
    inFlight[slot].verdict = .replayed
    inFlight[slot].judgement = JournalJudgement(.applied, revision: inFlight[slot].source.impliedRevision)
  }

  private func pass(_ view: RequestView, _ slot: Flow.Slot) {
    guard var content = reader.content(view, in: inFlight[slot].batch.arena, incarnation: inFlight[slot].incarnation) else {
      inFlight.fault(slot, "its delivery entry cannot be written")
      return inFlight.flow.fail(slot)
    }
    metrics.countUnknownFields(view)
    content.called = inFlight[slot].called
    if inFlight[slot].skipsExtensions, content.mutability == .mutable { content.mutability = .suspected }
    if let content = stages.take(slot, content, target: StableHash.hash(view.envelope.target)) { address(slot, content) }
  }

  /// A request has passed the stages, and those of its target that came before it are judged: it goes to its devices.
  private func address(_ slot: Flow.Slot, _ content: RequestContent) {
    if let stop = content.stop { return rejections.filter(slot, content, by: stop) }
    inFlight.passed(slot, content)
    recipients.take(slot, content)
  }

  /// The registry is complete: requests for people go on.
  func registryRestored() { registry.restored() }

  /// Asks for the pages of those who waited, as far as there is room now.
  func askWaiting() { recipients.askWaiting() }

  // MARK: Out

  /// An event of a record in flight is durable, or is not; `askWaiting` follows when all reports are told.
  ///
  /// Kafka finds a record too large only after it has refused it alone: see `Producer.Options.givesAgain`.
  func reported(_ slot: Flow.Slot, failure: KafkaError.Code?) {
    if let failure {
      if failure == .messageTooLarge { inFlight.fault(slot, "an event of it is too large for Kafka") }
      inFlight.flow.fail(slot)
    }
    inFlight.answered(slot)
  }

  /// The dead letter that a record in flight becomes is durable, or is not.
  func letterReported(_ slot: Flow.Slot, failure: KafkaError.Code?) {
    if failure == nil { inFlight.flow.letterWritten(slot) } else { inFlight.flow.fail(slot) }
    if failure == .messageTooLarge { inFlight.flow.letterRefused(slot) }
    inFlight.answered(slot)
  }

  /// The event that belongs to a dead letter is durable, or is not. One that is too large makes no further letter.
  func letterEventReported(_ slot: Flow.Slot, failure: KafkaError.Code?) {
    if failure == nil || failure == .messageTooLarge { inFlight.flow.letterEventDone(slot) } else { inFlight.flow.fail(slot) }
    inFlight.answered(slot)
  }

  /// The `evicted` event of an eviction's entry is in Kafka, or is not.
  func evictionReported(_ number: Int, failed: Bool) { evictions.reported(number, failed: failed) }

  // MARK: Again

  private func scheduleRetry(_ tries: Int) {
    guard !isRetrying else { return }
    isRetrying = true
    retry.start(after: min(2000, 20 << min(tries, 7)))
  }

  /// Lets go of what waits and was begun in an assignment that is over: whoever reads it again knows what there is now. Where nobody can,
  /// since its topic was deleted or cut, there is nobody to tell of it either.
  func dropEnded() {
    let (ended, released) = stages.takeEnded { owner?.isCurrent(inFlight[$0].ticket) == false }
    // First those that waited behind them: what is let go of makes room, and what begins there may be for the same target.
    if !released.isEmpty { passed(released) }
    for slot in ended { inFlight.revoke(slot) }
  }

  /// Does so soon, in a turn of its own: a batch may just be looked at, and what is let go of makes room for more of it.
  func dropEndedSoon() { lettingGo.start(after: 0) }

  private func retryFired() {
    isRetrying = false
    dropEnded()
    // Pages whose turn it is may be all that is left: those that failed with them may have been let go of.
    guard inFlight.flow.hasRetries || recipients.isWaiting else { return }
    guard shards.isUp, state.phase.mayJudge, !outcomes.isFull else { return scheduleRetry(5) }
    start(inFlight.takeRetries())
    recipients.askWaiting()
  }
}

extension Pipeline: InFlightOwner {
  func finished(_ ticket: RecordTicket) { owner?.finished(ticket) }

  func failed(_ slot: Flow.Slot) {
    recipients.leave(slot)
    scheduleRetry(inFlight.flow.attempts(slot))
  }

  func failed(_ error: StoreError) {
    switch error.code {
    case .bucketLost: owner?.redisLostBucket()
    case .writesRefused: owner?.redisRefusedWrites(error)
    case .unavailable, .overloaded, .refused, .unexplained, .faulty: break
    }
  }

  /// A check of what Redis does begins.
  func checkBegins() { inFlight.checkBegins() }

  /// It has ended; answers whether another one is due.
  func checkEnded(passed: Bool) -> Bool { inFlight.checkEnded(passed: passed) }
}

extension Pipeline: StageSequenceOwner {
  /// Whether a request that took its time still is the lane's to judge, and the lane still is what it was when the request came; else it is
  /// started again.
  private func mayGoOn(_ slot: Flow.Slot, _ content: RequestContent, _ now: UInt64) -> Bool {
    guard state.phase.mayJudge, owner?.isCurrent(inFlight[slot].ticket) == true, content.called?.isOutdated(at: now) != true else {
      return false
    }
    if case .person = content.receiver { return state.phase.mayResolveRecipients }
    return true
  }

  func failed(_ slot: Flow.Slot, _ error: StoreError) { inFlight.failed(slot, error) }

  func passed(_ requests: [(slot: Flow.Slot, content: RequestContent)]) {
    let now = loop.milliseconds()
    for (slot, content) in requests {
      if mayGoOn(slot, content, now) { address(slot, content) } else { inFlight.flow.fail(slot) }
      inFlight.answered(slot)
    }
    judge.send()
  }
}

extension Pipeline: JudgeStageOwner {
  func judged(_ slot: Flow.Slot, _ token: ArenaSpan, _ judgement: JournalJudgement) { recipients.judged(slot, token, judgement) }

  func overflowed(_ token: UnsafeRawBufferPointer, _ overflow: MailboxEntries) { evictions.begin(token, overflow) }

  func judged() {
    recipients.askWaiting()
    if judge.hasCaughtUp { owner?.redisCaughtUp() }
  }
}
