import Cryptography
import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Rebuilds an empty Redis from Kafka.
///
/// It knows which topics are read in which order, and what is checked and written before and after. `RebuildReading` reads them.
final class RebuildCore {
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
  private let reading: RebuildReading
  private var progress: RebuildProgress { reading.progress }
  private let lockTimer: Timer

  private static let lockMilliseconds = 10_000

  init(on loop: EventLoop, _ settings: TransformSettings, logger: Logger, onProgress: @escaping (RebuildReport) -> Void) throws {
    var settings = settings
    // Later requests evict a mailbox's overflow.
    settings.mailboxBound = .max
    self.settings = settings
    shards = Shards(on: loop, settings.store, clientName: "carillon-rebuild", isRebuilding: true)
    markers = Markers(shards)
    rebuild = Rebuild(shards, name: "\(settings.worker)/\(RandomBytes.number())", lockMilliseconds: Self.lockMilliseconds)
    admin = try Admin(settings.kafka, timeoutMilliseconds: 30_000)
    ranges = RebuildRanges(admin, settings.topics, lifetimeMilliseconds: settings.longestLifetime * 1000)
    producer = try Producer(on: loop, settings.kafka)
    let metrics = TransformMetrics(MetricRegistry())
    let outcomes = try Outcomes(on: loop, settings, events: producer, deliveries: producer, metrics: metrics.clients, isSilent: true)
    applications = ApplicationsReader(on: loop, settings.kafka, settings.topics, logger: logger, health: nil)
    notes = EndNotes(on: loop)
    let lane = LaneContext(
      loop: loop, settings: settings, state: LaneState(LanePhase(.running)), shards: shards, notes: notes, health: Health(),
      logger: logger, metrics: metrics)
    let verdicts = JournaledVerdicts()
    pipeline = Pipeline(lane, for: .rebuilding(verdicts), applications, outcomes)
    reading = RebuildReading(lane, pipeline, verdicts, RateLimits(applications, settings), onProgress: onProgress)
    lockTimer = Timer(on: loop)
    lockTimer.handler = { [unowned self] in rebuild.keepLock() }
    shards.onDown = { [unowned self] error in reading.fail(error) }
  }

  /// Fails at the first call that Redis refuses: no write depends on earlier data, so a refusal concerns Redis itself.
  private func watchRefusals() { shards.onRefusal = { [unowned self] error in reading.fail(error) } }

  // MARK: Run

  func run() async throws -> RebuildReport {
    shards.start()
    try await shards.waitUntilUp(withinMilliseconds: settings.startMilliseconds)
    if let refusal = try await SelfCheck(shards).run() { throw StoreError(.refused, refusal) }
    try await checkClock()
    let committed = try await begin()
    defer { lockTimer.stop() }
    watchRefusals()
    try await findIncarnations()
    // Requests of stopped applications came to no mailbox.
    try await applications.start(admin, withinMilliseconds: settings.startMilliseconds)
    try await reading.read(.deadLetters, ranges.recent(of: settings.topics.deadLetters))
    let registered = try await ranges.whole(of: settings.topics.devices)
    try await reading.read(.registrations, registered)
    try await reading.read(.schedules, ranges.whole(of: settings.topics.schedule))
    let requested = try await ranges.requestsAndEvents(committed: committed)
    try await reading.read(.requests, requested, ahead: ranges.recent(of: settings.topics.journal))
    try reading.enter(.markers)
    let ends = Dictionary((registered + requested).map { ($0.0, $0.1.upperBound) }) { first, _ in first }
    try await rebuild.end(progress.markers.all((settings.topics.devices, settings.topics.requests), ends: ends))
    progress.report.phase = .done
    return progress.report
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
    progress.markers.incarnations = noted.mapValues { Marker.incarnation(note: $0.note) }
    let committed = noted.mapValues(\.offset)
    let registered = try await admin.registryEnds(settings.topics)
    guard !committed.isEmpty || !registered.isEmpty else { throw RebuildRefusal.newCluster }
    // An empty Redis has no identity, and no worker claims it. The workers' settings must then agree with these.
    try await identity.claim(shards)
    if let other = try await rebuild.lock() { throw RebuildRefusal.alreadyRunning(other) }
    lockTimer.start(after: Self.lockMilliseconds / 10, repeating: Self.lockMilliseconds / 10)
    try await rebuild.begin()
    return committed
  }

  /// Finds the incarnations of partitions without a note of the group, from the end of the journal.
  private func findIncarnations() async throws {
    let unknown = try await ranges.partitions(of: settings.topics.requests).filter { progress.markers.incarnations[$0] == nil }
    guard !unknown.isEmpty else { return }
    let journal = try await ranges.whole(of: settings.topics.journal).map { name, range in
      (name, max(range.lowerBound, range.upperBound - TopicIncarnations.recordsRead)..<range.upperBound)
    }
    try await reading.read(.incarnations, journal)
    let known = unknown.filter { reading.journalEnd.lastRequests[$0.partition] != nil }
    let ends = try await admin.ends(of: known)
    try await reading.read(
      .incarnations,
      known.compactMap { name in
        guard let offset = reading.journalEnd.lastRequests[name.partition]?.offset, ends[name]?.contains(offset) == true else {
          return nil
        }
        return (name, offset..<offset + 1)
      })
    for name in known {
      let there = progress.markers.takeTimestamp(of: name)
      progress.markers.incarnations[name] = reading.journalEnd.incarnation(of: name.partition, there: there, offsets: ends[name] ?? 0..<0)
    }
  }

  func close() async {
    (shards.onDown, shards.onRefusal) = (nil, nil)
    lockTimer.close()
    await reading.close()
    await admin.close()
    await applications.close()
    await producer.close(withinMilliseconds: 1_000)
    shards.close()
    notes.close()
    await pipeline.close()
  }
}
