package import EventLoop
package import Kafka
import Notifications
package import Store
package import Worker

/// Samples the state of a cluster: an actor on a loop. Only `close` ends it.
package actor ClusterReader: LoopActor {
  /// The actor's loop.
  package nonisolated let loop: EventLoop
  private let kafka: KafkaConfiguration
  private let topics: Topics
  private let group: String
  private let admin: Admin
  private let store: StoreConfiguration?
  private let countMilliseconds: Int
  private let readsApplications: Bool
  private let kafkaMilliseconds: Int64
  /// A client whose ends include the records of open transactions.
  private var uncommitted: Admin?
  private var groupLag: GroupLag?
  /// Made by the first question to Redis.
  private var shards: Shards?

  /// How long Redis may take for an answer, in milliseconds.
  private static let redisMilliseconds = 3_000
  /// How long a group may rebalance, in milliseconds.
  private static let formingMilliseconds: Int64 = 5_000
  /// The keys that Redis counts with one command, and the pause after each in milliseconds: some 10,000 keys a second.
  private static let (countedKeys, pauseMilliseconds) = (Int64(100), 10)

  /// Makes a reader of a cluster. Its first sample connects.
  ///
  /// - Parameters:
  ///   - group: the consumer group of the transform workers.
  ///   - store: nil if Redis is not given.
  ///   - countMilliseconds: the time for counting devices, mailboxes and schedules; 0 leaves them out.
  ///   - readsApplications: whether it reads which applications are stopped or limited.
  ///   - kafkaMilliseconds: how long all questions to Kafka may take. Each may take half of it, so the last one may exceed it.
  package init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics, group: String, _ store: StoreConfiguration?,
    countMilliseconds: Int = 0, readsApplications: Bool = true, kafkaMilliseconds: Int = 8_000
  ) throws(KafkaError) {
    (self.loop, self.kafka, self.topics, self.group, self.countMilliseconds) = (loop, kafka, topics, group, countMilliseconds)
    (self.readsApplications, self.kafkaMilliseconds) = (readsApplications, Int64(kafkaMilliseconds))
    admin = try Admin(kafka, timeoutMilliseconds: Int32(kafkaMilliseconds / 2))
    var store = store
    store?.callDeadlineMilliseconds = Self.redisMilliseconds
    self.store = store
  }

  /// Takes a sample of Kafka and Redis at the same time. What does not answer within seconds counts as away.
  package func look() async -> ClusterSample {
    async let kafka = kafkaState()
    async let redis = redisState()
    var sample = ClusterSample(time: 0, moment: 0, kafka: await kafka, redis: await redis)
    if countMilliseconds > 0, let shards, case .found(var state)? = sample.redis,
      let requests = sample.kafka.value?.cluster.topics[topics.requests]
    {
      state.schedules = await known { try await ScheduleHolders(in: shards, partitions: requests.partitions.count) }
      sample.redis = .found(state)
    }
    (sample.time, sample.moment) = (WallClock.milliseconds(), SteadyClock.milliseconds())
    return sample
  }

  /// Closes the reader.
  package func close() async {
    shards?.close()
    await groupLag?.close()
    await admin.close()
    await uncommitted?.close()
    (shards, groupLag, uncommitted) = (nil, nil, nil)
  }

  /// An answer, or why there is none.
  ///
  /// - Parameter moment: the deadline of Kafka by the steady clock.
  private func known<Value: Sendable>(by moment: Int64 = .max, _ read: () async throws -> Value) async -> Known<Value> {
    do { return .found(try await read()) } catch {
      guard SteadyClock.milliseconds() >= moment else { return .unknown("\(error)") }
      return .unknown("Kafka has not told it within \(ReadableText.duration(milliseconds: kafkaMilliseconds))")
    }
  }

  // MARK: Kafka

  private func kafkaState() async -> Known<KafkaState> {
    let moment = SteadyClock.milliseconds() + kafkaMilliseconds
    let cluster: ClusterDescription
    do throws(KafkaError) { cluster = try await admin.describeCluster() } catch {
      return .unknown("\(kafka.bootstrapServers.joined(separator: ",")): \(error.message)")
    }
    async let lag = lag(of: cluster, by: moment)
    async let settings = settings(of: cluster, by: moment)
    async let applications = restrictedApplications(of: cluster, by: moment)
    return .found(KafkaState(cluster: cluster, settings: await settings, applications: await applications, lag: await lag))
  }

  /// Reads the topics' settings.
  private func settings(of cluster: ClusterDescription, by moment: Int64) async -> Known<[String: TopicSettings]> {
    await known(by: moment) {
      var found: [String: TopicSettings] = [:]
      for topic in topics.all where cluster.topics[topic] != nil && !cluster.isEmbedded {
        let settings = try await asked(by: moment) { try await admin.settings(ofTopic: topic) }
        found[topic] = TopicSettings(
          differences: topics.differences(of: topic, settings: settings),
          minimumInSync: settings["min.insync.replicas"].flatMap { Int($0) })
      }
      return found
    }
  }

  /// Reads which applications are stopped or have a rate limit.
  private func restrictedApplications(of cluster: ClusterDescription, by moment: Int64) async -> Known<[ApplicationEntry]> {
    guard readsApplications, cluster.topics[topics.applications] != nil else { return .found([]) }
    let tool = ClusterTool(on: loop, kafka, RequestRules(topics: topics), silenceMilliseconds: Int(kafkaMilliseconds))
    return await known(by: moment) {
      try await tool.applications(by: moment).filter { $0.stops.open != nil || $0.stops.limits.last != nil }
    }
  }

  /// Asks Kafka, and asks again while its coordinator is not ready, as on a broker that has just started, or the answer is not settled.
  private func asked<Value>(
    by moment: Int64, until isSettled: (Value) -> Bool = { _ in true }, _ question: () async throws -> Value
  ) async throws -> Value {
    let deadline = min(moment, SteadyClock.milliseconds() + Self.formingMilliseconds)
    guard SteadyClock.milliseconds() < moment else { throw KafkaError(.timedOut, "ask Kafka") }
    while true {
      do {
        let value = try await question()
        if isSettled(value) || SteadyClock.milliseconds() >= deadline { return value }
      } catch let error as KafkaError {
        guard error.isRetriable, error.code != .timedOut, SteadyClock.milliseconds() < moment else { throw error }
      }
      await loop.sleep(milliseconds: 250)
    }
  }

  /// Reads how far the topics are read.
  private func lag(of cluster: ClusterDescription, by moment: Int64) async -> Known<LagSample> {
    func partitions(_ topics: [String]) -> [TopicPartition] {
      topics.flatMap { topic in cluster.topics[topic]?.partitions.map { TopicPartition(topic, $0.id) } ?? [] }
    }
    return await known(by: moment) {
      let lag = try groupLag ?? GroupLag(on: loop, kafka, group: group, admin)
      groupLag = lag
      var sample = LagSample(partitions: try await asked(by: moment) { try await lag.read(partitions(topics.ofGroup), by: moment) })
      let others = await known(by: moment) { try await asked(by: moment) { try await logs(partitions(topics.ofNoGroup), by: moment) } }
      sample.partitions += others.value ?? []
      if let reason = others.reason { sample.notes.append(.logsUnknown(reason)) }
      guard !cluster.isEmbedded else {
        sample.notes.append(.ownersUntold)
        return sample
      }
      let requests = partitions([topics.requests])
      // If the group rebalances for too long, its owners are unknown.
      let members = await known(by: moment) {
        try await asked(by: moment) { found in
          !found.isForming && (found.members.isEmpty || Set(found.members.flatMap(\.partitions)).isSuperset(of: requests))
        } _: {
          try await admin.members(of: group)
        }
      }
      sample.members = members.value
      if let state = members.value, state.isForming {
        sample.notes.append(.ownersUnknown("the group is giving out its partitions (\(state.state))"))
      }
      if let reason = members.reason { sample.notes.append(.ownersUnknown(reason)) }
      let open = await known(by: moment) {
        try await asked(by: moment) { try await openTransactions(in: partitions(topics.ofGroup + [topics.applications]), by: moment) }
      }
      sample.openTransactions = open.value ?? []
      if let reason = open.reason { sample.notes.append(.transactionsUnknown(reason)) }
      return sample
    }
  }

  /// Finds the oldest open transaction of each of these partitions.
  private func openTransactions(in partitions: [TopicPartition], by moment: Int64) async throws -> [OpenTransaction] {
    let kafka = kafka.merging(["isolation.level": "read_uncommitted"])
    let uncommitted = try self.uncommitted ?? Admin(kafka, timeoutMilliseconds: admin.timeoutMilliseconds)
    self.uncommitted = uncommitted
    // In this order, records written meanwhile do not look like a transaction.
    let ends = try await uncommitted.ends(of: partitions)
    let stable = try await admin.ends(of: partitions)
    let stretches = partitions.compactMap { partition -> TopicStretch? in
      guard let end = ends[partition]?.upperBound, let last = stable[partition]?.upperBound, last < end else { return nil }
      return TopicStretch(partition, last, end)
    }
    let times = try await TopicReader.ofSingleRecords(on: loop, kafka).firstTimes(in: stretches, "open transactions", by: moment)
    return stretches.compactMap { stretch in
      times[stretch.partition].map {
        OpenTransaction(
          partition: stretch.partition, offset: stretch.offsets.lowerBound, records: Int64(stretch.offsets.count), since: $0)
      }
    }
  }

  /// Reads the logs with the times of their newest records. Kafka answers these times only since version 3.0, so the records are read.
  private func logs(_ partitions: [TopicPartition], by moment: Int64) async throws -> [PartitionLag] {
    let ends = try await admin.ends(of: partitions)
    let stretches = ends.filter { !$0.value.isEmpty }.map { TopicStretch($0.key, $0.value.upperBound - 1, $0.value.upperBound) }
    let newest = try await TopicReader.ofSingleRecords(on: loop, kafka).firstTimes(in: stretches, "the newest records", by: moment)
    return partitions.map { PartitionLag(partition: $0, log: ends[$0] ?? 0..<0, newest: newest[$0]) }
  }

  // MARK: Redis

  private func redisState() async -> Known<RedisState>? {
    guard let store else { return nil }
    let shards = shards ?? Shards(on: loop, store, clientName: "carillon-\(loop.name)")
    if self.shards == nil { shards.start() }
    self.shards = shards
    return await known {
      try await shards.waitUntilUp(withinMilliseconds: Self.redisMilliseconds)
      // Each part is read alone, so that a key of a wrong type or a forbidden command hides only its own part.
      var state = RedisState(
        server: try await shards.serverState(), identity: await known { try await ClusterIdentity.standing(in: shards) },
        workers: await known { try await Workers(shards).list() }, lanes: await known { try await Lanes(shards).list() })
      if countMilliseconds > 0 { state.population = await known { try await population(in: shards) } }
      return state
    }
  }

  /// Counts devices and mailboxes, until all are counted or the time is over.
  ///
  /// Of a larger Redis a part is counted and scaled up. It is a fair sample, since the server places keys by a hash with a random key.
  private func population(in shards: Shards) async throws -> Population.Counts {
    let (population, end) = (Population(shards), SteadyClock.milliseconds() + Int64(countMilliseconds))
    let keys = try await population.keyCount()
    var (place, counts) = (UInt64(0), Population.Counts())
    repeat {
      let page = try await population.page(from: place, keys: Self.countedKeys)
      (place, counts) = (page.next, counts + page.counts)
      await loop.sleep(milliseconds: Self.pauseMilliseconds)
    } while place != 0 && SteadyClock.milliseconds() < end
    return place == 0 ? counts : counts.scaled(toKeys: keys)
  }
}
