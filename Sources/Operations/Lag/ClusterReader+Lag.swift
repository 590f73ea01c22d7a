import EventLoop
package import Kafka
import Store
import Worker

/// How far the cluster is behind.
extension ClusterReader {
  /// How long a group may rebalance, in milliseconds.
  private static let formingMilliseconds: Int64 = 5_000

  /// Takes a sample.
  ///
  /// - Parameters:
  ///   - moment: the deadline by the steady clock; a running call may exceed it.
  ///   - ofGroupOnly: whether to leave out the lanes, and the topics that the group does not read.
  /// - Throws: if Kafka does not answer. Anything else that is unknown is a gap of the sample.
  package func sample(by moment: Int64 = .max, ofGroupOnly: Bool = false) async throws(KafkaError) -> LagSample {
    let cluster = try await admin.describeCluster()
    func partitions(_ topic: String) -> [TopicPartition] { cluster.topics[topic]?.partitions.map { TopicPartition(topic, $0.id) } ?? [] }
    if groupLag == nil { groupLag = try GroupLag(on: loop, kafka, group: group, admin) }
    var lags: [PartitionLag] = []
    for topic in topics.ofGroup { lags += try await groupLags(of: partitions(topic), by: moment) }
    let logs = ofGroupOnly ? [] : try await logs(topics.ofNoGroup.flatMap { partitions($0) })
    var sample = LagSample(time: WallClock.milliseconds(), moment: SteadyClock.milliseconds(), lags: lags, logs: logs)
    sample.journalPartitions = cluster.topics[topics.journal]?.partitions.count
    sample.gaps = topics.all.filter { cluster.topics[$0] == nil }.map { .topicMissing($0) }
    if cluster.isEmbedded {
      sample.gaps.append(.ownersUntold)
    } else {
      do throws(KafkaError) {
        let found = try await settledMembers(of: cluster.topics[topics.requests]?.partitions.count ?? 0, by: moment)
        if found.isForming { sample.gaps.append(.ownersUnknown("the group is giving out its partitions (\(found.state))")) }
        sample.members = found
      } catch {
        sample.gaps.append(.ownersUnknown("\(error)"))
      }
      do throws(KafkaError) {
        sample.openTransactions = try await openTransactions(in: (topics.ofGroup + [topics.applications]).flatMap { partitions($0) })
      } catch {
        sample.gaps.append(.transactionsUnknown("\(error)"))
      }
    }
    if !ofGroupOnly { await addLanes(to: &sample) }
    return sample
  }

  /// Reads how far the group is behind. It asks again while the coordinator is not ready, as on a broker that has just started.
  private func groupLags(of partitions: [TopicPartition], by moment: Int64) async throws(KafkaError) -> [PartitionLag] {
    let deadline = min(moment, SteadyClock.milliseconds() + Self.formingMilliseconds)
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
    if uncommitted == nil { uncommitted = try Admin(kafka, timeoutMilliseconds: admin.timeoutMilliseconds) }
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
    let deadline = min(moment, SteadyClock.milliseconds() + Self.formingMilliseconds)
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

  private func addLanes(to sample: inout LagSample) async {
    do {
      guard let shards = try await redis() else { return sample.gaps.append(.redisNotGiven) }
      let (lanes, workers) = (try await Lanes(shards).list(), try await Workers(shards).list())
      // A server that does not report its memory counts as having enough.
      if let state = try? await shards.serverState(), state.refusesReports { return sample.gaps.append(.redisFull) }
      (sample.lanes, sample.laneLags) = (lanes, workers.flatMap { FanOutLag.of($0) })
    } catch {
      sample.gaps.append(.redisAway("\(error)"))
    }
  }
}
