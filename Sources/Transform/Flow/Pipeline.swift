import EventLoop
import Kafka
import Notifications
import Redis
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
  func redisRefusedWrites(_ error: RedisError)
}

/// Does what the flow of the records in flight asks for: reads them, has them judged, and says what became of them. Loop-confined.
///
/// A record is *begun* when it comes, and *finished* when each of its outcomes is durable: then its ticket goes back to the tracker, which
/// commits the contiguous prefix. When that is, and what is started again, `Flow` decides.
final class Pipeline: RedisReplyHandler {
  let loop: EventLoop
  let settings: TransformSettings
  let redis: RedisConnection
  let outcomes: Outcomes
  /// Nil: nothing is told of what is judged.
  let journal: Journal?
  let metrics: TransformMetrics
  private let logger: Logger
  private var flow: Flow
  private var records = InFlightTable()
  private let reader: RequestReader
  private var judging: JudgeCalls
  private var audiences: Audiences
  private let budget = MemoryBudget()
  private var evictions: Evictions
  private var registrations: RegistryCalls
  /// Requests for people, while the registry is not complete.
  private var awaitingRegistry: [Flow.Parked] = []
  private let retry: Timer
  private var isRetrying = false
  /// Told what concerns the lane.
  weak var owner: (any PipelineOwner)?
  private let state: LaneState

  /// What a call to Redis was for, in the upper half of its token.
  private enum Tag {
    static let judge: UInt64 = 1 << 32
    static let audience: UInt64 = 2 << 32
    static let evict: UInt64 = 3 << 32
    static let registration: UInt64 = 4 << 32
    static let membership: UInt64 = 5 << 32
    static let mask: UInt64 = 0xFFFF_FFFF
  }

  init(
    on loop: EventLoop, _ settings: TransformSettings, state: LaneState, redis: RedisConnection, outcomes: Outcomes, journal: Journal?,
    logger: Logger, metrics: TransformMetrics
  ) {
    self.loop = loop
    self.settings = settings
    self.redis = redis
    self.outcomes = outcomes
    self.journal = journal
    self.state = state
    self.logger = logger
    self.metrics = metrics
    flow = Flow(tries: settings.tries)
    reader = RequestReader(settings)
    judging = JudgeCalls(settings)
    audiences = Audiences(settings.keys)
    evictions = Evictions(settings)
    registrations = RegistryCalls(settings)
    retry = Timer(on: loop)
    retry.handler = { [unowned self] in retryFired() }
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
  private func fault(_ slot: Flow.Slot, _ what: String) {
    records[slot].fault = what
    _ = flow.fault(slot)
  }

  /// Whether an answer of Redis is about the call and not about Redis.
  private static func isFault(_ error: RedisError) -> Bool { error.code == .wrongType || error.code == .rejected }

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
    guard let entry = reader.entry(view, in: &batch.arena, era: records[slot].incarnation) else {
      fault(slot, "its delivery entry cannot be written")
      return flow.fail(slot)
    }
    switch view.target {
    case .device(let token): judge(slot, batch, batch.keep { DeviceToken.append(token, to: &$0) }, entry)
    case .user(let user):
      records[slot].audience = Audiences.Progress(application: batch.keep(view.application), user: batch.keep(user), entry: entry)
      nextPage(slot)
    }
  }

  private func judge(_ slot: Flow.Slot, _ batch: RetainedBatch, _ token: ArenaSpan, _ entry: RequestEntry) {
    flow.expect(1, of: slot)
    let request = DeviceRequest(slot: slot, batch: batch, token: token, entry: entry, isExpired: entry.end <= WallClock.seconds())
    if records[slot].isSuspect { judging.add(alone: request) } else { judging.add(request) }
  }

  /// Sends what was noted for the judge.
  private func send() {
    judging.send(over: redis, to: self, tag: Tag.judge, now: WallClock.seconds()) { refused in
      for request in refused { fail(request.slot) }
    }
  }

  // MARK: The registry

  /// Applies a registration of `devices`, which a lane may have applied already.
  private func register(_ slot: Flow.Slot, _ record: RecordView) {
    flow.expect(1, of: slot)
    switch registrations.send(record, over: redis, to: self, token: Tag.registration | UInt64(UInt32(bitPattern: slot))) {
    case .sent: break
    case .notTaken: fail(slot)
    case .unreadable(let why):
      logger.warning(
        "a record of devices is passed over", ["partition": Int(record.partition), "offset": record.offset, "error": why])
      records[slot].verdict = .unreadable
      finish(slot)
    }
  }

  private func registered(_ slot: Flow.Slot, _ reply: RedisReplyView) {
    records[slot].verdict = reply[0]?.integer == 1 ? .applied : .superseded
    switch reply[0]?.integer {
    case 1:
      let token = Tag.membership | UInt64(UInt32(bitPattern: slot))
      let sent = registrations.follow(records[slot].record, former: reply[2]?.bytes, over: redis, to: self, token: token)
      flow.expect(sent.count, of: slot)
      if !sent.isWhole { flow.fail(slot) }
    case -2: return lost([slot])
    default: break
    }
    finish(slot)
  }

  /// The registry is complete: requests for people go on.
  func registryRestored() {
    let waiting = awaitingRegistry
    awaitingRegistry = []
    for parked in waiting { passed(flow.stageAnswered(parked)) }
  }

  /// Redis does not have the bucket any more: nothing is judged until it has.
  private func lost(_ places: [Int32]) {
    owner?.redisLostBucket()
    for slot in places { fail(slot) }
  }

  // MARK: Devices of a person

  /// Asks for the next page of devices, or waits until it may.
  private func nextPage(_ slot: Flow.Slot) {
    flow.expect(1, of: slot)
    if audiences.mayAsk(slot, records[slot].audience, isBusy: outcomes.isBusy) { ask(slot) }
  }

  /// Asks for the pages of those who waited, as far as there is room now: Redis has answered, or Kafka has taken something.
  func askWaiting() {
    while audiences.isWaiting, !outcomes.isBusy, let slot = audiences.next() { ask(slot) }
  }

  private func ask(_ slot: Flow.Slot) {
    let token = Tag.audience | UInt64(UInt32(bitPattern: slot))
    if !audiences.ask(records[slot], over: redis, to: self, token: token) { fail(slot) }
  }

  private func audienceCame(_ slot: Flow.Slot, _ reply: RedisReplyView) {
    defer { askWaiting() }
    switch audiences.came(reply, &records[slot]) {
    case .lost: return lost([slot])
    case .unreadable: return fail(slot)
    case .tokens(let tokens, let others):
      if !others.isEmpty { remove(others, slot) }
      guard let entry = records[slot].audience?.entry else { return fail(slot) }
      for token in tokens { judge(slot, records[slot].batch, token, entry) }
      send()
    }
    pageJudged(slot)
    finish(slot)
  }

  /// What is no device's token was put among a person's devices by somebody else.
  private func remove(_ members: [ArenaSpan], _ slot: Flow.Slot) {
    let key = audiences.remove(members, records[slot], over: redis, to: self)
    metrics.unreadableRecipients.increment(by: members.count)
    logger.warning("what is no device token is removed from a person's devices", ["set": key, "members": members.count])
  }

  /// One device of the page was judged, or there was none: the next page, or the sum.
  private func pageJudged(_ slot: Flow.Slot) {
    guard !flow.hasFailed(slot) else { return }
    if audiences.isJudged(records[slot]) { journalPage(slot) }
    switch audiences.step(&records[slot]) {
    case .wait: break
    case .next: nextPage(slot)
    case .end:
      guard let devices = records[slot].audience?.devices else { return }
      records[slot].verdict = devices == 0 ? .unregistered : .addressed
      reader.readAccepted(records[slot].record) { view in
        settle(slot, outcomes.addressed(view, devices: devices, token: slot))
      }
    }
  }

  // MARK: Verdicts

  func redisReplied(token: UInt64, reply: RedisReplyView) {
    let number = token & Tag.mask
    switch token & ~Tag.mask {
    case Tag.judge: judged(judging.take(Int(number)), reply)
    case Tag.audience: audienceCame(Int32(truncatingIfNeeded: number), reply)
    case Tag.evict: evicted(Int(number), reply)
    case Tag.registration: registered(Int32(truncatingIfNeeded: number), reply)
    case Tag.membership: finish(Int32(truncatingIfNeeded: number))
    default: break
    }
  }

  func redisFailed(token: UInt64, error: RedisError) {
    let number = token & Tag.mask
    metrics.redisFailures.increment()
    if error.refusesWrites { owner?.redisRefusedWrites(error) }
    switch token & ~Tag.mask {
    case Tag.judge:
      let requests = judging.take(Int(number))
      for request in requests {
        if Self.isFault(error), requests.count == 1 { fault(request.slot, "\(error)") }
        if Self.isFault(error) { records[request.slot].isSuspect = true }
        fail(request.slot)
      }
    case Tag.audience, Tag.registration, Tag.membership:
      if token & ~Tag.mask == Tag.audience { audiences.failed() }
      if Self.isFault(error) { fault(Int32(truncatingIfNeeded: number), "\(error)") }
      fail(Int32(truncatingIfNeeded: number))
    case Tag.evict: _ = evictions.ended(Int(number))
    default: break
    }
  }

  private func judged(_ requests: [DeviceRequest], _ reply: RedisReplyView) {
    if reply[0]?.integer == -2 { return lost(requests.map(\.slot)) }
    var verdicts: [Verdict?] = []
    verdicts.reserveCapacity(requests.count)
    for index in requests.indices {
      if let element = reply[index] { verdicts.append(Verdict(element)) } else { verdicts.append(nil) }
    }
    unroute(&verdicts, requests)
    for (index, request) in requests.enumerated() {
      guard let verdict = verdicts[index] else {
        fault(request.slot, "the judge's answer cannot be read")
        fail(request.slot)
        continue
      }
      apply(verdict, to: request)
      if let element = reply[index], let surplus = element[4] {
        request.batch.arena.withUnsafeBytes { evict(surplus, UnsafeRawBufferPointer(rebasing: $0[request.token])) }
      }
      let judgement = verdict.judgement(of: request)
      if records[request.slot].audience != nil {
        audiences.judged(&records[request.slot], request.token, judgement)
        pageJudged(request.slot)
      } else {
        records[request.slot].judgement = judgement
      }
      finish(request.slot)
    }
    askWaiting()
  }

  /// What was replaced by a later request of the same call need not go to the device any more.
  private func unroute(_ verdicts: inout [Verdict?], _ requests: [DeviceRequest]) {
    for index in verdicts.indices.dropFirst() {
      guard case .new(let application) = verdicts[index], let superseded = application.superseded else { continue }
      for earlier in 0..<index {
        guard case .new(var replaced) = verdicts[earlier], replaced.revision == superseded.revision,
          requests[earlier].entry.id == superseded.id.hash64, sameDevice(requests[earlier], requests[index])
        else { continue }
        replaced.presence = nil
        verdicts[earlier] = .new(replaced)
      }
    }
  }

  private func sameDevice(_ one: DeviceRequest, _ other: DeviceRequest) -> Bool {
    one.batch.arena.withUnsafeBytes { a in other.batch.arena.withUnsafeBytes { b in a[one.token].elementsEqual(b[other.token]) } }
  }

  private func apply(_ verdict: Verdict, to request: DeviceRequest) {
    request.batch.arena.withUnsafeBytes { arena in
      let token = UnsafeRawBufferPointer(rebasing: arena[request.token])
      let encoded = UnsafeRawBufferPointer(rebasing: arena[request.entry.span])
      guard let entry = DeliveryEntryView(encoded) else {
        fault(request.slot, "its delivery entry cannot be read")
        return flow.fail(request.slot)
      }
      let subject = Outcomes.Subject(token: token, entry: entry, record: request.slot)
      switch verdict {
      case .new(let application), .again(let application):
        if let superseded = application.superseded { settle(request.slot, outcomes.collapsed(superseded, by: subject)) }
        if request.isExpired {
          count(.expired, .expired, request)
          settle(request.slot, outcomes.say(.expired, subject, revision: application.revision))
        } else {
          count(.queued, .queued, request)
          if let presence = application.presence { outcomes.deliver(encoded, entry.kind, application.revision, to: presence, token) }
        }
      case .stale(let by):
        count(.collapsed, .collapsed, request)
        settle(request.slot, outcomes.stale(subject, revision: request.entry.revision, by: by.id))
      case .duplicate:
        count(.duplicate, .duplicate, request)
        settle(request.slot, outcomes.say(.duplicate, subject, revision: request.entry.revision))
      case .foreign: metrics.count(.otherUser)
      case .unregistered:
        count(.unregistered, .unregistered, request)
        settle(request.slot, outcomes.say(.unregistered, subject, revision: request.entry.revision))
      case .wrongApplication:
        count(.wrongApplication, .rejected, request)
        wrongApplication(request)
      }
    }
  }

  /// For one device the verdict is that of the record; for a person's devices it is known when all are judged.
  private func count(_ verdict: DeviceVerdict, _ ofRecord: RecordVerdict, _ request: DeviceRequest) {
    metrics.count(verdict)
    if records[request.slot].audience == nil { records[request.slot].verdict = ofRecord }
  }

  private func wrongApplication(_ request: DeviceRequest) {
    let record = records[request.slot].record
    reader.readAccepted(record) { view in
      let rejection = Rejection(
        .deviceTokenNotForTopic, field: "apns-topic", rule: "The device is registered for another application than the topic names.")
      let (attempts, refusals) = (flow.attempts(request.slot), flow.refusals(request.slot))
      settle(
        request.slot, outcomes.reject(record, rejection, view.envelope, tries: attempts + 1, refusals: refusals, token: request.slot))
    }
  }

  // MARK: A full mailbox

  private func evict(_ surplus: RedisReplyView, _ token: UnsafeRawBufferPointer) {
    let unreadable = evictions.begin(token, surplus) { number, revision, entry in
      metrics.evicted.increment()
      return outcomes.evicted(Outcomes.Subject(token: token, entry: entry, record: Int32(number)), revision: revision)
    }
    guard !unreadable.isEmpty else { return }
    let mailbox = settings.keys.mailbox(String(decoding: token, as: UTF8.self))
    metrics.unreadableEntries.increment(by: unreadable.count)
    logger.warning("what cannot be read is removed from a mailbox", ["mailbox": mailbox, "fields": unreadable.count])
    // What stays is found again.
    evictions.remove(unreadable, of: mailbox) { _ = redis.send($0, to: self, token: 0) }
  }

  /// An eviction's entries are deleted; what is still too much comes next.
  private func evicted(_ number: Int, _ surplus: RedisReplyView) {
    guard let token = evictions.ended(number) else { return }
    token.withUnsafeBytes { evict(surplus, $0) }
  }

  /// The `evicted` event of an eviction's entry is in Kafka, or is not.
  func evictionReported(_ number: Int, failed: Bool) {
    evictions.reported(number, failed: failed) { command in redis.send(command, to: self, token: Tag.evict | UInt64(number)) == .accepted }
  }

  // MARK: Out

  /// Notes how many records to Kafka an outcome has.
  private func settle(_ slot: Flow.Slot, _ produced: Outcomes.Produced) {
    flow.expect(produced.count, of: slot)
    if !produced.isWhole { flow.fail(slot) }
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

  private func fail(_ slot: Flow.Slot) {
    flow.fail(slot)
    finish(slot)
  }

  /// One thing less to wait for; with the last one the record is finished, or is started again.
  private func finish(_ slot: Flow.Slot) {
    switch flow.answered(slot) {
    case .wait: return
    case .retry:
      audiences.leave(&records[slot])
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

  private func source(_ slot: Flow.Slot, _ record: RecordView) -> JournalSource {
    JournalSource(record, incarnation: records[slot].incarnation)
  }

  /// Notes the verdicts on a page of a person's devices; the last page has the sum of all.
  private func journalPage(_ slot: Flow.Slot) {
    guard let journal, let progress = records[slot].audience else { return }
    let (source, batch) = (source(slot, records[slot].record), records[slot].batch)
    journal.append(source, count: progress.page.count, closing: progress.isWhole ? progress.closing : nil) { number, then in
      let device = progress.page[number]
      batch.arena.withUnsafeBytes { then(UnsafeRawBufferPointer(rebasing: $0[device.token]), device.judgement) }
    }
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

  /// Lets go of what waits and was begun in an assignment that is over: whoever reads it anew knows what there is now. Where nobody can,
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
    guard flow.hasRetries || audiences.isWaiting else { return }
    guard redis.isUp, state.phase.mayJudge, !outcomes.isFull else { return scheduleRetry(5) }
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
