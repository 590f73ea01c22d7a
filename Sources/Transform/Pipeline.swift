import EventLoop
import Kafka
import Notifications
import Redis
import Worker

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
  let metrics: TransformMetrics
  private(set) var works = WorkTable()
  private var judging: JudgeCalls
  private var audiences: AudienceCalls
  private var pages = AudiencePages()
  private let held = HeldBytes()
  private var evictions: Evictions
  private var registrations: RegistryCalls
  /// Requests for people, while the registry is not whole.
  private var withoutAudience: [Int32] = []
  /// Records to be done again, when Redis and Kafka take work.
  private var again: [Int32] = []
  private let retry: Timer
  private var isRetrying = false
  private let topic: [UInt8]
  private let expiration: ExpirationRule
  /// Hands a record's ticket back: it is done.
  var onDone: ((RecordTicket) -> Void)?
  /// Redis has answered that it does not have a bucket.
  var onLost: (() -> Void)?
  /// A record of `devices` cannot be read; it is passed over.
  var onUnreadableRegistration: ((RecordView, String) -> Void)?
  /// Whether work may be done again: Redis answers, and has what was written to it.
  var mayWork: () -> Bool = { true }

  /// What a call to Redis was for, in the upper half of its token.
  private enum Tag {
    static let judge: UInt64 = 1 << 32
    static let audience: UInt64 = 2 << 32
    static let evict: UInt64 = 3 << 32
    static let registration: UInt64 = 4 << 32
    static let membership: UInt64 = 5 << 32
    static let mask: UInt64 = 0xFFFF_FFFF
  }

  init(on loop: EventLoop, _ settings: TransformSettings, redis: RedisConnection, outcomes: Outcomes, metrics: TransformMetrics) {
    self.loop = loop
    self.settings = settings
    self.redis = redis
    self.outcomes = outcomes
    self.metrics = metrics
    judging = JudgeCalls(settings)
    audiences = AudienceCalls(settings.keys)
    evictions = Evictions(settings)
    registrations = RegistryCalls(settings)
    topic = Array(settings.topics.requests.utf8)
    expiration = ExpirationRule(oneAttemptSeconds: settings.oneAttemptSeconds)
    var fire: () -> Void = {}
    retry = Timer(on: loop) { fire() }
    fire = { [unowned self] in retryFired() }
  }

  /// Ends the timer and breaks the handlers; nothing may be under way.
  func close() {
    retry.close()
    onDone = nil
    onLost = nil
    onUnreadableRegistration = nil
  }

  // MARK: In

  /// Takes the records of a batch whose tickets the tracker has given.
  func take(_ batch: RecordBatch, _ begun: [BegunRecord]) {
    let hold = hold(batch, begun.map(\.index))
    let now = loop.milliseconds()
    for record in begun { start(works.add(hold, record, arrived: now)) }
    send()
  }

  private func hold(_ batch: RecordBatch, _ indexes: [Int]) -> BatchHold {
    let bytes = indexes.reduce(into: 0) { $0 += (batch[$1].value?.count ?? 0) + Self.entryBytes }
    return BatchHold(batch, bytes: bytes, arena: bytes, account: held)
  }

  /// About what an entry and its device's token have beside the payload, and what a record has beside its value.
  private static let entryBytes = 256

  /// Whether more records may be taken: when nothing is under way they may, and as long as requests wait for the registry, to become whole
  /// by registrations.
  var hasRoom: Bool { held.count < Self.mostBytes || isIdle || !isRegistryWhole }

  /// What the records under way may hold, with what is made from them; so many of the largest kind are well below `inFlight`.
  private static let mostBytes = 96 << 20

  /// Takes a record that is not to be worked on.
  func condemn(_ batch: RecordBatch, _ begun: BegunRecord, tries: Int) {
    let hold = hold(batch, [begun.index])
    let place = works.add(hold, begun, arrived: loop.milliseconds())
    works[place].fault = "the processes of its workers ended while they worked on it"
    works[place].faults = tries
    works[place].isCondemned = true
    start(place)
  }

  /// Sends a record to the dead letters; nothing of it is looked at but its headers.
  private func bury(_ place: Int32, _ record: RecordView) {
    let error = works[place].fault ?? "it could not be processed"
    works[place].pending += 1
    metrics.condemned.increment()
    topic.withUnsafeBytes { topic in
      let envelope = RequestEnvelope(RequestRecord(record, topic: topic))
      settle(
        place,
        outcomes.condemn(record, works[place].isRegistration ? nil : envelope, error: error, tries: works[place].faults, token: place))
    }
    finish(place)
  }

  /// Something went wrong that lies in the record, or in what Redis has of its devices: no waiting mends it.
  private func fault(_ place: Int32, _ what: String) {
    works[place].fault = what
    works[place].faults += 1
    if works[place].faults >= settings.tries { works[place].isCondemned = true }
  }

  /// Whether an answer of Redis is about the call and not about Redis.
  private static func isFault(_ error: RedisError) -> Bool { error.code == .wrongType || error.code == .rejected }

  /// Reads a record and has it judged; its outcomes are noted as pending.
  private func start(_ place: Int32) {
    guard let hold = works[place].hold else { return }
    let record = hold.records[works[place].index]
    if works[place].isCondemned { return bury(place, record) }
    if works[place].isRegistration { return register(place, record) }
    metrics.requests.increment()
    topic.withUnsafeBytes { topic in
      let request = RequestRecord(record, topic: topic)
      // Pending until this function has noted all that there is to wait for.
      works[place].pending += 1
      switch RequestView.read(request, limits: settings.limits) {
      case .accepted(let view): accept(view, place, hold)
      case .rejected(let rejection, let envelope):
        metrics.rejected.increment()
        settle(place, outcomes.reject(record, rejection, envelope, tries: works[place].tries + 1, token: place))
      }
      finish(place)
    }
  }

  private func accept(_ view: RequestView, _ place: Int32, _ hold: BatchHold) {
    switch view.target {
    case .device(let token):
      let start = hold.arena.count
      DeviceToken.append(token, to: &hold.arena)
      let span = ArenaSpan(start: start, count: hold.arena.count - start)
      guard let (entry, terms) = entry(view, hold, works[place].era) else { return }
      works[place].pending += 1
      judge(DeviceRequest(work: place, hold: hold, token: span, entry: entry, terms: terms))
    case .user:
      guard isRegistryWhole else {
        works[place].pending += 1
        withoutAudience.append(place)
        return
      }
      works[place].audience = Work.Audience()
      nextPage(view, place, hold)
    }
  }

  /// Writes the request's delivery entry, and what the judge needs beside it.
  private func entry(_ view: RequestView, _ hold: BatchHold, _ era: UInt32) -> (ArenaSpan, DeviceRequest.Terms)? {
    var entry = DeliveryEntry(view)
    var withdraws: NotificationID?
    let start = hold.arena.count
    var isWritten = false
    view.forEachIdentifier { identifier in
      if view.operation == .remove {
        entry = DeliveryEntry(removing: identifier, by: view, id: view.envelope.id)
        withdraws = NotificationID(text: identifier)
      }
      // What the request's rules let pass always fits.
      isWritten = (try? entry.append(to: &hold.arena)) != nil
    }
    guard isWritten else { return nil }
    let end = expiration.end(expiration: entry.expiration, published: entry.source.timestamp)
    let terms = DeviceRequest.Terms(
      application: StableHash.hash(view.application), user: view.target.userHash, time: view.envelope.source.timestamp,
      withdraws: withdraws, id: entry.id.hash64, source: sourceHash(view.envelope), isExpired: end <= WallClock.seconds(),
      revision: view.envelope.revision.inEra(era))
    return (ArenaSpan(start: start, count: hold.arena.count - start), terms)
  }

  /// Tells records apart that bring the same apns-id.
  private func sourceHash(_ envelope: RequestEnvelope) -> UInt32 {
    withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { bytes in
      let topic = envelope.sourceTopic.isEmpty ? 0 : StableHash.hash(envelope.sourceTopic)
      bytes.storeBytes(of: topic, as: UInt64.self)
      bytes.storeBytes(of: envelope.source.offset, toByteOffset: 8, as: Int64.self)
      bytes.storeBytes(of: envelope.source.timestamp, toByteOffset: 16, as: Int64.self)
      bytes.storeBytes(of: Int64(envelope.source.partition), toByteOffset: 24, as: Int64.self)
      return UInt32(truncatingIfNeeded: StableHash.hash(UnsafeRawBufferPointer(bytes)))
    }
  }

  private func judge(_ request: DeviceRequest) {
    if works[request.work].isSuspect { judging.add(alone: request) } else { judging.add(request) }
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
      onUnreadableRegistration?(record, why)
      finish(place)
    }
  }

  private func registered(_ place: Int32, _ reply: RedisReplyView) {
    guard let hold = works[place].hold else { return }
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

  /// Whether all registrations that there are have got into Redis, as far as is known; until then nobody's devices are looked up.
  var isRegistryWhole = false {
    didSet {
      guard isRegistryWhole, !withoutAudience.isEmpty else { return }
      var waiting: [Int32] = []
      swap(&waiting, &withoutAudience)
      for place in waiting {
        start(place)
        finish(place)
      }
      send()
    }
  }

  /// Redis does not have the bucket any more: nothing is judged until it has.
  private func lost(_ places: [Int32]) {
    onLost?()
    for place in places { fail(place) }
  }

  // MARK: Devices of a person

  /// Asks for the next page of devices, or waits until it may.
  private func nextPage(_ view: RequestView, _ place: Int32, _ hold: BatchHold) {
    works[place].pending += 1
    if !outcomes.isBusy, !pages.isWaiting, pages.begin() { return ask(view, place, hold) }
    pages.wait(place, isGoing: works[place].audience.map { $0.last.count > 0 } ?? false)
  }

  /// Asks for the pages of those who waited, as far as there is room now.
  private func askWaiting() {
    while pages.isWaiting, !outcomes.isBusy, let place = pages.next() {
      guard let hold = works[place].hold else { return pages.came() }
      topic.withUnsafeBytes { topic in
        let request = RequestRecord(hold.records[works[place].index], topic: topic)
        if case .accepted(let view) = RequestView.read(request, limits: settings.limits) { ask(view, place, hold) }
      }
    }
  }

  private func ask(_ view: RequestView, _ place: Int32, _ hold: BatchHold) {
    guard case .user(let user) = view.target, let audience = works[place].audience else { return }
    let sent = hold.arena.withUnsafeBytes { arena in
      audiences.send(
        user: user, application: view.application, after: UnsafeRawBufferPointer(rebasing: arena[audience.last]), over: redis, to: self,
        token: Tag.audience | UInt64(UInt32(bitPattern: place)))
    }
    if sent { return }
    pages.came()
    fail(place)
  }

  private func audienceCame(_ place: Int32, _ reply: RedisReplyView) {
    defer { askWaiting() }
    pages.came()
    if reply.integer == -2 { return lost([place]) }
    guard let hold = works[place].hold, reply.kind == .array else { return fail(place) }
    let record = hold.records[works[place].index]
    topic.withUnsafeBytes { topic in
      guard case .accepted(let view) = RequestView.read(RequestRecord(record, topic: topic), limits: settings.limits) else { return }
      var tokens: [ArenaSpan] = []
      for index in 0..<reply.count {
        let start = hold.arena.count
        if let token = reply[index]?.bytes { hold.arena.append(token) }
        tokens.append(ArenaSpan(start: start, count: hold.arena.count - start))
      }
      let isWhole = tokens.count < AudienceCalls.pageSize
      works[place].audience?.isWhole = isWhole
      works[place].audience?.last = tokens.last ?? ArenaSpan()
      if !tokens.isEmpty, let (entry, terms) = entry(view, hold, works[place].era) {
        let bytes = tokens.count * (entry.count + Self.entryBytes)
        works[place].audience?.bytes = bytes
        pages.hold(bytes)
        for token in tokens {
          works[place].pending += 1
          works[place].audience?.unjudged += 1
          judge(DeviceRequest(work: place, hold: hold, token: token, entry: entry, terms: terms))
        }
        send()
      }
      pageJudged(place)
    }
    finish(place)
  }

  /// One device of the page was judged, or there was none: the next page, or the sum.
  private func pageJudged(_ place: Int32) {
    guard let audience = works[place].audience, audience.unjudged == 0, let hold = works[place].hold, !works[place].failed else { return }
    leavePage(place)
    let record = hold.records[works[place].index]
    topic.withUnsafeBytes { topic in
      guard case .accepted(let view) = RequestView.read(RequestRecord(record, topic: topic), limits: settings.limits) else { return }
      if audience.isWhole {
        settle(place, outcomes.addressed(view, devices: audience.devices, token: place))
      } else {
        nextPage(view, place, hold)
      }
    }
  }

  /// What the page held is free.
  private func leavePage(_ place: Int32) {
    guard let bytes = works[place].audience?.bytes, bytes > 0 else { return }
    works[place].audience?.bytes = 0
    pages.judged(bytes)
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
    switch token & ~Tag.mask {
    case Tag.judge:
      let requests = judging.take(Int(number))
      for request in requests {
        if Self.isFault(error), requests.count == 1 { fault(request.work, "\(error)") }
        if Self.isFault(error) { works[request.work].isSuspect = true }
        fail(request.work)
      }
    case Tag.audience, Tag.registration, Tag.membership:
      if token & ~Tag.mask == Tag.audience { pages.came() }
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
      if !outcomes.isSilent, let element = reply[index], let surplus = element[4] {
        request.hold.arena.withUnsafeBytes { evict(surplus, UnsafeRawBufferPointer(rebasing: $0[request.token])) }
      }
      if works[request.work].audience != nil {
        works[request.work].audience?.unjudged -= 1
        if case .foreign = verdict {} else { works[request.work].audience?.devices += 1 }
        pageJudged(request.work)
      }
      finish(request.work)
    }
    askWaiting()
  }

  /// What was replaced by a later request of the same call need not go to the device any more.
  private func unroute(_ verdicts: inout [Verdict?], _ requests: [DeviceRequest]) {
    for index in verdicts.indices.dropFirst() {
      guard case .new(let application) = verdicts[index], let displaced = application.displaced else { continue }
      for earlier in 0..<index {
        guard case .new(var replaced) = verdicts[earlier], replaced.revision == displaced.revision,
          requests[earlier].terms.id == displaced.id.hash64, sameDevice(requests[earlier], requests[index])
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
      let encoded = UnsafeRawBufferPointer(rebasing: arena[request.entry])
      guard let entry = DeliveryEntryView(encoded) else { return }
      let subject = Outcomes.Subject(token: token, entry: entry, work: request.work)
      switch verdict {
      case .new(let application), .again(let application):
        if let displaced = application.displaced { settle(request.work, outcomes.collapsed(displaced, by: subject)) }
        if request.terms.isExpired {
          metrics.expired.increment()
          settle(request.work, outcomes.say(.expired, subject, revision: application.revision))
        } else {
          metrics.queued.increment()
          settle(request.work, outcomes.say(.queued, subject, revision: application.revision))
          if let presence = application.presence { outcomes.deliver(encoded, entry.kind, application.revision, to: presence, token) }
        }
      case .stale(let by):
        metrics.collapsed.increment()
        settle(request.work, outcomes.stale(subject, revision: request.terms.revision, by: by))
      case .duplicate:
        metrics.duplicates.increment()
        settle(request.work, outcomes.say(.duplicate, subject, revision: request.terms.revision))
      case .foreign: break
      case .unregistered:
        metrics.unregistered.increment()
        settle(request.work, outcomes.say(.unregistered, subject, revision: request.terms.revision))
      case .wrongApplication:
        metrics.rejected.increment()
        wrongApplication(request)
      }
    }
  }

  private func wrongApplication(_ request: DeviceRequest) {
    guard let hold = works[request.work].hold else { return }
    let record = hold.records[works[request.work].index]
    topic.withUnsafeBytes { topic in
      guard case .accepted(let view) = RequestView.read(RequestRecord(record, topic: topic), limits: settings.limits) else { return }
      let rejection = Rejection(
        .deviceTokenNotForTopic, field: "apns-topic", rule: "The device is registered for another application than the topic names.")
      settle(request.work, outcomes.reject(record, rejection, view.envelope, tries: works[request.work].tries + 1, token: request.work))
    }
  }

  // MARK: A full mailbox

  private func evict(_ surplus: RedisReplyView, _ token: UnsafeRawBufferPointer) {
    evictions.begin(token, surplus) { number, revision, entry in
      metrics.evicted.increment()
      return outcomes.evicted(Outcomes.Subject(token: token, entry: entry, work: Int32(number)), revision: Revision(bytes: revision))
    }
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
      if failure == .messageTooLarge, !works[place].isCondemned { fault(place, "an event of it is too large for Kafka") }
      works[place].failed = true
    }
    finish(place)
    if pages.isWaiting { askWaiting() }
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
      leavePage(place)
      again.append(place)
      scheduleRetry(works[place].tries)
      return
    }
    metrics.latency.observe(Double(loop.milliseconds() - works[place].arrived) / 1000)
    let ticket = works[place].ticket
    works.remove(place)
    if let ticket { onDone?(ticket) }
  }

  // MARK: Again

  private func scheduleRetry(_ tries: Int) {
    guard !isRetrying else { return }
    isRetrying = true
    retry.start(after: min(2000, 20 << min(tries, 7)))
  }

  private func retryFired() {
    isRetrying = false
    guard redis.isUp, mayWork(), !outcomes.isFull else { return scheduleRetry(5) }
    var places: [Int32] = []
    swap(&places, &again)
    for place in places {
      guard let hold = works[place].hold else { continue }
      // What is made from it is made anew: the former bytes go when all of its batch are done, or are done again.
      works[place].hold = self.hold(hold.records, [works[place].index])
      works[place].failed = false
      works[place].tries += 1
      works[place].audience = nil
      metrics.retries.increment()
      start(place)
    }
    send()
    askWaiting()
  }

  /// Whether nothing is under way.
  var isIdle: Bool { works.count == 0 }
}

extension RequestRecord {
  /// A consumed record, read in place.
  init(_ record: RecordView, topic: UnsafeRawBufferPointer) {
    var headers = RequestHeaders()
    record.forEachHeader { name, value in
      if let value { headers.take(name: name, value: value) }
    }
    self.init(
      key: record.key ?? UnsafeRawBufferPointer(start: nil, count: 0), value: record.value ?? UnsafeRawBufferPointer(start: nil, count: 0),
      headers: headers, topic: topic,
      position: SourcePosition(partition: record.partition, offset: record.offset, timestamp: record.timestamp))
  }
}
