import Cryptography
import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Rebuilds an empty Redis from Kafka.
///
/// It judges the requests that came to a mailbox according to the journal, and emits nothing. It removes entries from mailboxes that ended
/// according to the events.
final class RebuildCore: ConsumerHandler {
  private let loop: EventLoop
  private let settings: TransformSettings
  private let shards: Shards
  private let markers: Markers
  private let rebuild: Rebuild
  private let admin: Admin
  private let ranges: RebuildRanges
  private let producer: Producer
  private let pipeline: Pipeline
  private let notes: EndNotes
  private let applications: ApplicationsReader
  private let logger: Logger
  private var consumer: Consumer?
  private var tracker = PartitionTracker(limit: 1 << 24, spanLimit: 1 << 24)
  /// The journal's partitions are not read in step, but ahead of the requests.
  private var ahead = JournalAhead()
  /// What was read of the requests of each partition and is not judged yet.
  private var held: [Int: ArraySlice<HeldItem>] = [:]
  private let verdicts = JournaledVerdicts()
  private let rates: RateLimits
  /// Counts the requests of each partition, for those that the journal does not tell of.
  private var counters: [Int32: RateCounter] = [:]
  private let endings: Endings
  private let schedules: RebuiltSchedules
  private var step = TimeStep(milliseconds: RebuildCore.stepMilliseconds)
  private var names: [Int: TopicPartition] = [:]
  /// The unread offsets of each partition.
  private var unread: [Int: Range<Int64>] = [:]
  /// The incarnation of each partition's topic, from the group's notes, otherwise from the journal.
  private var incarnationOf: [TopicPartition: UInt32] = [:]
  private var incarnations = TopicIncarnations()
  private var lastTimestamps: [TopicPartition: (offset: Int64, timestamp: Int64)] = [:]
  /// Records that crashed workers, and would crash the rebuild.
  private var poison: Set<SourceCoordinates> = []
  private var report = RebuildReport()
  private var failure: (any Error)?
  private let ticker: Timer
  private var lastTick: UInt64 = 0
  private var waiting: CheckedContinuation<Void, Never>?
  private var silence = SilentEnds()
  /// Partitions of `devices` that need a tombstone.
  private var silent: [Int32] = []
  private let silenceTimer: Timer
  /// Where `devices` ended when it was read.
  private var registryEnds: [TopicPartition: Int64] = [:]
  var onProgress: ((RebuildReport) -> Void)?

  /// One item that was read.
  private enum HeldItem {
    /// A record of a batch.
    case record(RecordBatch, Int)
    /// An unreadable stretch, with its last offset.
    case unreadable(through: Int64)
    /// The end of the partition at that time.
    case end(Int64)
  }

  /// Maximum number of kept endings, about 170 bytes each; at the limit the events wait for the requests.
  private static let endingsMaximum = 200_000
  /// How far the clocks of two brokers may be apart.
  private static let slackMilliseconds: Int64 = 5_000

  /// How far one partition may be ahead of another. A mailbox may overflow by about that.
  private static let stepMilliseconds: Int64 = 10_000
  /// Maximum number of records in flight.
  private static let inFlightMaximum = 20_000
  private static let lockMilliseconds = 10_000

  init(on loop: EventLoop, _ settings: TransformSettings, logger: Logger) throws {
    var settings = settings
    // Later requests evict a mailbox's overflow.
    settings.mailboxBound = .max
    self.loop = loop
    self.settings = settings
    self.logger = logger
    shards = Shards(on: loop, settings.store, clientName: "carillon-rebuild", isRebuilding: true)
    markers = Markers(shards)
    endings = Endings(Mailboxes(shards), verdicts)
    schedules = RebuiltSchedules(
      Schedules(shards, Schedules.Limits(dueTimesOfPartition: .max, lifetimeMilliseconds: settings.longestLifetime * 1000)),
      DeviceFacts(shards, Recipients(shards)), now: WallClock.milliseconds)
    rebuild = Rebuild(shards, name: "\(settings.worker)/\(RandomBytes.number())", lockMilliseconds: Self.lockMilliseconds)
    admin = try Admin(settings.kafka, timeoutMilliseconds: 30_000)
    ranges = RebuildRanges(admin, settings.topics, lifetimeMilliseconds: settings.longestLifetime * 1000)
    producer = try Producer(on: loop, settings.kafka)
    let metrics = TransformMetrics(MetricRegistry())
    let outcomes = try Outcomes(on: loop, settings, events: producer, deliveries: producer, metrics: metrics.clients, isSilent: true)
    applications = ApplicationsReader(on: loop, settings.kafka, settings.topics, logger: logger, health: nil)
    rates = RateLimits(applications, settings)
    notes = EndNotes(on: loop)
    let lane = LaneContext(
      loop: loop, settings: settings, state: LaneState(LanePhase(.running)), shards: shards, notes: notes, health: Health(),
      logger: logger, metrics: metrics)
    pipeline = Pipeline(lane, for: .rebuilding(verdicts), applications, outcomes)
    ticker = Timer(on: loop)
    silenceTimer = Timer(on: loop)
    ticker.handler = { [unowned self] in rebuild.keepLock() }
    silenceTimer.handler = { [unowned self] in lookForSilence() }
    pipeline.owner = self
    let onAnswer = { [unowned self] (error: StoreError?) in if let error { fail(error) } else { advance() } }
    (endings.onAnswer, schedules.onAnswer) = (onAnswer, onAnswer)
    notes.drain = { [unowned self] in drainNotes() }
    shards.onDown = { [unowned self] error in fail(error) }
  }

  /// Fails at the first call that Redis refuses: no write depends on earlier data, so a refusal concerns Redis itself.
  private func watchRefusals() { shards.onRefusal = { [unowned self] error in fail(error) } }

  // MARK: Run

  func run() async throws -> RebuildReport {
    shards.start()
    try await shards.waitUntilUp(withinMilliseconds: settings.startMilliseconds)
    if let refusal = try await SelfCheck(shards).run() { throw StoreError(.refused, refusal) }
    try await checkClock()
    let committed = try await begin()
    defer { ticker.stop() }
    watchRefusals()
    try await findIncarnations()
    // Requests of stopped applications came to no mailbox.
    try await applications.start(admin, withinMilliseconds: settings.startMilliseconds)
    try await read(phase: .deadLetters, ranges.recent(of: settings.topics.deadLetters))
    let registered = try await ranges.whole(of: settings.topics.devices)
    registryEnds = Dictionary(registered.map { ($0.0, $0.1.upperBound) }) { first, _ in first }
    silenceTimer.start(after: 1_000, repeating: 1_000)
    try await read(phase: .registrations, registered)
    silenceTimer.stop()
    try await read(phase: .schedules, ranges.whole(of: settings.topics.schedule))
    let positions = try await ranges.requestsAndEvents(committed: committed)
    try await read(phase: .requests, positions, ahead: ranges.recent(of: settings.topics.journal))
    report.phase = .markers
    onProgress?(report)
    try await finish(Dictionary(positions.map { ($0.0, $0.1.upperBound) }) { first, _ in first })
    report.phase = .done
    return report
  }

  /// Refuses a machine whose clock is wrong: notifications that have not expired would be dropped, and no worker reads them again.
  private func checkClock() async throws {
    var trust = ClockTrust()
    guard let offset = try await shards.clockOffset(), trust.judge(offset) == .wrong else { return }
    throw StoreError(.refused, ClockWatch.difference(offset))
  }

  /// Checks that a rebuild is needed, that Redis is this cluster's, and that no other rebuild runs.
  private func begin() async throws -> [TopicPartition: Int64] {
    let identity = ClusterIdentity(
      kafka: try await admin.describeCluster().id ?? "", topicPrefix: settings.topics.prefix, buckets: settings.store.buckets,
      name: settings.cluster)
    _ = try await identity.verify(shards)
    guard let buckets = await markers.read([]) else { throw markers.failure ?? StoreError(.unavailable, "Redis does not answer") }
    guard buckets.contains(where: { $0 == nil }) else { throw RebuildRefusal.nothingToDo }
    let noted = try await admin.committedWithNotes(
      group: settings.group, of: try await ranges.partitions(of: settings.topics.requests) + ranges.partitions(of: settings.topics.devices))
    incarnationOf = noted.mapValues { Marker.incarnation(note: $0.note) }
    let committed = noted.mapValues(\.offset)
    let registered = try await admin.registryEnds(settings.topics)
    guard !committed.isEmpty || !registered.isEmpty else { throw RebuildRefusal.newCluster }
    // An empty Redis has no identity, and no worker claims it. The workers' settings must then agree with these.
    try await identity.claim(shards)
    if let other = try await rebuild.lock() { throw RebuildRefusal.alreadyRunning(other) }
    ticker.start(after: Self.lockMilliseconds / 10, repeating: Self.lockMilliseconds / 10)
    try await rebuild.begin()
    return committed
  }

  /// Finds the incarnations of partitions without a note of the group, from the end of the journal.
  private func findIncarnations() async throws {
    let unknown = try await ranges.partitions(of: settings.topics.requests).filter { incarnationOf[$0] == nil }
    guard !unknown.isEmpty else { return }
    let journal = try await ranges.whole(of: settings.topics.journal).map { name, range in
      (name, max(range.lowerBound, range.upperBound - TopicIncarnations.recordsRead)..<range.upperBound)
    }
    try await read(phase: .incarnations, journal)
    let known = unknown.filter { incarnations.lastRequests[$0.partition] != nil }
    let ends = try await admin.ends(of: known)
    try await read(
      phase: .incarnations,
      known.compactMap { name in
        guard let offset = incarnations.lastRequests[name.partition]?.offset, ends[name]?.contains(offset) == true else { return nil }
        return (name, offset..<offset + 1)
      })
    for name in known {
      let there = lastTimestamps.removeValue(forKey: name)?.timestamp
      incarnationOf[name] = incarnations.incarnation(of: name.partition, there: there, offsets: ends[name] ?? 0..<0)
    }
  }

  /// Reads these ranges of partitions, and waits until all of it is applied.
  ///
  /// - Parameter journal: the ranges of the journal, which are read ahead of the requests.
  private func read(
    phase: RebuildReport.Phase, _ positions: [(TopicPartition, Range<Int64>)], ahead journal: [(TopicPartition, Range<Int64>)] = []
  ) async throws {
    let journal = journal.filter { !$0.1.isEmpty }
    let positions = positions.filter { !$0.1.isEmpty }
    report.phase = phase
    (report.read, report.records) = (0, 0)
    report.total = positions.reduce(0) { $0 + Int64($1.1.count) }
    onProgress?(report)
    guard !positions.isEmpty else { return }
    // Only topics that fill and empty mailboxes are read in step, since that makes partitions wait.
    step = TimeStep(milliseconds: phase == .requests ? Self.stepMilliseconds : .max)
    tracker = PartitionTracker(limit: 1 << 24, spanLimit: 1 << 24)
    (names, unread) = ([:], [:])
    (ahead, held) = (JournalAhead(), [:])
    let journalEnds = Dictionary(journal.map { ($0.0.partition, $0.1.upperBound) }) { first, _ in first }
    for (name, range) in positions where phase == .requests && name.topic == settings.topics.requests {
      ahead.add(
        name.partition, from: range.lowerBound, incarnation: incarnationOf[name] ?? 0, journal: journalEnds[name.partition])
    }
    var options = Consumer.Options()
    options.reportsPartitionEnd = true
    let consumer = try Consumer(on: loop, settings.kafka, options, handler: self)
    self.consumer = consumer
    let assigned = try await consumer.assign((positions + journal).map { ($0.0, .offset($0.1.lowerBound)) })
    for partition in assigned { names[partition.index] = partition.topicPartition }
    for (partition, position) in zip(assigned, positions) {
      unread[partition.index] = position.1
      step.add(partition.index, end: position.1.upperBound)
    }
    while !isDone {
      await withCheckedContinuation { continuation in
        if isDone { continuation.resume() } else { waiting = continuation }
      }
      do { try await wake(silent) } catch { failure = error }
      silent = []
    }
    self.consumer = nil
    // After a failure records may still be held, and the consumer would wait for them when it closes.
    held = [:]
    await consumer.close()
    if let failure { throw failure }
  }

  /// Detects partitions of registrations in which no more records come, before their end is reached.
  private func lookForSilence() {
    guard report.phase == .registrations, let consumer, let waiting else { return }
    var (reached, ends): ([Int32: Int64], [Int32: Int64]) = ([:], [:])
    for (index, name) in names {
      guard let end = step.end(of: index) else { continue }
      (reached[name.partition], ends[name.partition]) = (consumer.position(of: index) ?? 0, end)
    }
    silent = silence.look(reached, ends: ends, at: SteadyClock.milliseconds())
    guard !silent.isEmpty else { return }
    self.waiting = nil
    waiting.resume()
  }

  /// Writes a tombstone to partitions of `devices` in which no record reaches the end.
  private func wake(_ silent: [Int32]) async throws {
    guard !silent.isEmpty else { return }
    try await EndTombstone.write(to: silent.map { TopicPartition(settings.topics.devices, $0) }, on: loop, settings.kafka)
  }

  private var isDone: Bool {
    failure != nil || (step.isDone && pipeline.isIdle && endings.count == 0 && endings.deletions == 0 && schedules.count == 0)
  }

  /// Applies the endings whose requests are applied: those before the time that the slowest partition of requests has reached.
  private func applyEndings() {
    // In rounds, since each round looks at all endings.
    guard endings.count > 0, endings.deletions == 0, pipeline.isIdle, failure == nil else { return }
    let come = step.earliest(of: names.filter { $0.value.topic == settings.topics.requests }.map(\.key))
    guard come != .min else { return }
    endings.apply(through: come == .max ? .max : come - Self.slackMilliseconds, maximum: Self.inFlightMaximum)
  }

  /// Applies endings, begins held requests, and pauses and resumes partitions; resumes `read` when all is done.
  private func advance() {
    applyEndings()
    beginHeld()
    // The endings may have waited for requests that were just skipped.
    applyEndings()
    if isDone, let waiting {
      self.waiting = nil
      return waiting.resume()
    }
    guard let consumer else { return }
    var (wait, goOn) = step.decide()
    goOn.removeAll { held[$0] != nil }
    wait += held.keys
    let awaited = Set(held.keys.compactMap { names[$0]?.partition })
    for (index, name) in names where isAhead(name) {
      if ahead.wantsMore(name.partition, isAwaited: awaited.contains(name.partition)) { goOn.append(index) } else { wait.append(index) }
    }
    let mustWait = endings.count > Self.endingsMaximum && !pipeline.isIdle
    if tracker.inFlight + endings.deletions + schedules.count > Self.inFlightMaximum || mustWait { return consumer.hold() }
    if endings.count > Self.endingsMaximum {
      // Except the slowest of all partitions, since requests may wait for it, too.
      let last = step.last
      let events = goOn.filter { names[$0]?.topic == settings.topics.events && $0 != last }
      wait += events
      goOn.removeAll { events.contains($0) }
    }
    consumer.release()
    consumer.pause(wait)
    consumer.resume(goOn)
  }

  private func fail(_ error: any Error) {
    if failure == nil { failure = error }
    advance()
  }

  // MARK: Records

  func consumerAssigned(_ partitions: [AssignedPartition]) {
    for partition in partitions { tracker.assign(partition.index, generation: partition.generation) }
  }

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }

  func consumerReceived(_ batch: RecordBatch) {
    var begun: [BegunRecord] = []
    for index in batch.indices {
      let record = batch[index]
      guard let name = names[record.partitionIndex] else { continue }
      let journal = name.topic == settings.topics.journal ? headers(record) : []
      if let version = JournalRecord.newerVersion(journal) { foundNewer(.journal, version, record) }
      if isAhead(name) {
        ahead.take(name.partition, offset: record.offset, headers: journal, record.value)
        continue
      }
      if isOfRequests(name) {
        held[record.partitionIndex, default: []].append(.record(batch, index))
        continue
      }
      guard
        step.take(record.partitionIndex, offset: record.offset, timestamp: record.timestamp)
      else { continue }
      reached(record.offset + 1, in: record.partitionIndex)
      report.records += 1
      if name.topic == settings.topics.journal {
        if let value = record.value { incarnations.take(record.partition, headers: journal, value) }
        continue
      }
      if name.topic == settings.topics.events {
        if let event = event(record), endings.take(event, at: record.timestamp) { report.endings += 1 }
        continue
      }
      if name.topic == settings.topics.deadLetters {
        if let letter = deadLetter(record), letter.tellsOfEndedWorkers { poison.insert(letter.source) }
        continue
      }
      if name.topic == settings.topics.schedule {
        if let version = record.value.flatMap({ ScheduleRecord.newerVersion(of: $0) }) { foundNewer(.schedule, version, record) }
        if schedules.take(record) { report.schedules += 1 }
        continue
      }
      lastTimestamps[name] = (record.offset, record.timestamp)
      if report.phase == .incarnations { continue }
      report.registrations += 1
      if let record = begin(record, at: index, name) { begun.append(record) }
    }
    if !begun.isEmpty { pipeline.take(batch, begun) }
    if loop.milliseconds() - lastTick >= 500 {
      lastTick = loop.milliseconds()
      onProgress?(report)
    }
    advance()
  }

  /// Gives a record its ticket; nil if the record is not processed.
  private func begin(_ record: RecordView, at index: Int, _ name: TopicPartition) -> BegunRecord? {
    guard poison.isEmpty || !poison.contains(SourceCoordinates(record)),
      case .begun(let ticket) = tracker.begin(record.partitionIndex, generation: record.generation, offset: record.offset)
    else { return nil }
    return BegunRecord(
      index: index, ticket: ticket, isRegistration: name.topic == settings.topics.devices, incarnation: incarnationOf[name] ?? 0)
  }

  // MARK: Requests

  /// Whether a partition has requests, which wait for their entries of the journal.
  private func isOfRequests(_ name: TopicPartition) -> Bool { report.phase == .requests && name.topic == settings.topics.requests }

  /// Whether a partition is one of the journal that is read ahead of the requests.
  private func isAhead(_ name: TopicPartition) -> Bool { report.phase == .requests && name.topic == settings.topics.journal }

  /// Begins the held requests that may be judged now, in the order of each partition.
  private func beginHeld() {
    guard failure == nil else { return }
    var hasGoneOn = false
    repeat {
      hasGoneOn = false
      for index in held.keys {
        guard let name = names[index] else { continue }
        if beginHeld(of: index, name) { hasGoneOn = true }
      }
    } while hasGoneOn
  }

  /// Begins a partition's held requests. Returns whether there was progress.
  private func beginHeld(of index: Int, _ name: TopicPartition) -> Bool {
    var hasGoneOn = false
    var (batch, begun): (RecordBatch?, [BegunRecord]) = (nil, [])
    while tracker.inFlight <= Self.inFlightMaximum, let item = held[index]?.first {
      switch item {
      case .end(let offset): ended(index, at: offset)
      case .unreadable(let last): passOver(index, name, through: last)
      case .record(let next, let place):
        let answer = answer(on: next[place], name)
        if case .wait = answer {
          if let batch, !begun.isEmpty { pipeline.take(batch, begun) }
          return hasGoneOn
        }
        if next !== batch {
          if let batch, !begun.isEmpty { pipeline.take(batch, begun) }
          (batch, begun) = (next, [])
        }
        if let record = begin(next[place], at: place, name, answer) { begun.append(record) }
      }
      held[index]?.removeFirst()
      if held[index]?.isEmpty == true { held[index] = nil }
      hasGoneOn = true
    }
    if let batch, !begun.isEmpty { pipeline.take(batch, begun) }
    return hasGoneOn
  }

  /// The journal's facts about a request, or that it has to wait for them.
  private func answer(on record: RecordView, _ name: TopicPartition) -> JournalAhead.Answer {
    guard let end = step.end(of: record.partitionIndex), record.offset < end else { return .untold }
    if record.isRedriven, !isRestored(upTo: record) { return .wait }
    return ahead.tell(of: name.partition, offset: record.offset, timestamp: record.timestamp)
  }

  /// Whether the mailboxes are as a redriven request found them. Such a request is delivered again only if no entry of it waits.
  private func isRestored(upTo record: RecordView) -> Bool {
    let time = record.timestamp + Self.slackMilliseconds
    step.reached(record.partitionIndex, time)
    return step.earliest(of: names.keys) >= time && endings.earliest > record.timestamp && endings.deletions == 0
  }

  /// Gives a request its ticket; nil if it came to no mailbox, or is not processed.
  private func begin(_ record: RecordView, at index: Int, _ name: TopicPartition, _ answer: JournalAhead.Answer) -> BegunRecord? {
    guard step.take(record.partitionIndex, offset: record.offset, timestamp: record.timestamp) else { return nil }
    reached(record.offset + 1, in: record.partitionIndex)
    report.records += 1
    report.requests += 1
    lastTimestamps[name] = (record.offset, record.timestamp)
    let excess = rates.isActive ? rates.count(record, in: &counters[record.partition, default: RateCounter()]) : nil
    guard case .told(let telling) = answer else { return excess == nil ? begin(record, at: index, name) : nil }
    guard !telling.isKeptNowhere, let begun = begin(record, at: index, name) else { return nil }
    verdicts.begin(begun.ticket, telling)
    return begun
  }

  /// Ends the rebuild: without a record that only a newer program reads, Redis would lack something.
  private func foundNewer(_ layout: Layout, _ version: some BinaryInteger, _ record: RecordView) {
    fail(StoreError.newer(layout, version, at: "\(SourceCoordinates(record))"))
  }

  private func headers(_ record: RecordView) -> [(name: String, value: String)] {
    var headers: [(name: String, value: String)] = []
    record.forEachHeader { name, value in
      if let value { headers.append((String(cString: name), String(decoding: value, as: UTF8.self))) }
    }
    return headers
  }

  private func event(_ record: RecordView) -> Event? { record.value.flatMap { try? Event(headers: headers(record), value: $0) } }

  private func deadLetter(_ record: RecordView) -> DeadLetter? { DeadLetter(headers: headers(record)) }

  func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
    guard let name = names[stretch.partition.index] else { return true }
    report.unreadable += stretch.offsets.count
    logger.warning(
      "records cannot be read and are skipped",
      ["partition": "\(name)", "first": stretch.offsets.lowerBound, "last": stretch.offsets.upperBound - 1, "error": "\(stretch.error)"])
    let last = stretch.offsets.upperBound - 1
    if isAhead(name) {
      ahead.reached(name.partition, last + 1)
    } else if isOfRequests(name) {
      held[stretch.partition.index, default: []].append(.unreadable(through: last))
    } else {
      passOver(stretch.partition.index, name, through: last)
    }
    advance()
    return true
  }

  /// Skips an unreadable stretch. A marker after it has no timestamp, so that no worker begins to read inside the stretch.
  private func passOver(_ index: Int, _ name: TopicPartition, through last: Int64) {
    reached(last + 1, in: index)
    if step.take(index, offset: last, timestamp: .min) { lastTimestamps[name] = (last, -1) }
  }

  func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) {
    if let name = names[partition.index], isAhead(name) {
      ahead.reached(name.partition, offset)
    } else if held[partition.index] != nil {
      held[partition.index]?.append(.end(offset))
    } else {
      ended(partition.index, at: offset)
    }
    advance()
  }

  private func ended(_ index: Int, at offset: Int64) {
    reached(offset, in: index)
    step.ended(index, at: offset)
  }

  /// Notes that a partition was read up to an offset.
  private func reached(_ offset: Int64, in index: Int) {
    guard let left = unread[index] else { return }
    let next = min(max(offset, left.lowerBound), left.upperBound)
    report.read += next - left.lowerBound
    unread[index] = next..<left.upperBound
  }

  func consumerFailed(_ error: KafkaError) { if error.isFatal { fail(error) } }

  // MARK: The end

  /// Writes the markers, each bucket's at once, so that no worker sees a bucket without them.
  ///
  /// - Parameter applied: the offsets at which reading of the requests ended.
  private func finish(_ applied: [TopicPartition: Int64]) async throws {
    var all: [(MarkedPartition, Marker)] = []
    func add(_ marked: MarkedPartition, _ partition: TopicPartition, _ offset: Int64) {
      // The offset below may have no record, as after a transaction. Then the timestamp is the last record's.
      let timestamp = lastTimestamps[partition].map { $0.offset < offset ? $0.timestamp : -1 } ?? -1
      all.append((marked, Marker(offset: offset, timestamp: timestamp, incarnation: incarnationOf[partition] ?? 0)))
    }
    for partition in incarnationOf.keys where partition.topic == settings.topics.requests {
      add(.requests(partition.partition), partition, applied[partition] ?? 0)
    }
    for (partition, last) in lastTimestamps where partition.topic == settings.topics.devices {
      add(.devices(partition.partition), partition, max(last.offset + 1, registryEnds[partition] ?? 0))
    }
    try await rebuild.end(all)
  }

  func close() async {
    (shards.onDown, shards.onRefusal) = (nil, nil)
    ticker.close()
    silenceTimer.close()
    held = [:]
    await consumer?.close()
    await admin.close()
    await applications.close()
    await producer.close(withinMilliseconds: 1_000)
    shards.close()
    notes.close()
    await pipeline.close()
    onProgress = nil
  }
}

extension RebuildCore: PipelineOwner {
  private func drainNotes() {
    pipeline.drainNotes()
    for ticket in notes.take() {
      tracker.finish(ticket)
      verdicts.finish(ticket)
    }
    advance()
  }

  func isCurrent(_ ticket: RecordTicket) -> Bool { true }
  func redisLostBucket() { fail(StoreError(.bucketLost, "Redis has lost rebuilt data: start the rebuild again")) }
  func redisRefusedWrites(_ error: StoreError) { fail(error) }
  func foundNewer(_ error: StoreError) { fail(error) }

  func setAside(_ ticket: RecordTicket) {}
}

extension RecordView {
  private static let origin = RequestHeader.origin.name.description

  /// Whether the record is a redriven request.
  fileprivate var isRedriven: Bool { header(Self.origin).flatMap { Origin($0) }?.purpose == .redrive }
}
