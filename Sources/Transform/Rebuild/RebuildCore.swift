import Cryptography
import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// What a rebuilding consists of: loop-confined.
///
/// It judges requests as the workers did, emits nothing, and takes out of the mailboxes what events say has ended.
final class RebuildCore: ConsumerHandler {
  private let loop: EventLoop
  private let settings: TransformSettings
  private let shards: Shards
  private let markers: Markers
  private let mailboxes: Mailboxes
  private let rebuild: Rebuild
  private let admin: Admin
  private let producer: Producer
  private let pipeline: Pipeline
  private let applications: ApplicationsReader
  private let isDryRun: Bool
  private let logger: Logger
  private var consumer: Consumer?
  private var tracker = PartitionTracker(limit: 1 << 24, spanLimit: 1 << 24)
  private var step = TimeStep(milliseconds: RebuildCore.stepMilliseconds)
  private var names: [Int: TopicPartition] = [:]
  /// What is still to be read of each partition.
  private var unread: [Int: Range<Int64>] = [:]
  /// The incarnation of each partition's topic: as the group knows it, else as the journal tells.
  private var incarnationOf: [TopicPartition: UInt32] = [:]
  private var incarnations = TopicIncarnations()
  private var lastTimestamps: [TopicPartition: (offset: Int64, timestamp: Int64)] = [:]
  /// Records that workers did not survive: no rebuilding would.
  private var poison: Set<SourceCoordinates> = []
  private var report = RebuildReport()
  private var failure: (any Error)?
  /// Deletions that Redis has not answered.
  private var deletions = 0
  /// Endings of notifications that may not be in their mailboxes yet.
  private var endings: [Ending] = []
  private let ticker: Timer
  private var lastTick: UInt64 = 0
  private var waiting: CheckedContinuation<Void, Never>?
  private var silence = SilentEnds()
  /// Partitions of `devices` that are to get a record.
  private var silent: [Int32] = []
  private let silenceTimer: Timer
  /// Where `devices` ended when it was read.
  private var registryEnds: [TopicPartition: Int64] = [:]
  var onProgress: ((RebuildReport) -> Void)?

  /// What an event says has ended.
  private struct Ending {
    let time: Int64
    let device: String
    let revision: Revision
    let id: NotificationID
  }

  /// Endings that are kept at most before the events wait for the requests; about 170 bytes each.
  private static let endingsMaximum = 200_000
  /// How far the clocks of two brokers may be apart.
  private static let slackMilliseconds: Int64 = 5_000

  /// How far one partition may be ahead of another: about what a mailbox may be too full by.
  private static let stepMilliseconds: Int64 = 10_000
  /// Records under way at most.
  private static let inFlightMaximum = 20_000
  private static let lockMilliseconds = 10_000

  init(on loop: EventLoop, _ settings: TransformSettings, logger: Logger, isDryRun: Bool) throws {
    var settings = settings
    // What a mailbox has too many of is evicted when later requests come.
    settings.mailboxBound = .max
    self.loop = loop
    self.settings = settings
    self.isDryRun = isDryRun
    self.logger = logger
    report.isDryRun = isDryRun
    shards = Shards(on: loop, settings.store, clientName: "carillon-rebuild", isRebuilding: true)
    markers = Markers(shards)
    mailboxes = Mailboxes(shards)
    rebuild = Rebuild(shards, name: "\(settings.worker)/\(RandomBytes.number())", lockMilliseconds: Self.lockMilliseconds)
    admin = try Admin(settings.kafka, timeoutMilliseconds: 30_000)
    producer = try Producer(on: loop, settings.kafka, handler: SilentProducerHandler())
    let metrics = TransformMetrics(MetricRegistry())
    let outcomes = try Outcomes(on: loop, settings, events: producer, deliveries: producer, metrics: metrics.clients, isSilent: true)
    applications = ApplicationsReader(on: loop, settings.kafka, settings.topics, logger: logger, health: nil)
    pipeline = Pipeline(
      on: loop, settings, state: LaneState(LanePhase(.running)), shards: shards, checkpoints: nil, applications: applications,
      outcomes: outcomes, journal: nil, logger: logger, metrics: metrics)
    ticker = Timer(on: loop)
    silenceTimer = Timer(on: loop)
    ticker.handler = { [unowned self] in rebuild.keepLock() }
    silenceTimer.handler = { [unowned self] in lookForSilence() }
    pipeline.owner = self
    shards.onDown = { [unowned self] error in fail(error) }
  }

  /// Ends with the first answer in which Redis refuses a call: nothing that is written here depends on what was there before.
  private func watchRefusals() { shards.onRefusal = { [unowned self] error in fail(error) } }

  // MARK: Run

  func run() async throws -> RebuildReport {
    shards.start()
    try await shards.waitUntilUp(withinMilliseconds: settings.startMilliseconds)
    if !isDryRun, let refusal = try await SelfCheck(shards).run() { throw StoreError(.refused, refusal) }
    let committed = try await begin()
    defer { ticker.stop() }
    watchRefusals()
    try await findIncarnations()
    // Requests of stopped applications came to no mailbox.
    try await applications.start(admin, withinMilliseconds: settings.startMilliseconds)
    try await read(phase: .deadLetters, positions(of: try await partitions(settings.topics.deadLetters)))
    let registered = try await registryPositions()
    registryEnds = Dictionary(registered.map { ($0.0, $0.1.upperBound) }) { first, _ in first }
    silenceTimer.start(after: 1_000, repeating: 1_000)
    try await read(phase: .registrations, registered)
    silenceTimer.stop()
    let positions = try await requestPositions(committed)
    try await read(phase: .requests, positions)
    report.phase = .markers
    onProgress?(report)
    if !isDryRun {
      try await countWaiting()
      try await finish(Dictionary(positions.map { ($0.0, $0.1.upperBound) }) { first, _ in first })
    }
    report.phase = .done
    return report
  }

  /// Counts what waits, before the workers go on and write; not where Redis allows no SCAN.
  private func countWaiting() async throws {
    shards.onRefusal = nil
    defer { watchRefusals() }
    do throws(StoreError) {
      let waiting = try await Population(shards).waiting()
      report.waiting = (waiting.mailboxes, waiting.entries)
    } catch {
      if error.code == .unavailable { throw error }
      logger.warning("what waits in the mailboxes cannot be counted", ["error": "\(error)"])
    }
  }

  /// Makes sure that it is to be done, that Redis is this cluster's, and that nobody else does it.
  private func begin() async throws -> [TopicPartition: Int64] {
    let identity = ClusterIdentity(
      kafka: try await admin.describeCluster().id ?? "", topicPrefix: settings.topics.prefix, buckets: settings.store.buckets,
      name: settings.cluster)
    _ = try await identity.verify(shards)
    guard let buckets = await markers.read([]) else { throw StoreError(.unavailable, "Redis does not answer") }
    guard buckets.contains(where: { $0 == nil }) else { throw RebuildRefusal.nothingToDo }
    let noted = try await admin.committedWithNotes(
      group: settings.group, of: try await partitions(settings.topics.requests) + partitions(settings.topics.devices))
    incarnationOf = noted.mapValues { Marker.incarnation(note: $0.note) }
    let committed = noted.mapValues(\.offset)
    let registered = try await admin.registryEnds(settings.topics)
    guard !committed.isEmpty || !registered.isEmpty else { throw RebuildRefusal.newCluster }
    guard !isDryRun else { return committed }
    // A Redis that has lost everything has lost that, too, and no worker claims it: these settings are what its workers are held to.
    try await identity.claim(shards)
    if let other = try await rebuild.lock() { throw RebuildRefusal.alreadyRunning(other) }
    ticker.start(after: Self.lockMilliseconds / 10, repeating: Self.lockMilliseconds / 10)
    try await rebuild.begin()
    return committed
  }

  private func partitions(_ topic: String) async throws -> [TopicPartition] {
    try await admin.describe(topic: topic).partitions.map { TopicPartition(topic, $0.id) }
  }

  private func registryPositions() async throws -> [(TopicPartition, Range<Int64>)] {
    try await admin.ends(of: try await partitions(settings.topics.devices)).map { ($0.key, $0.value) }
  }

  /// Finds out the incarnations of partitions that the group knows nothing of, by the end of the journal.
  private func findIncarnations() async throws {
    let unknown = try await partitions(settings.topics.requests).filter { incarnationOf[$0] == nil }
    guard !unknown.isEmpty else { return }
    let journal = try await admin.ends(of: try await partitions(settings.topics.journal)).map { name, range in
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

  /// Requests up to where the group has committed, and events up to now, both from the longest lifetime ago.
  private func requestPositions(_ committed: [TopicPartition: Int64]) async throws -> [(TopicPartition, Range<Int64>)] {
    let names = try await partitions(settings.topics.requests) + partitions(settings.topics.events)
    return try await positions(of: names).map { name, range in
      // A log that has lost its end may end before what was committed.
      let upper = name.topic == settings.topics.requests ? min(committed[name] ?? 0, range.upperBound) : range.upperBound
      return (name, min(range.lowerBound, upper)..<upper)
    }
  }

  /// What lies in partitions from the longest lifetime ago up to now.
  private func positions(of names: [TopicPartition]) async throws -> [(TopicPartition, Range<Int64>)] {
    let ends = try await admin.ends(of: names)
    let isEmbedded = try await admin.describeCluster().isEmbedded
    let start = WallClock.milliseconds() - settings.longestLifetime * 1000
    // The embedded broker cannot tell offsets by time.
    let starts = isEmbedded ? [:] : try await admin.offsets(of: names, at: start)
    return names.map { name in
      let range = ends[name] ?? 0..<0
      let lower = max(range.lowerBound, starts[name] ?? range.lowerBound)
      return (name, min(lower, range.upperBound)..<range.upperBound)
    }
  }

  /// Reads partitions to where they ended, and waits until all of it is applied.
  private func read(phase: RebuildReport.Phase, _ positions: [(TopicPartition, Range<Int64>)]) async throws {
    let positions = positions.filter { !$0.1.isEmpty }
    report.phase = phase
    (report.read, report.records) = (0, 0)
    report.total = positions.reduce(0) { $0 + Int64($1.1.count) }
    onProgress?(report)
    guard !positions.isEmpty else { return }
    // Only what fills and empties mailboxes is read in step: it costs a wait for each.
    step = TimeStep(milliseconds: phase == .requests ? Self.stepMilliseconds : .max)
    tracker = PartitionTracker(limit: 1 << 24, spanLimit: 1 << 24)
    (names, unread) = ([:], [:])
    var options = Consumer.Options()
    options.reportsPartitionEnd = true
    let consumer = try Consumer(on: loop, settings.kafka, options, handler: self)
    self.consumer = consumer
    let assigned = try await consumer.assign(positions.map { ($0.0, .offset($0.1.lowerBound)) })
    for (partition, position) in zip(assigned, positions) {
      names[partition.index] = partition.topicPartition
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
    await consumer.close()
    if let failure { throw failure }
  }

  /// Looks whether the registrations stay short of their end though nothing more comes of them.
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

  /// Writes a record to partitions of `devices` that no record brings to their ends.
  private func wake(_ silent: [Int32]) async throws {
    guard !silent.isEmpty else { return }
    if isDryRun {
      // Nothing is written, so what is left of them counts as read.
      for (index, name) in names where silent.contains(name.partition) { step.ended(index, at: .max) }
    } else {
      try await EndTombstone.write(to: silent.map { TopicPartition(settings.topics.devices, $0) }, on: loop, settings.kafka)
    }
  }

  private var isDone: Bool { failure != nil || (step.isDone && pipeline.isIdle && endings.isEmpty && deletions == 0) }

  /// Applies the endings of which the beginnings are applied: those before what the last partition of requests has come to.
  private func applyEndings() {
    // In rounds: each looks at all of them.
    guard !endings.isEmpty, deletions == 0, pipeline.isIdle, failure == nil else { return }
    let requests = names.filter { $0.value.topic == settings.topics.requests }.map(\.key)
    let (come, slack) = (step.earliest(of: requests), Self.slackMilliseconds)
    var kept: [Ending] = []
    for ending in endings {
      guard come == .max || come != .min && ending.time <= come - slack, deletions < Self.inFlightMaximum else {
        kept.append(ending)
        continue
      }
      deletions += 1
      mailboxes.delete(ending.revision, ofRequest: ending.id, of: ending.device) { [self] in deleted($0) }
      guard failure == nil else { return }
    }
    endings = kept
  }

  /// Lets what may go on go on, and finds out whether all is done.
  private func advance() {
    applyEndings()
    if isDone, let waiting {
      self.waiting = nil
      return waiting.resume()
    }
    guard let consumer else { return }
    var (wait, goOn) = step.decide()
    let mustWait = endings.count > Self.endingsMaximum && !pipeline.isIdle
    if tracker.inFlight + deletions > Self.inFlightMaximum || mustWait { return consumer.hold() }
    if endings.count > Self.endingsMaximum {
      // But for the last of all partitions, which requests may wait for as well.
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
      guard let name = names[record.partitionIndex],
        step.take(record.partitionIndex, offset: record.offset, timestamp: record.timestamp)
      else { continue }
      reached(record.offset + 1, in: record.partitionIndex)
      report.records += 1
      if name.topic == settings.topics.journal {
        if let value = record.value { incarnations.take(record.partition, headers: headers(record), value) }
        continue
      }
      if name.topic == settings.topics.events {
        end(record)
        continue
      }
      if name.topic == settings.topics.deadLetters {
        if let letter = deadLetter(record), letter.tellsOfEndedWorkers { poison.insert(letter.source) }
        continue
      }
      lastTimestamps[name] = (record.offset, record.timestamp)
      if report.phase == .incarnations { continue }
      let isRegistration = name.topic == settings.topics.devices
      if isRegistration { report.registrations += 1 } else { report.requests += 1 }
      guard poison.isEmpty || !poison.contains(SourceCoordinates(record)) else { continue }
      guard !isDryRun, case .begun(let ticket) = tracker.begin(record.partitionIndex, generation: record.generation, offset: record.offset)
      else { continue }
      begun.append(BegunRecord(index: index, ticket: ticket, isRegistration: isRegistration, incarnation: incarnationOf[name] ?? 0))
    }
    if !begun.isEmpty { pipeline.take(batch, begun) }
    if loop.milliseconds() - lastTick >= 500 {
      lastTick = loop.milliseconds()
      onProgress?(report)
    }
    advance()
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

  /// Takes out of the mailbox what an event says has ended there.
  private func end(_ record: RecordView) {
    guard let event = event(record), event.type?.endsMailboxEntry == true, let id = event.id, let device = event.device,
      let revision = event.revision
    else { return }
    report.endings += 1
    guard !isDryRun else { return }
    endings.append(Ending(time: record.timestamp, device: device, revision: revision, id: id))
  }

  func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
    guard let name = names[stretch.partition.index] else { return true }
    report.unreadable += stretch.offsets.count
    logger.warning(
      "records cannot be read and are passed over",
      ["partition": "\(name)", "first": stretch.offsets.lowerBound, "last": stretch.offsets.upperBound - 1, "error": "\(stretch.error)"])
    reached(stretch.offsets.upperBound, in: stretch.partition.index)
    // A marker there has no timestamp, so that no worker begins to read inside of it.
    let last = stretch.offsets.upperBound - 1
    if step.take(stretch.partition.index, offset: last, timestamp: .min) { lastTimestamps[name] = (last, -1) }
    advance()
    return true
  }

  func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) {
    reached(offset, in: partition.index)
    step.ended(partition.index, at: offset)
    advance()
  }

  /// All of a partition below an offset was read.
  private func reached(_ offset: Int64, in index: Int) {
    guard let left = unread[index] else { return }
    let next = min(max(offset, left.lowerBound), left.upperBound)
    report.read += next - left.lowerBound
    unread[index] = next..<left.upperBound
  }

  func consumerFailed(_ error: KafkaError) { if error.isFatal { fail(error) } }

  private func deleted(_ error: StoreError?) {
    deletions -= 1
    if let error { fail(error) } else { advance() }
  }

  // MARK: The end

  /// Writes the markers, each bucket's at once, so that no worker sees a bucket without them.
  ///
  /// - Parameter applied: where reading of the requests has ended.
  private func finish(_ applied: [TopicPartition: Int64]) async throws {
    var all: [(MarkedPartition, Marker)] = []
    func add(_ marked: MarkedPartition, _ partition: TopicPartition, _ offset: Int64) {
      // The offset below may have no record, as behind a transaction: then it is the last record's.
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
    await consumer?.close()
    await admin.close()
    await applications.close()
    await producer.close(withinMilliseconds: 1_000)
    shards.close()
    await pipeline.close()
    onProgress = nil
  }
}

extension RebuildCore: PipelineOwner {
  func finished(_ ticket: RecordTicket) {
    tracker.finish(ticket)
    advance()
  }

  func isCurrent(_ ticket: RecordTicket) -> Bool { true }
  func redisLostBucket() { fail(StoreError(.bucketLost, "Redis has lost what was being rebuilt: begin again")) }
  func redisRefusedWrites(_ error: StoreError) { fail(error) }
  /// Nothing is held back for that here.
  func redisCaughtUp() {}
}

extension EventType {
  /// Whether the notification is no longer in its device's mailbox afterwards.
  var endsMailboxEntry: Bool {
    switch self {
    case .delivered, .updated, .removed, .filtered, .expired, .evicted, .unregistered, .rejected: true
    default: false
    }
  }
}
