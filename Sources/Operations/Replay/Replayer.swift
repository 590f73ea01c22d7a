package import EventLoop
package import Kafka
import Notifications
package import Store
package import Worker

/// The events of a replay.
package enum ReplayNews: Sendable {
  /// The present progress, about once a second.
  case progress(ReplayPlan)
  /// The replay waits for the workers, which are this far behind; nil when it continues.
  case waits(behind: Int64?)
  /// It reads to find the selected records.
  case reading(ReadingProgress)
  /// The number of unfinished requests.
  case unfinished(Int)
  /// The number of requests whose outcome is unknown, because their events or journal are deleted.
  case untold(Int)
  /// The number of records that an earlier process had written but not saved.
  case found(Int)
  /// It is unknown which requests were applied, for this reason.
  case markersUnknown(String)
}

/// How a replay ended.
package enum ReplayEnding: Sendable {
  /// It is complete.
  case complete(ReplayPlan)
  /// It was stopped.
  case stopped(ReplayPlan)
  /// Kafka failed, or the progress could not be saved. It can continue from the last save.
  case failed(any Error, ReplayPlan)
}

/// Replays records of a topic: an actor on a loop.
///
/// It saves its progress once a second. A later process reads the records written since, and continues after them. That works because
/// records of a partition are written in order and without a gap, each with the offset of its source.
package actor Replayer: LoopActor {
  /// The actor's loop.
  package nonisolated let loop: EventLoop
  private let kafka: KafkaConfiguration
  private var rules: RequestRules
  private let settings: ReplaySettings
  private let store: StoreConfiguration?
  private let save: @Sendable (ReplayPlan) throws -> Void
  private let onNews: @Sendable (ReplayNews) -> Void
  private var run: ReplayRun?
  private var isStopped = false
  private var unsaved: (any Error)?

  /// How often it saves, and how often it reads the workers' lag, in milliseconds.
  private static let (saveMilliseconds, behindMilliseconds) = (1_000, 500)
  /// How long it waits at the end for Kafka's reports on written records.
  private static let closeMilliseconds = 65_000

  /// Makes a replayer of a cluster.
  ///
  /// - Parameters:
  ///   - store: the Redis of the mailboxes, for a replay of unfinished requests. For another replay it is optional, and shows which
  ///     requests were applied.
  ///   - save: stores the progress durably. It may block briefly.
  ///   - onNews: called with each event.
  package init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ rules: RequestRules, _ settings: ReplaySettings,
    store: StoreConfiguration? = nil, save: @escaping @Sendable (ReplayPlan) throws -> Void,
    onNews: @escaping @Sendable (ReplayNews) -> Void
  ) {
    (self.loop, self.kafka, self.rules, self.settings, self.store) = (loop, kafka, rules, settings, store)
    (self.save, self.onNews) = (save, onNews)
  }

  /// Ends the replay early; `replay` returns then.
  package func stop() {
    isStopped = true
    run?.stop()
  }

  /// Replays the rest of a plan.
  ///
  /// - Parameter isResumed: whether an earlier process may have written records that it did not save.
  package func replay(_ plan: ReplayPlan, isResumed: Bool) async throws -> ReplayEnding {
    var plan = plan
    rules.cluster = plan.cluster
    if !settings.isDryRun {
      try save(plan)
      if isResumed {
        try await checkIncarnation(of: plan)
        plan = try await caughtUp(plan)
      }
      // These times identify the topic for a later process. The next save stores them.
      if plan.partitions.contains(where: { $0.lastTimestamp == nil }) {
        let times = try await lastTimestamps(of: plan)
        for place in plan.partitions.indices where plan.partitions[place].lastTimestamp == nil {
          plan.partitions[place].lastTimestamp = times[plan.partitions[place].partition]
        }
      }
      if isStopped { return .stopped(plan) }
    }
    let forecast = ReplayForecast(rules: rules, markers: plan.isForecast && !plan.isNew ? await markers(of: plan) : nil)
    let only = plan.isOfUnfinished ? try await Admin.with(kafka) { try await unfinished(plan, $0) } : nil
    if isStopped { return .stopped(plan) }
    let republisher =
      settings.isDryRun
      ? nil
      : try Republisher(
        on: loop, kafka, cluster: plan.cluster, topic: plan.destination, batchBytes: settings.limits.batchBytes(of: plan.destination),
        maximumBytes: 1 << 30)
    let run = ReplayRun(on: loop, plan, settings, forecast, only: only, republisher)
    self.run = run
    if isStopped { run.stop() }
    let timer = Timer(on: loop)
    timer.handler = { [weak self] in self?.assumeIsolated { $0.tick() } }
    timer.start(after: Self.saveMilliseconds, repeating: Self.saveMilliseconds)
    let watching = Task { await watchWorkers(plan) }
    let stretches = plan.partitions.map { part in
      TopicStretch(TopicPartition(plan.topic, part.partition), part.position, part.offsets.upperBound)
    }
    var failure: (any Error)?
    do throws(KafkaError) {
      // A whole second's records in one batch would reach the workers at once.
      let batch = settings.recordsPerSecond.map { min(1_000, max(1, $0 / 20)) } ?? 1_000
      try await TopicReader(on: loop, kafka).read(
        stretches, "what is replayed", in: run, batch: batch, mustBeThere: true, until: { run.isStopping }
      ) {
        run.take($0)
      }
    } catch { failure = error }
    watching.cancel()
    await republisher?.close(withinMilliseconds: Self.closeMilliseconds)
    await watching.value
    timer.close()
    self.run = nil
    return ending(run, failure)
  }

  private func ending(_ run: ReplayRun, _ failure: (any Error)?) -> ReplayEnding {
    var failure = failure ?? run.failure ?? unsaved
    if !settings.isDryRun, unsaved == nil {
      do { try save(run.plan) } catch { failure = failure ?? error }
    }
    if let failure { return .failed(failure, run.plan) }
    return run.plan.isComplete ? .complete(run.plan) : .stopped(run.plan)
  }

  private func tick() {
    guard let run, !run.isStopping else { return }
    onNews(.progress(run.plan))
    guard !settings.isDryRun else { return }
    do { try save(run.plan) } catch {
      unsaved = error
      run.stop()
    }
  }

  // MARK: The workers' lag

  private func watchWorkers(_ plan: ReplayPlan) async {
    guard let maximum = settings.maximumBehind, plan.isOfRequests, !settings.isDryRun, let admin = try? Admin(kafka) else { return }
    let lag = try? GroupLag(on: loop, kafka, group: settings.group, admin)
    var waits = false
    while !Task.isCancelled, let lag, let run {
      if let lags = try? await lag.read(plan.partitions.map { TopicPartition(plan.topic, $0.partition) }) {
        let now = WallClock.milliseconds()
        let behind = lags.map { $0.behind(at: now) }.max() ?? 0
        run.isBehind = behind > maximum
        if run.isBehind != waits { onNews(.waits(behind: run.isBehind ? behind : nil)) }
        waits = run.isBehind
      } else {
        // An unknown lag does not stop the replay, since Kafka's own answers do.
        run.isBehind = false
      }
      try? await Task.sleep(for: .milliseconds(Self.behindMilliseconds))
    }
    await lag?.close()
    await admin.close()
  }

  // MARK: Applied requests

  /// The offset below which all buckets have applied a partition; nil if unknown. A replay does not need Redis, so no error of Redis ends
  /// it.
  private func markers(of plan: ReplayPlan) async -> [Int32: Int64]? {
    guard let store else { return nil }
    do {
      return try await Shards.with(on: loop, store, clientName: "carillon-replay") { shards in
        let identity = ClusterIdentity(kafka: plan.brokers, topicPrefix: rules.topics.prefix, buckets: store.buckets, name: nil)
        let isUsed = try await identity.verify(shards) != .nobodys
        let offsets = isUsed ? try await Markers(shards).appliedOffsets(of: plan.partitions.map(\.partition)) : nil
        if offsets == nil { onNews(.markersUnknown(isUsed ? "Redis has lost what it had" : "no cluster has used this Redis")) }
        return offsets
      }
    } catch {
      onNews(.markersUnknown("\(error)"))
      return nil
    }
  }

  // MARK: Unfinished requests

  private func unfinished(_ plan: ReplayPlan, _ admin: Admin) async throws -> Set<RecordPlace> {
    guard let store else { preconditionFailure("a replay of unfinished requests needs Redis") }
    var audit = AuditSettings()
    audit.published = plan.published
    audit.spillFolder = settings.spillFolder
    audit.grace = settings.grace
    let reader = TopicReader(on: loop, kafka)
    let onNews = onNews
    reader.onProgress = { onNews(.reading($0)) }
    return try await Shards.with(on: loop, store, clientName: "carillon-replay") { shards in
      let search = UnfinishedSearch(rules, audit, plan, admin, reader, shards)
      search.isStopped = { [weak self] in self?.assumeIsolated { $0.isStopped } ?? true }
      try await search.run(group: settings.group) { onNews(.reading($0)) }
      if search.untold > 0 { onNews(.untold(search.untold)) }
      onNews(.unfinished(search.found.count))
      return search.found
    }
  }

  // MARK: The extent of a topic

  /// Counts a topic's records, and reads the times of the oldest and the newest; nil if it has none.
  package func span(of topic: String) async throws -> (count: Int64, times: ClosedRange<Int64>?) {
    let ends = try await Admin.with(kafka) { try await $0.stretches(of: topic) }.filter { !$0.offsets.isEmpty }
    let places = ends.flatMap { [($0.partition, $0.offsets.lowerBound), ($0.partition, $0.offsets.upperBound - 1)] }
    let times = try await timestamps(at: places).values
    let count = ends.reduce(0) { $0 + Int64($1.offsets.count) }
    guard let oldest = times.min(), let newest = times.max() else { return (count, nil) }
    return (count, oldest...newest)
  }

  /// Reads the time of the last record of each partition's range.
  private func lastTimestamps(of plan: ReplayPlan) async throws(KafkaError) -> [Int32: Int64] {
    let places = plan.partitions.filter { !$0.isComplete }.map { (TopicPartition(plan.topic, $0.partition), $0.offsets.upperBound - 1) }
    let times = try await timestamps(at: places)
    return Dictionary(times.map { ($0.key.partition, $0.value) }) { first, _ in first }
  }

  private func timestamps(at places: [(TopicPartition, Int64)]) async throws(KafkaError) -> [RecordPlace: Int64] {
    let found = Gathered([RecordPlace: Int64]())
    try await TopicReader.ofSingleRecords(on: loop, kafka).read(at: places, "where the range ends") { record in
      found.value[RecordPlace(partition: record.partition, offset: record.offset)] = record.timestamp
    }
    return found.value
  }

  // MARK: After an interruption

  /// Refuses a topic that was made again.
  private func checkIncarnation(of plan: ReplayPlan) async throws {
    let times = try await lastTimestamps(of: plan)
    for part in plan.partitions {
      guard let known = part.lastTimestamp, let time = times[part.partition] else { continue }
      if time != known { throw ReplayRefusal.topicMadeAgain(plan.topic) }
    }
  }

  /// Adds the records that an earlier process has written after its last save.
  private func caughtUp(_ plan: ReplayPlan) async throws -> ReplayPlan {
    let topics = plan.partitions.map { TopicPartition(plan.destination, $0.partition) }
    let ends = try await Admin.with(kafka) { try await $0.ends(of: topics) }
    let stretches = zip(plan.partitions, topics).map { part, partition in
      TopicStretch(partition, max(part.written, ends[partition]?.lowerBound ?? 0), ends[partition]?.upperBound ?? 0)
    }
    let found = Gathered(plan)
    let effect: ReplayCount? = plan.isForecast && !plan.isNew ? .unknown : nil
    try await TopicReader(on: loop, kafka).read(stretches, "what was written since", in: nil, until: { [self] in isStopped }) { record in
      guard let offset = ReplayHeader.offset(record, of: plan.run),
        let place = found.value.partitions.firstIndex(where: { $0.partition == record.partition }),
        (found.value.partitions[place].done..<found.value.partitions[place].offsets.upperBound).contains(offset)
      else { return }
      let bytes = (record.key?.count ?? 0) + (record.value?.count ?? 0)
      found.value.partitions[place].found(offset, at: record.offset, bytes: bytes, effect)
    }
    let count = found.value.counts[.written] - plan.counts[.written]
    if count > 0 { onNews(.found(count)) }
    return found.value
  }
}
