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

/// The work of one transform lane: records in, verdicts from Redis, deliveries and events out. Loop-confined.
///
/// A record is *begun* when it comes, and *done* when each of its outcomes is durable: then its ticket goes back to the tracker, which
/// commits the contiguous prefix. What fails on the way is done again as a whole; its verdicts and events are the same again.
/// Neither batches nor calls wait for each other; only one device's requests keep their order.
final class Pipeline: RedisReplyHandler {
  let loop: EventLoop
  let settings: TransformSettings
  let redis: RedisConnection
  let outcomes: Outcomes
  /// Nil: nothing is told of what is judged.
  let journal: Journal?
  let metrics: TransformMetrics
  private let logger: Logger
  private(set) var works = WorkTable()
  private let reader: RequestReader
  private var judging: JudgeCalls
  private var audiences: Audiences
  private let held = HeldBytes()
  private var evictions: Evictions
  private var registrations: RegistryCalls
  /// Requests for people, while the registry is not whole.
  private var withoutAudience: [Int32] = []
  /// Records to be done again, when Redis and Kafka take work.
  private var again: [Int32] = []
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
    let hold = hold(batch, begun.map(\.index))
    let now = loop.milliseconds()
    for record in begun { start(add(hold, record, arrived: now)) }
    send()
  }

  private func add(_ hold: BatchHold, _ begun: BegunRecord, arrived: UInt64) -> Int32 {
    metrics.took(isRegistration: begun.isRegistration)
    return works.add(hold, begun, arrived: arrived)
  }

  private func hold(_ batch: RecordBatch, _ indexes: [Int]) -> BatchHold {
    let bytes = indexes.reduce(into: 0) { $0 += (batch[$1].value?.count ?? 0) + BatchHold.entryBytes }
    return BatchHold(batch, bytes: bytes, arena: bytes, account: held)
  }

  /// Whether more records may be taken: when nothing is under way they may, and as long as requests wait for the registry, to become whole
  /// by registrations.
  var hasRoom: Bool { held.count < Self.mostBytes || isIdle || !state.phase.mayResolveRecipients }

  /// What the records under way may hold, with what is made from them; so many of the largest kind are well below `inFlight`.
  private static let mostBytes = 96 << 20

  /// Takes a record that goes to the dead letters as it is.
  func deadLetter(_ batch: RecordBatch, _ begun: BegunRecord, tries: Int) {
    let hold = hold(batch, [begun.index])
    let place = add(hold, begun, arrived: loop.milliseconds())
    works[place].fault = DeadLetter.workersEnded
    works[place].faults = tries
    works[place].isDeadLettered = true
    start(place)
  }

  private static let unknownFault = "it could not be processed"

  /// Sends a record to the dead letters; nothing of it is looked at but its headers.
  private func deadLetter(_ place: Int32, _ record: RecordView) {
    let error = works[place].fault ?? Self.unknownFault
    works[place].pending += 1
    works[place].verdict = .poison
    works[place].judgement = JournalJudgement(.deadLettered, revision: source(place, record).impliedRevision)
    reader.readEnvelope(record) { envelope in
      settle(
        place,
        outcomes.deadLetter(
          record, works[place].isRegistration ? nil : envelope, error: error, tries: works[place].faults, refusals: works[place].refusals,
          token: place))
    }
    finish(place)
  }

  /// Something went wrong that lies in the record, or in what Redis has of its devices: no waiting mends it.
  private func fault(_ place: Int32, _ what: String) {
    works[place].fault = what
    works[place].faults += 1
    guard works[place].faults >= settings.tries, !works[place].isDeadLettered else { return }
    works[place].isDeadLettered = true
    works[place].refusals = 0
  }

  /// Whether an answer of Redis is about the call and not about Redis.
  private static func isFault(_ error: RedisError) -> Bool { error.code == .wrongType || error.code == .rejected }

  /// Reads a record and has it judged; its outcomes are noted as pending.
  private func start(_ place: Int32) {
    guard let hold = works[place].hold else { return }
    let record = hold.records[works[place].index]
    if works[place].isDeadLettered { return deadLetter(place, record) }
    if works[place].isRegistration { return register(place, record) }
    // Pending until this function has noted all that there is to wait for.
    works[place].pending += 1
    reader.read(record) { reading in
      switch reading {
      case .accepted(let view): accept(view, place, hold)
      case .rejected(let rejection, let envelope):
        works[place].verdict = .rejected
        works[place].judgement = JournalJudgement(.rejected, revision: source(place, record).impliedRevision)
        settle(
          place,
          outcomes.reject(
            record, rejection, envelope, tries: works[place].tries + 1, refusals: works[place].refusals, token: place))
      }
    }
    finish(place)
  }

  private func accept(_ view: RequestView, _ place: Int32, _ hold: BatchHold) {
    if case .user = view.target, !state.phase.mayResolveRecipients {
      works[place].pending += 1
      withoutAudience.append(place)
      return
    }
    guard let entry = reader.entry(view, in: &hold.arena, era: works[place].incarnation) else {
      fault(place, "its delivery entry cannot be written")
      return works[place].failed = true
    }
    switch view.target {
    case .device(let token): judge(place, hold, hold.keep { DeviceToken.append(token, to: &$0) }, entry)
    case .user(let user):
      works[place].audience = Audiences.Progress(application: hold.keep(view.application), user: hold.keep(user), entry: entry)
      nextPage(place)
    }
  }

  private func judge(_ place: Int32, _ hold: BatchHold, _ token: ArenaSpan, _ entry: RequestEntry) {
    works[place].pending += 1
    let request = DeviceRequest(work: place, hold: hold, token: token, entry: entry, isExpired: entry.end <= WallClock.seconds())
    if works[place].isSuspect { judging.add(alone: request) } else { judging.add(request) }
  }

  /// Sends what was noted for the judge.
  private func send() {
    judging.send(over: redis, to: self, tag: Tag.judge, now: WallClock.seconds()) { refused in
      for request in refused { fail(request.work) }
    }
  }

  // MARK: The registry

  /// Applies a registration of `devices`, which a lane may have applied already.
  private func register(_ place: Int32, _ record: RecordView) {
    works[place].pending += 1
    switch registrations.send(record, over: redis, to: self, token: Tag.registration | UInt64(UInt32(bitPattern: place))) {
    case .sent: break
    case .notTaken: fail(place)
    case .unreadable(let why):
      logger.warning(
        "a record of devices is passed over", ["partition": Int(record.partition), "offset": record.offset, "error": why])
      works[place].verdict = .unreadable
      finish(place)
    }
  }

  private func registered(_ place: Int32, _ reply: RedisReplyView) {
    guard let hold = works[place].hold else { return }
    works[place].verdict = reply[0]?.integer == 1 ? .applied : .superseded
    switch reply[0]?.integer {
    case 1:
      let token = Tag.membership | UInt64(UInt32(bitPattern: place))
      let sent = registrations.follow(hold.records[works[place].index], former: reply[2]?.bytes, over: redis, to: self, token: token)
      works[place].pending += sent.count
      if !sent.isWhole { works[place].failed = true }
    case -2: return lost([place])
    default: break
    }
    finish(place)
  }

  /// The registry is complete: requests for people go on.
  func registryRestored() {
    var waiting: [Int32] = []
    swap(&waiting, &withoutAudience)
    for place in waiting {
      start(place)
      finish(place)
    }
    send()
  }

  /// Redis does not have the bucket any more: nothing is judged until it has.
  private func lost(_ places: [Int32]) {
    owner?.redisLostBucket()
    for place in places { fail(place) }
  }

  // MARK: Devices of a person

  /// Asks for the next page of devices, or waits until it may.
  private func nextPage(_ place: Int32) {
    works[place].pending += 1
    if audiences.mayAsk(place, works[place].audience, isBusy: outcomes.isBusy) { ask(place) }
  }

  /// Asks for the pages of those who waited, as far as there is room now.
  private func askWaiting() {
    while audiences.isWaiting, !outcomes.isBusy, let place = audiences.next() { ask(place) }
  }

  private func ask(_ place: Int32) {
    let token = Tag.audience | UInt64(UInt32(bitPattern: place))
    if !audiences.ask(works[place], over: redis, to: self, token: token) { fail(place) }
  }

  private func audienceCame(_ place: Int32, _ reply: RedisReplyView) {
    defer { askWaiting() }
    switch audiences.came(reply, &works[place]) {
    case .lost: return lost([place])
    case .unreadable: return fail(place)
    case .tokens(let tokens, let others):
      if !others.isEmpty { remove(others, place) }
      guard let hold = works[place].hold, let entry = works[place].audience?.entry else { return fail(place) }
      for token in tokens { judge(place, hold, token, entry) }
      send()
    }
    pageJudged(place)
    finish(place)
  }

  /// What is no device's token was put among a person's devices by somebody else.
  private func remove(_ members: [ArenaSpan], _ place: Int32) {
    let key = audiences.remove(members, works[place], over: redis, to: self)
    metrics.unreadableRecipients.increment(by: members.count)
    logger.warning("what is no device token is removed from a person's devices", ["set": key, "members": members.count])
  }

  /// One device of the page was judged, or there was none: the next page, or the sum.
  private func pageJudged(_ place: Int32) {
    if audiences.isJudged(works[place]) { journalPage(place) }
    switch audiences.step(&works[place]) {
    case .wait: break
    case .next: nextPage(place)
    case .end:
      guard let hold = works[place].hold, let devices = works[place].audience?.devices else { return }
      works[place].verdict = devices == 0 ? .unregistered : .addressed
      reader.readAccepted(hold.records[works[place].index]) { view in
        settle(place, outcomes.addressed(view, devices: devices, token: place))
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
        if Self.isFault(error), requests.count == 1 { fault(request.work, "\(error)") }
        if Self.isFault(error) { works[request.work].isSuspect = true }
        fail(request.work)
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
    if reply[0]?.integer == -2 { return lost(requests.map(\.work)) }
    var verdicts: [Verdict?] = []
    verdicts.reserveCapacity(requests.count)
    for index in requests.indices {
      if let element = reply[index] { verdicts.append(Verdict(element)) } else { verdicts.append(nil) }
    }
    unroute(&verdicts, requests)
    for (index, request) in requests.enumerated() {
      guard let verdict = verdicts[index] else {
        fault(request.work, "the judge's answer cannot be read")
        fail(request.work)
        continue
      }
      apply(verdict, to: request)
      if let element = reply[index], let surplus = element[4] {
        request.hold.arena.withUnsafeBytes { evict(surplus, UnsafeRawBufferPointer(rebasing: $0[request.token])) }
      }
      let judgement = verdict.judgement(of: request)
      if works[request.work].audience != nil {
        audiences.judged(&works[request.work], request.token, judgement)
        pageJudged(request.work)
      } else {
        works[request.work].judgement = judgement
      }
      finish(request.work)
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
    one.hold.arena.withUnsafeBytes { a in other.hold.arena.withUnsafeBytes { b in a[one.token].elementsEqual(b[other.token]) } }
  }

  private func apply(_ verdict: Verdict, to request: DeviceRequest) {
    request.hold.arena.withUnsafeBytes { arena in
      let token = UnsafeRawBufferPointer(rebasing: arena[request.token])
      let encoded = UnsafeRawBufferPointer(rebasing: arena[request.entry.span])
      guard let entry = DeliveryEntryView(encoded) else {
        fault(request.work, "its delivery entry cannot be read")
        return works[request.work].failed = true
      }
      let subject = Outcomes.Subject(token: token, entry: entry, work: request.work)
      switch verdict {
      case .new(let application), .again(let application):
        if let superseded = application.superseded { settle(request.work, outcomes.collapsed(superseded, by: subject)) }
        if request.isExpired {
          count(.expired, .expired, request)
          settle(request.work, outcomes.say(.expired, subject, revision: application.revision))
        } else {
          count(.queued, .queued, request)
          if let presence = application.presence { outcomes.deliver(encoded, entry.kind, application.revision, to: presence, token) }
        }
      case .stale(let by):
        count(.collapsed, .collapsed, request)
        settle(request.work, outcomes.stale(subject, revision: request.entry.revision, by: by.id))
      case .duplicate:
        count(.duplicate, .duplicate, request)
        settle(request.work, outcomes.say(.duplicate, subject, revision: request.entry.revision))
      case .foreign: metrics.count(.otherUser)
      case .unregistered:
        count(.unregistered, .unregistered, request)
        settle(request.work, outcomes.say(.unregistered, subject, revision: request.entry.revision))
      case .wrongApplication:
        count(.wrongApplication, .rejected, request)
        wrongApplication(request)
      }
    }
  }

  /// For one device the verdict is that of the record; for a person's devices it is known when all are judged.
  private func count(_ verdict: DeviceVerdict, _ ofRecord: RecordVerdict, _ request: DeviceRequest) {
    metrics.count(verdict)
    if works[request.work].audience == nil { works[request.work].verdict = ofRecord }
  }

  private func wrongApplication(_ request: DeviceRequest) {
    guard let hold = works[request.work].hold else { return }
    let record = hold.records[works[request.work].index]
    reader.readAccepted(record) { view in
      let rejection = Rejection(
        .deviceTokenNotForTopic, field: "apns-topic", rule: "The device is registered for another application than the topic names.")
      let work = works[request.work]
      settle(
        request.work,
        outcomes.reject(record, rejection, view.envelope, tries: work.tries + 1, refusals: work.refusals, token: request.work))
    }
  }

  // MARK: A full mailbox

  private func evict(_ surplus: RedisReplyView, _ token: UnsafeRawBufferPointer) {
    let unreadable = evictions.begin(token, surplus) { number, revision, entry in
      metrics.evicted.increment()
      return outcomes.evicted(Outcomes.Subject(token: token, entry: entry, work: Int32(number)), revision: revision)
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
  private func settle(_ place: Int32, _ produced: Outcomes.Produced) {
    works[place].pending += produced.count
    if !produced.isWhole { works[place].failed = true }
  }

  /// A record to Kafka that belongs to a work is durable, or is not.
  func reported(_ place: Int32, failure: KafkaError.Code?) {
    if let failure {
      if failure == .messageTooLarge {
        works[place].refusals += 1
        if !works[place].isDeadLettered { fault(place, "an event of it is too large for Kafka") }
      }
      works[place].failed = true
    }
    finish(place)
    askWaiting()
  }

  private func fail(_ place: Int32) {
    works[place].failed = true
    finish(place)
  }

  /// One thing less to wait for; with the last one the record is done, or is done again.
  private func finish(_ place: Int32) {
    works[place].pending -= 1
    guard works[place].pending == 0 else { return }
    if works[place].failed {
      audiences.leave(&works[place])
      again.append(place)
      scheduleRetry(works[place].tries)
      return
    }
    metrics.latency.observe(Double(loop.milliseconds() - works[place].arrived) / 1000)
    if works[place].verdict == .poison { logPoison(works[place]) }
    conclude(place)
  }

  /// All outcomes of a record are durable, but for the journal, which has its ticket from now on.
  private func conclude(_ place: Int32) {
    guard let journal, let hold = works[place].hold, let ticket = works[place].ticket, !works[place].isRegistration else {
      return remove(place, works[place].verdict)
    }
    let source = source(place, hold.records[works[place].index])
    if let judgement = works[place].judgement { journal.append(source, judgement) }
    if let verdict = works[place].verdict { metrics.count(verdict, isRegistration: false) }
    works.remove(place)
    journal.finish(ticket, source)
  }

  private func source(_ place: Int32, _ record: RecordView) -> JournalSource {
    JournalSource(record, incarnation: works[place].incarnation)
  }

  /// Notes the verdicts on a page of a person's devices; the last page has the sum of all.
  private func journalPage(_ place: Int32) {
    guard let journal, let hold = works[place].hold, let progress = works[place].audience else { return }
    let source = source(place, hold.records[works[place].index])
    journal.append(source, count: progress.page.count, closing: progress.isWhole ? progress.closing : nil) { number, then in
      let device = progress.page[number]
      hold.arena.withUnsafeBytes { then(UnsafeRawBufferPointer(rebasing: $0[device.token]), device.judgement) }
    }
  }

  private func logPoison(_ work: borrowing Work) {
    guard let record = work.hold?.records[work.index] else { return }
    logger.warning(
      "a record could not be processed: the dead letters have it",
      [
        "topic": record.topic, "partition": record.partition, "offset": record.offset, "reason": work.fault ?? Self.unknownFault,
        "tries": work.faults,
      ])
  }

  /// It is done, or given up.
  private func remove(_ place: Int32, _ verdict: RecordVerdict?) {
    if let verdict { metrics.count(verdict, isRegistration: works[place].isRegistration) }
    let ticket = works[place].ticket
    works.remove(place)
    if let ticket { owner?.finished(ticket) }
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
    let isOver = { [self] (place: Int32) in works[place].ticket.map { owner?.isCurrent($0) == false } ?? false }
    let over = again.filter(isOver) + withoutAudience.filter(isOver)
    guard !over.isEmpty else { return }
    again.removeAll(where: isOver)
    withoutAudience.removeAll(where: isOver)
    for place in over { remove(place, .revoked) }
  }

  private func retryFired() {
    isRetrying = false
    dropEnded()
    guard redis.isUp, state.phase.mayJudge, !outcomes.isFull else { return scheduleRetry(5) }
    var places: [Int32] = []
    swap(&places, &again)
    for place in places {
      guard let hold = works[place].hold else { continue }
      // What is made from it is made anew: the former bytes go when all of its batch are done, or are done again.
      works[place].hold = self.hold(hold.records, [works[place].index])
      works[place].failed = false
      works[place].tries += 1
      works[place].audience = nil
      works[place].judgement = nil
      works[place].verdict = nil
      metrics.retries.increment()
      start(place)
    }
    send()
    askWaiting()
  }

  /// Whether nothing is under way.
  var isIdle: Bool { works.count == 0 }
}
