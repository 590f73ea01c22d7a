import EventLoop
import Kafka
import Notifications
package import Store
import Worker

/// Publishes requests of a range again.
///
/// It saves its progress once a second. A later process reads the records written since, and continues after them. That works because
/// records of a partition are written in order and without a gap, each with the offset of its source.
extension ClusterTool {
  /// Replays the rest of a plan.
  ///
  /// - Parameters:
  ///   - isResumed: whether an earlier process may have written records that it did not save.
  ///   - store: the Redis of the mailboxes, for a replay of unfinished requests. For another replay it is optional, and shows which
  ///     requests were applied.
  ///   - grace: a younger request is in progress and does not count as unfinished, in milliseconds.
  ///   - spillFolder: for facts of the search for unfinished requests that do not fit into memory.
  ///   - save: stores the progress durably. It may block briefly.
  package func replay(
    _ plan: ReplayPlan, isResumed: Bool, _ settings: RunSettings, _ stop: RunStop, store: StoreConfiguration? = nil, grace: Int64 = 30_000,
    spillFolder: String = "/tmp", save: @escaping @Sendable (ReplayPlan) throws -> Void
  ) async throws -> RunReport {
    var plan = plan
    let isDryRun = settings.isDryRun
    if !isDryRun {
      try save(plan)
      // These times identify the topic for a later process. The next save stores them.
      let times = try await lastTimestamps(of: plan)
      for place in plan.partitions.indices {
        guard let time = times[plan.partitions[place].partition] else { continue }
        if time != plan.partitions[place].lastTimestamp ?? time { throw ReplayRefusal.topicMadeAgain(plan.topic) }
        plan.partitions[place].lastTimestamp = time
      }
      if isResumed { plan = try await caughtUp(plan, stop) }
    }
    let forecast = ReplayForecast(rules: rules, markers: plan.selection.isForecast ? await markers(of: plan, in: store) : nil)
    var audit = AuditSettings()
    (audit.published, audit.grace, audit.spillFolder) = (plan.selection.published, grace, spillFolder)
    let only = plan.selection.isOfUnfinished ? try await unfinished(plan, audit, settings.group, in: store, stop) : nil
    let run = try RepublishingRun(self, cluster: plan.cluster, settings, stop)
    let source = ReplaySource(plan, run, forecast, only: only)
    func saveProgress() {
      guard !isDryRun else { return }
      do { try save(source.plan) } catch { run.fail(error) }
    }
    let partitions = plan.partitions.map { TopicPartition(plan.topic, $0.partition) }
    begin(run, watching: partitions) { [onProgress] in
      onProgress(source.plan.progress(isDryRun ? "reading" : "replaying"))
      saveProgress()
    }
    do {
      let stretches = zip(partitions, plan.partitions).map { TopicStretch($0, $1.position, $1.offsets.upperBound) }
      try await TopicReader(on: loop, kafka).read(
        stretches, "what is replayed", in: run, batch: run.batch, mustBeThere: true, until: { run.isStopping }
      ) {
        source.take($0)
      }
      if !run.isStopping { source.end() }
    } catch {
      run.fail(error)
    }
    await end(run)
    saveProgress()
    var report = source.plan.report
    report.failure = run.failure
    return report
  }

  // MARK: Applied and unfinished requests

  /// The offset below which all buckets have applied a partition; nil if unknown. A replay does not need Redis, so no error of Redis ends
  /// it.
  private func markers(of plan: ReplayPlan, in store: StoreConfiguration?) async -> [Int32: Int64]? {
    func isUnknown(_ reason: String) { onNote("it is unknown which requests were applied before: \(reason)") }
    guard let store else {
      isUnknown("Redis, which shows it, was not given")
      return nil
    }
    do {
      return try await Shards.with(on: loop, store, clientName: "carillon-replay") { shards in
        let identity = ClusterIdentity(kafka: plan.brokers, topicPrefix: rules.topics.prefix, buckets: store.buckets, name: nil)
        let isUsed = try await identity.verify(shards) != .nobodys
        let offsets = isUsed ? try await Markers(shards).appliedOffsets(of: plan.partitions.map(\.partition)) : nil
        if offsets == nil { isUnknown(isUsed ? "Redis has lost what it had" : "no cluster has used this Redis") }
        return offsets
      }
    } catch {
      isUnknown("\(error)")
      return nil
    }
  }

  /// Finds the unfinished requests of a plan.
  private func unfinished(_ plan: ReplayPlan, _ audit: AuditSettings, _ group: String, in store: StoreConfiguration?, _ stop: RunStop)
    async throws -> Set<RecordPlace>
  {
    guard let store else { preconditionFailure("a replay of unfinished requests needs Redis") }
    return try await Admin.with(kafka) { admin in
      try await Shards.with(on: loop, store, clientName: "carillon-replay") { shards in
        let search = UnfinishedSearch(rules, audit, plan, admin, reader, shards)
        search.isStopped = { stop.isSet }
        try await search.run(group: group, onProgress)
        if search.untold > 0 {
          onNote("the outcome of \(ReadableText.count(search.untold, "request")) is unknown: Kafka has deleted their events or journal")
        }
        onNote("\(ReadableText.count(search.found.count, "request")) \(search.found.count == 1 ? "is" : "are") unfinished")
        return search.found
      }
    }
  }

  // MARK: After an interruption

  /// Reads the time of the last record of each partition's range.
  private func lastTimestamps(of plan: ReplayPlan) async throws(KafkaError) -> [Int32: Int64] {
    let places = plan.partitions.filter { !$0.isComplete }.map { (TopicPartition(plan.topic, $0.partition), $0.offsets.upperBound - 1) }
    let found = Gathered([Int32: Int64]())
    try await TopicReader.ofSingleRecords(on: loop, kafka).read(at: places, "where the range ends") { record in
      found.value[record.partition] = record.timestamp
    }
    return found.value
  }

  /// Adds the records that an earlier process has written after its last save.
  private func caughtUp(_ plan: ReplayPlan, _ stop: RunStop) async throws -> ReplayPlan {
    let topics = plan.partitions.map { TopicPartition(plan.topic, $0.partition) }
    let ends = try await Admin.with(kafka) { try await $0.ends(of: topics) }
    let stretches = zip(plan.partitions, topics).map { part, partition in
      TopicStretch(partition, max(part.written, ends[partition]?.lowerBound ?? 0), ends[partition]?.upperBound ?? 0)
    }
    let found = Gathered(plan)
    try await TopicReader(on: loop, kafka).read(stretches, "what was written since", until: { stop.isSet }) { record in
      guard let offset = ReplayHeader.offset(record, of: plan.run),
        let place = found.value.partitions.firstIndex(where: { $0.partition == record.partition }),
        (found.value.partitions[place].done..<found.value.partitions[place].offsets.upperBound).contains(offset)
      else { return }
      found.value.partitions[place].found(offset, at: record.offset)
    }
    let count = found.value.counts[.written] - plan.counts[.written]
    if count > 0 {
      onNote("\(ReadableText.count(count, "record")) \(count == 1 ? "was" : "were") written but not saved before the interruption")
    }
    return found.value
  }
}
