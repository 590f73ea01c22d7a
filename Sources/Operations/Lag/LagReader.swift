public import EventLoop
public import Kafka
public import Store
public import Worker

/// Samples how far a cluster is behind: an actor on a loop. Only `close` ends it.
public actor LagReader {
  /// The actor's loop.
  public nonisolated let loop: EventLoop
  /// The loop is its executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let kafka: KafkaConfiguration
  private let topics: Topics
  private let group: String
  private let store: StoreConfiguration?
  private let readsLogs: Bool
  private let admin: Admin
  private let timeoutMilliseconds: Int32
  /// A client whose ends include the records of open transactions.
  private var uncommitted: Admin?
  private var groupLag: GroupLag?
  private var shards: Shards?

  /// How long Redis may take for an answer, and how long a group may rebalance, in milliseconds.
  private static let (redisMilliseconds, formingMilliseconds) = (2_000, 5_000)

  /// Makes a reader of a cluster. Its first sample connects.
  ///
  /// - Parameters:
  ///   - group: the consumer group of the transform workers.
  ///   - store: nil if Redis is not given.
  ///   - readsLogs: whether to read the newest record of each partition that the group does not read.
  ///   - timeoutMilliseconds: how long Kafka may take for an answer.
  public init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics, group: String, store: StoreConfiguration?, readsLogs: Bool = true,
    timeoutMilliseconds: Int32 = Admin.standardMilliseconds
  ) throws(KafkaError) {
    (self.loop, self.kafka, self.topics, self.group, self.store) = (loop, kafka, topics, group, store)
    (self.readsLogs, self.timeoutMilliseconds) = (readsLogs, timeoutMilliseconds)
    admin = try Admin(kafka, timeoutMilliseconds: timeoutMilliseconds)
  }

  /// Takes a sample.
  ///
  /// - Parameter moment: the deadline by the steady clock; a running call may exceed it.
  /// - Throws: if Kafka does not answer. Anything else that is unknown is a gap of the sample.
  public func sample(by moment: Int64 = .max) async throws(KafkaError) -> LagSample {
    let cluster = try await admin.describeCluster()
    var gaps = topics.all.filter { cluster.topics[$0] == nil }.map { LagGap.topicMissing($0) }
    func partitions(_ topic: String) -> [TopicPartition] { cluster.topics[topic]?.partitions.map { TopicPartition(topic, $0.id) } ?? [] }
    if groupLag == nil { groupLag = try GroupLag(on: loop, kafka, group: group, admin) }
    var lags: [PartitionLag] = []
    for topic in topics.ofGroup { lags += try await groupLags(of: partitions(topic), by: moment) }
    let logs = readsLogs ? try await logs(topics.ofNoGroup.flatMap { partitions($0) }) : []
    var members: GroupMembers?
    if cluster.isEmbedded {
      gaps.append(.ownersUntold)
    } else {
      do throws(KafkaError) {
        let found = try await settledMembers(of: cluster.topics[topics.requests]?.partitions.count ?? 0, by: moment)
        if found.isForming { gaps.append(.ownersUnknown("the group is giving out its partitions (\(found.state))")) }
        members = found
      } catch {
        gaps.append(.ownersUnknown("\(error)"))
      }
    }
    var lanes: (living: [Lanes.Listing], lags: [FanOutLag])?
    do throws(LaneGap) { lanes = try await self.lanes() } catch { gaps.append(error.gap) }
    var sample = LagSample(
      time: WallClock.milliseconds(), moment: SteadyClock.milliseconds(), lags: lags, logs: logs, members: members, lanes: lanes?.living)
    sample.laneLags = lanes?.lags ?? []
    if !cluster.isEmbedded {
      do throws(KafkaError) {
        sample.openTransactions = try await openTransactions(in: (topics.ofGroup + [topics.applications]).flatMap { partitions($0) })
      } catch {
        gaps.append(.transactionsUnknown("\(error)"))
      }
    }
    sample.journalPartitions = cluster.topics[topics.journal]?.partitions.count
    sample.gaps = gaps
    return sample
  }

  /// Closes the reader.
  public func close() async {
    shards?.close()
    await groupLag?.close()
    await admin.close()
    await uncommitted?.close()
    (shards, groupLag, uncommitted) = (nil, nil, nil)
  }

  /// Reads how far the group is behind. It asks again while the coordinator is not ready, as on a broker that has just started.
  private func groupLags(of partitions: [TopicPartition], by moment: Int64) async throws(KafkaError) -> [PartitionLag] {
    let deadline = min(moment, SteadyClock.milliseconds() + Int64(Self.formingMilliseconds))
    while true {
      guard SteadyClock.milliseconds() < moment else { throw KafkaError(.timedOut, "ask how far group \(group) is") }
      do throws(KafkaError) {
        return try await groupLag?.read(partitions, by: moment) ?? []
      } catch {
        guard error.isRetriable, error.code != .timedOut, SteadyClock.milliseconds() < deadline else { throw error }
      }
      await loop.sleep(milliseconds: 250)
    }
  }

  /// Finds the oldest open transaction of each of these partitions.
  private func openTransactions(in partitions: [TopicPartition]) async throws(KafkaError) -> [OpenTransaction] {
    let kafka = kafka.merging(["isolation.level": "read_uncommitted"])
    if uncommitted == nil { uncommitted = try Admin(kafka, timeoutMilliseconds: timeoutMilliseconds) }
    guard let uncommitted else { return [] }
    // In this order, records written meanwhile do not look like a transaction.
    let ends = try await uncommitted.ends(of: partitions)
    let stable = try await admin.ends(of: partitions)
    let stretches = partitions.compactMap { partition -> TopicStretch? in
      guard let end = ends[partition]?.upperBound, let last = stable[partition]?.upperBound, last < end else { return nil }
      return TopicStretch(partition, last, end)
    }
    var open: [TopicPartition: OpenTransaction] = [:]
    let reader = TopicReader.ofSingleRecords(on: loop, kafka)
    try await reader.read(stretches, "open transactions", in: nil, until: { open.count == stretches.count }) { record in
      let partition = TopicPartition(record.topic, record.partition)
      guard open[partition] == nil, let stretch = stretches.first(where: { $0.partition == partition }) else { return }
      open[partition] = OpenTransaction(
        partition: partition, offset: stretch.offsets.lowerBound, records: Int64(stretch.offsets.count), since: record.timestamp)
    }
    return partitions.compactMap { open[$0] }
  }

  /// Reads the logs with the times of their newest records. Kafka answers these times only since version 3.0, so the records are read.
  private func logs(_ partitions: [TopicPartition]) async throws(KafkaError) -> [PartitionLog] {
    let ends = try await admin.ends(of: partitions)
    var newest: [TopicPartition: Int64] = [:]
    let stretches = ends.filter { !$0.value.isEmpty }.map { TopicStretch($0.key, $0.value.upperBound - 1, $0.value.upperBound) }
    let reader = TopicReader.ofSingleRecords(on: loop, kafka)
    try await reader.read(stretches, "the newest records") { newest[TopicPartition($0.topic, $0.partition)] = $0.timestamp }
    return partitions.map { PartitionLog(partition: $0, offsets: ends[$0] ?? 0..<0, newest: newest[$0]) }
  }

  /// Reads the group's members after it has assigned its partitions. If it rebalances for too long, some partitions have no owner.
  private func settledMembers(of partitions: Int, by moment: Int64) async throws(KafkaError) -> GroupMembers {
    let deadline = min(moment, SteadyClock.milliseconds() + Int64(Self.formingMilliseconds))
    while true {
      let found: Result<GroupMembers, KafkaError>
      do throws(KafkaError) { found = .success(try await admin.members(of: group)) } catch { found = .failure(error) }
      switch found {
      case .success(let members):
        let owned = members.members.reduce(0) { $0 + $1.partitions.count { $0.topic == topics.requests } }
        let isSettled = !members.isForming && (members.members.isEmpty || owned >= partitions)
        if isSettled || SteadyClock.milliseconds() >= deadline { return members }
      case .failure(let error): if !error.isRetriable || SteadyClock.milliseconds() >= deadline { throw error }
      }
      await loop.sleep(milliseconds: 250)
    }
  }

  private struct LaneGap: Error { let gap: LagGap }

  private func lanes() async throws(LaneGap) -> (living: [Lanes.Listing], lags: [FanOutLag]) {
    guard let store else { throw LaneGap(gap: .redisNotGiven) }
    let shards = shards ?? Shards(on: loop, store, clientName: "carillon-lag")
    if self.shards == nil { shards.start() }
    self.shards = shards
    let lanes: (living: [Lanes.Listing], lags: [FanOutLag])
    do {
      try await shards.waitUntilUp(withinMilliseconds: Self.redisMilliseconds)
      lanes = (try await Lanes(shards).list(), try await Workers(shards).list().flatMap { FanOutLag.of($0) })
    } catch {
      throw LaneGap(gap: .redisAway("\(error)"))
    }
    // A server that does not report its memory counts as having enough.
    if let state = try? await shards.serverState(), state.refusesReports { throw LaneGap(gap: .redisFull) }
    return lanes
  }
}
