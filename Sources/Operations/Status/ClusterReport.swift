package import Kafka
import Notifications
package import Store
import Worker

/// The judgement on a sample. A value.
package struct ClusterReport: Sendable {
  /// The sample.
  package var sample: ClusterSample
  /// The cluster that it is of.
  package var cluster: ReportedCluster
  /// The state of each topic that grows with the load: first those of the group, then deliveries, then those that nobody has to read.
  package var topics: [TopicLag] = []
  /// The workers by name; empty if they cannot be read.
  package var workers: [Workers.Listing]
  /// The living fan-out lanes; nil if they are unknown.
  package var lanes: [Lanes.Listing]?
  /// The lags of fan-out lanes, by their workers' reports; of a worker with many lanes only those that are furthest behind.
  package var laneLags: [FanOutLag]
  /// What was found: problems and notes.
  package var findings: [Finding] = []

  /// Judges a sample.
  init(_ sample: ClusterSample, _ cluster: ReportedCluster, _ rates: [TopicPartition: LagRates] = [:]) {
    (self.sample, self.cluster) = (sample, cluster)
    let redis = sample.redis?.value
    workers = redis?.workers.value ?? []
    laneLags = workers.flatMap { FanOutLag.of($0) }
    // A full server may refuse the heartbeats of living lanes.
    lanes = redis?.server.refusesReports == true ? nil : redis?.lanes.value?.filter { $0.silentMilliseconds < cluster.laneLifetime }
    if let lag = sample.kafka.value?.lag.value { topics = topics(of: lag, rates) }
    judgeKafka()
    judgeRedis()
    judgeWorkers()
  }

  /// The problems. Any of them sets the exit code 1.
  package var problems: [Finding] { findings.filter(\.isProblem) }
  /// Facts that are not problems.
  package var notes: [Finding] { findings.filter { !$0.isProblem } }
  /// Whether neither Kafka nor Redis has answered.
  package var isAway: Bool { sample.kafka.value == nil && sample.redis?.value == nil }
  /// The group's members; nil if they are unknown.
  package var members: GroupMembers? { sample.kafka.value?.lag.value?.members }

  private mutating func note(_ found: Finding?...) { findings += found.compactMap(\.self) }

  private mutating func note(_ partitions: [Int32], _ finding: ([Int32]) -> Finding) {
    if !partitions.isEmpty { note(finding(partitions)) }
  }

  // MARK: Topics

  private func topics(of lag: LagSample, _ rates: [TopicPartition: LagRates]) -> [TopicLag] {
    let (owners, names) = (owners(lag), cluster.topics)
    let topics = (names.ofGroup + names.ofNoGroup).map { topic in
      let partitions = lag.partitions.filter { $0.partition.topic == topic }.map { lag in
        let (rates, number) = (rates[lag.partition], lag.partition.partition)
        if names.ofGroup.contains(topic) {
          return PartitionState(
            lag: lag, state: ReadState(lag, rates, at: sample.time), readers: owners.map { $0[lag.partition].map { [$0] } ?? [] })
        }
        let isDelivered = topic == names.deliveries
        let lanes = isDelivered ? lanes?.filter { $0.partition == number }.map(\.name.text) : nil
        let worst = isDelivered ? laneLags.filter { $0.partition == number }.max { $0.rank < $1.rank } : nil
        return PartitionState(lag: lag, state: ReadState(lag, rates, worst), readers: lanes)
      }
      return TopicLag(topic: topic, partitions: partitions)
    }
    return topics.filter { !$0.partitions.isEmpty }
  }

  /// The owners of the group's partitions: the lane's name in the group, and its host; nil if unknown.
  ///
  /// The group assigns only the requests. A partition of devices belongs to the owner of the requests of the same number, modulo the
  /// partitions of requests that the journal has.
  private func owners(_ lag: LagSample) -> [TopicPartition: String]? {
    guard let members = lag.members, !members.isForming else { return nil }
    var owners: [TopicPartition: String] = [:]
    for member in members.members {
      for partition in member.partitions { owners[partition] = "\(member.client) \(member.host.drop { $0 == "/" })" }
    }
    let all = lag.partitions.count { $0.partition.topic == cluster.topics.requests }
    let requests = min(all, max(1, journalPartitions ?? all))
    for each in lag.partitions where each.partition.topic == cluster.topics.devices && requests > 0 {
      owners[each.partition] = owners[TopicPartition(cluster.topics.requests, each.partition.partition % Int32(requests))]
    }
    return owners
  }

  private var journalPartitions: Int? { sample.kafka.value?.cluster.topics[cluster.topics.journal]?.partitions.count }

  // MARK: Kafka

  private mutating func judgeKafka() {
    guard let kafka = sample.kafka.value else { return note(.kafkaAway(sample.kafka.reason ?? "")) }
    let (settings, names) = (kafka.settings.value ?? [:], cluster.topics)
    for topic in names.all {
      guard let found = kafka.cluster.topics[topic] else {
        note(.topicMissing(topic))
        continue
      }
      if let differences = settings[topic]?.differences, !differences.isEmpty { note(.topicDiffers(topic, differences)) }
      note(found.partitions.filter { $0.leader < 0 }.map(\.id)) { .leaderless(topic, $0) }
      note(found.partitions.filter { $0.leader >= 0 && $0.inSync < $0.replicas }.map(\.id)) { .replicasBehind(topic, $0) }
    }
    let limits = WriteLimits(minimumInSync: settings.compactMapValues(\.minimumInSync))
    for fault in WriteFault.faults(of: names.all, in: kafka.cluster, limits) {
      // Partitions without a leader are a problem of their own above.
      if case .tooFewInSync = fault.cause { note(.unwritable(fault)) }
    }
    if let count = journalPartitions {
      note((kafka.cluster.topics[names.requests]?.partitions ?? []).map(\.id).filter { Int($0) >= count }.sorted()) {
        .unjournaled(topic: names.requests, partitions: $0, journal: names.journal, count: count)
      }
    }
    note(kafka.settings.reason.map { .settingsUnknown($0) }, kafka.cluster.isEmbedded ? .producersTime(names.requests) : nil)
    judgeApplications(kafka.applications)
    switch kafka.lag {
    case .found(let lag): judgeTopics(lag)
    case .unknown(let reason): note(.lagUnknown(reason))
    }
  }

  /// The most stopped and limited applications that are named.
  private static let maximumApplications = 20

  private mutating func judgeApplications(_ applications: Known<[ApplicationEntry]>) {
    let found = applications.value ?? []
    let restricted =
      found.compactMap { entry in entry.stops.open.map { Finding.stopped(entry.application, $0) } }
      + found.compactMap { entry in entry.stops.limits.last.map { .limited(entry.application, $0) } }
    findings += restricted.prefix(Self.maximumApplications)
    if restricted.count > Self.maximumApplications { note(.moreApplications(restricted.count - Self.maximumApplications)) }
    note(applications.reason.map { .applicationsUnknown($0) })
  }

  /// An older open transaction is a problem, since its producer is probably gone.
  private static let transactionMilliseconds: Int64 = 10_000

  private mutating func judgeTopics(_ lag: LagSample) {
    for topic in topics where cluster.topics.ofGroup.contains(topic.topic) {
      note(topic.withoutReader) { .ownerless(topic: topic.topic, partitions: $0) }
      for lag in topic.partitions.map(\.lag) {
        guard let committed = lag.committed else { continue }
        if lag.missed > 0 { note(.missed(lag.partition, committed..<lag.log.lowerBound)) }
        if committed > lag.log.upperBound { note(.beyondEnd(lag.partition, committed: committed, end: lag.log.upperBound)) }
      }
    }
    findings += lag.openTransactions.filter { sample.time - $0.since >= Self.transactionMilliseconds }.map { .openTransaction($0) }
    findings += lag.notes
    judgeDeliveries()
  }

  private mutating func judgeDeliveries() {
    guard let lanes, let topic = topics.first(where: { $0.topic == cluster.topics.deliveries }) else { return }
    let read = Set(lanes.map(\.partition))
    // These lanes have old records, and no heartbeat, though their process reports.
    let still = laneLags.filter { $0.records > 0 && $0.behind ?? 0 >= cluster.laneLifetime && !read.contains($0.partition) }
    findings += still.map { .laneStands(topic: topic.topic, $0) }
    let unread = topic.partitions.filter { $0.readers?.isEmpty == true && $0.state.in ?? 0 > 0 }.map(\.lag.partition.partition).filter {
      number in !still.contains { $0.partition == number }
    }
    note(unread) { .unread(topic: topic.topic, partitions: $0) }
  }

  // MARK: Redis

  private mutating func judgeRedis() {
    guard let known = sample.redis else { return note(.redisNotGiven) }
    guard let redis = known.value else { return note(.redisAway(known.reason ?? "")) }
    findings += redis.server.errors.map { .redisUnsuitable($0) }
    if let keys = redis.server.evictedKeys, keys > 0 { note(.evicted(keys: keys)) }
    if let used = redis.server.usedMemory, let maximum = redis.server.maximumMemory, maximum > 0, used / 4 > maximum / 5 {
      note(.memoryShort(used: used, maximum: maximum))
    }
    if redis.server.isSaved == false { note(.notSaved) }
    note(
      redis.identity.reason.map { .unreadable("identity", $0) }, redis.workers.reason.map { .unreadable("workers", $0) },
      redis.lanes.reason.map { .unreadable("lanes", $0) })
    if case .found(let identity?) = redis.identity {
      // If Kafka is down, only the topics can be compared.
      let kafka = sample.kafka.value.map { $0.cluster.id ?? "" } ?? identity.kafka
      let own = ClusterIdentity(kafka: kafka, topicPrefix: cluster.topics.prefix, buckets: cluster.buckets, name: cluster.name)
      if !own.differences(from: identity).isEmpty {
        note(.otherCluster(found: identity, own: own))
      } else {
        note(own.layoutRefusal(in: identity).map { .redisUnsuitable($0) })
      }
    }
    findings += redis.server.remarks.map { .redis($0) }
    note(redis.population?.reason.map { .populationUnknown($0) })
  }

  // MARK: Workers

  private mutating func judgeWorkers() {
    guard let redis = sample.redis?.value else {
      if sample.redis != nil, sample.kafka.value != nil { note(.workersUnknown) }
      return
    }
    for worker in workers {
      switch worker.standing {
      case .ready: break
      case .unready: note(.unready(worker))
      case .draining: note(.draining(worker.name))
      case .silent: note(.silent(worker))
      case .unreadable: note(.unreadable(worker.name))
      }
      // A greater difference makes the worker not ready, which is a problem of its own.
      if worker.standing == .ready, let ahead = worker.report?.clockAhead, abs(ahead) > ClockTrust.toleratedMilliseconds {
        note(.clockDiffers(worker.name, ahead: ahead))
      }
    }
    // A silent worker may run and be refused by Redis, which is a problem above. A full Redis takes no reports at all.
    guard redis.workers.value != nil, !redis.server.refusesReports else { return }
    for (role, others) in [("transform", members?.members.count ?? 0), ("fan-out", lanes?.count ?? 1)] {
      // Members of the group, and living lanes, are workers that could not report themselves yet.
      if others == 0, !workers.contains(where: { $0.roles.contains(role) }) { note(.noWorker(role)) }
    }
    let versions = Set(workers.filter { $0.standing != .silent }.compactMap { $0.report?.version }).sorted()
    if versions.count > 1 { note(.versions(versions)) }
    findings += SettingDifference.among(workers).map { .settingDiffers($0) }
  }
}

extension ServerState {
  /// Whether the server may refuse reports. In a nearly full one the memory of each call takes the rest.
  var refusesReports: Bool {
    if let usedMemory, let maximumMemory { maximumMemory > 0 && usedMemory >= maximumMemory - maximumMemory / 50 } else { false }
  }
}

/// How a worker stands.
extension Workers.Listing {
  /// How a worker stands.
  package enum Standing: String, Sendable, Hashable {
    /// It is ready for work.
    case ready
    /// A condition keeps it from its work.
    case unready = "not-ready"
    /// It is draining.
    case draining
    /// It is silent and has not left in order.
    case silent
    /// Its report cannot be read.
    case unreadable
  }

  /// How it stands.
  package var standing: Standing {
    guard !isSilent else { return .silent }
    return report.map { $0.isReady ? .ready : $0.isDraining ? .draining : .unready } ?? .unreadable
  }

  /// The stages that it runs.
  package var roles: [String] { report?.roles ?? [] }

  /// How long it has run, in milliseconds by its own clock. A silent one counts until its last report.
  package var age: Int64? { report.map { max(0, $0.written - $0.started) + (standing == .silent ? 0 : silentMilliseconds) } }

  /// How long a condition has not been ready, in milliseconds by the worker's clock.
  package func age(of condition: WorkerReport.Condition) -> Int64 {
    max(0, (report?.written ?? condition.since) - condition.since) + silentMilliseconds
  }
}
