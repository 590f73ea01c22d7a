import Kafka
package import Notifications
package import Store
package import Worker

/// The judgement on a sample: problems and notes. A value.
package struct StatusReport: Sendable {
  /// The sample.
  package var sample: StatusSample
  /// The names of the topics.
  package var topics: Topics
  /// The consumer group of the transform workers.
  package var group: String
  private let buckets: Int?
  private let cluster: String?
  /// The workers by name; empty if they cannot be read.
  package var workers: [Workers.Listing]
  /// The living fan-out lanes; nil if they cannot be read.
  package var lanes: [Lanes.Listing]?
  /// The lags of fan-out lanes, by their workers' reports.
  package var laneLags: [FanOutLag]
  /// The problems. Any of them sets the exit code 1.
  package var problems: [StatusProblem]
  /// Facts that are not problems.
  package var notes: [StatusNote]

  /// Judges a sample.
  ///
  /// - Parameters:
  ///   - laneLifetimeMilliseconds: how long a silent fan-out lane counts as alive.
  ///   - buckets: the number in the command's settings; nil if it was not given and is not compared. `cluster` likewise.
  package init(
    _ sample: StatusSample, _ topics: Topics, group: String, laneLifetimeMilliseconds: Int, buckets: Int? = nil, cluster: String? = nil
  ) {
    (self.sample, self.topics, self.group) = (sample, topics, group)
    (self.buckets, self.cluster) = (buckets, cluster)
    workers = sample.redis.value?.workers.value ?? []
    lanes = sample.redis.value?.lanes.value?.filter { $0.silentMilliseconds < Int64(laneLifetimeMilliseconds) }
    laneLags = sample.redis.value?.workers.value?.flatMap { FanOutLag.of($0) } ?? []
    (problems, notes) = ([], [])
    judgeKafka()
    judgeRedis()
    judgeWorkers()
    let still = lanes.map { FanOutLag.still(laneLags, living: $0, lifetimeMilliseconds: Int64(laneLifetimeMilliseconds)) } ?? []
    problems += still.map { .lag(.laneStands(topic: topics.deliveries, $0)) }
  }

  /// Whether neither Kafka nor Redis has answered.
  package var isAway: Bool { sample.kafka.value == nil && sample.redis.value == nil }

  /// The fan-out lane that is furthest behind; nil if no worker reports one.
  package var worstLane: FanOutLag? { laneLags.max { $0.rank < $1.rank } }

  /// Partitions of `deliveries` that the living lanes of a worker read.
  package func partitions(of worker: Workers.Listing) -> [Int32] {
    (lanes ?? []).filter { Self.isLane($0.name, of: worker.name) }.map(\.partition)
  }

  /// A lane's name is its worker's name with a number, or with its role in 'carillon up'.
  private static func isLane(_ name: Name, of worker: Name) -> Bool {
    guard name.utf8.starts(with: "\(worker)/".utf8) else { return false }
    let rest = name.utf8.dropFirst(worker.utf8.count + 1)
    return rest.elementsEqual("fan-out".utf8)
      || !rest.isEmpty && rest.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }

  // MARK: Kafka

  private mutating func judgeKafka() {
    guard let kafka = sample.kafka.value else { return problems.append(.kafkaAway(sample.kafka.reason ?? "")) }
    for topic in topics.all {
      guard let found = kafka.cluster.topics[topic] else {
        problems.append(.topicMissing(topic))
        continue
      }
      let differences = kafka.differences[topic] ?? []
      if !differences.isEmpty { problems.append(.topicDiffers(topic, differences)) }
      let leaderless = found.partitions.filter { $0.leader < 0 }.map(\.id)
      if !leaderless.isEmpty { problems.append(.leaderless(topic, leaderless)) }
      let behind = found.partitions.filter { $0.leader >= 0 && $0.inSync < $0.replicas }.map(\.id)
      if !behind.isEmpty { problems.append(.replicasBehind(topic, behind)) }
    }
    let limits = WriteLimits(minimumInSync: kafka.minimumInSync)
    for fault in WriteFault.faults(of: topics.all, in: kafka.cluster, limits) {
      // Partitions without a leader are a problem of their own above.
      if case .tooFewInSync = fault.cause { problems.append(.unwritable(fault)) }
    }
    let journal = LagProblem(
      topics, requests: kafka.cluster.topics[topics.requests]?.partitions.map(\.id) ?? [],
      journal: kafka.cluster.topics[topics.journal]?.partitions.count)
    if let journal { problems.append(.lag(journal)) }
    if let reason = kafka.settingsUnknown { notes.append(.settingsUnknown(reason)) }
    if kafka.cluster.isEmbedded { notes.append(.producersTime(topics.requests)) }
    switch kafka.applications {
    case .found(let found):
      let stopped = found.compactMap { entry in entry.stops.open.map { StatusNote.stopped(entry.application, $0) } }
      notes += stopped.prefix(Self.maximumApplications)
      if stopped.count > Self.maximumApplications { notes.append(.moreStopped(stopped.count - Self.maximumApplications)) }
      let limited = found.compactMap { entry in
        entry.stops.limits.last.map { StatusNote.limited(entry.application, $0) }
      }
      notes += limited.prefix(Self.maximumApplications)
      if limited.count > Self.maximumApplications { notes.append(.moreLimited(limited.count - Self.maximumApplications)) }
    case .unknown(let reason): notes.append(.applicationsUnknown(reason))
    }
    switch kafka.lag {
    case .found(let lag):
      // Without the problems of lanes, which are judged here.
      problems += lag.problems.filter { $0 != journal }.map { .lag($0) }
      notes += lag.gaps.compactMap { gap in
        switch gap {
        case .topicMissing, .redisNotGiven, .redisAway, .redisFull: nil
        case .ownersUntold, .ownersUnknown, .transactionsUnknown: .lag(gap)
        }
      }
    case .unknown(let reason): notes.append(.lagUnknown(reason))
    }
  }

  /// The most stopped applications that are named, and the most limited ones.
  private static let maximumApplications = 20

  // MARK: Redis

  private mutating func judgeRedis() {
    guard let redis = sample.redis.value else { return problems.append(.redisAway(sample.redis.reason ?? "")) }
    problems += redis.server.errors.map { .redisUnsuitable($0) }
    if let keys = redis.server.evictedKeys, keys > 0 { problems.append(.evicted(keys: keys)) }
    if let used = redis.server.usedMemory, let maximum = redis.server.maximumMemory, maximum > 0, used / 4 > maximum / 5 {
      problems.append(.memoryShort(used: used, maximum: maximum))
    }
    if redis.server.isSaved == false { problems.append(.notSaved) }
    if let reason = redis.identity.reason { problems.append(.unreadable(.identity, reason)) }
    if let reason = redis.workers.reason { problems.append(.unreadable(.workers, reason)) }
    if let reason = redis.lanes.reason { problems.append(.unreadable(.lanes, reason)) }
    if case .found(let identity?) = redis.identity {
      // If Kafka is down, only the topics can be compared.
      let kafka = sample.kafka.value.map { $0.cluster.id ?? "" } ?? identity.kafka
      let own = ClusterIdentity(kafka: kafka, topicPrefix: topics.prefix, buckets: buckets, name: cluster)
      if !own.differences(from: identity).isEmpty {
        problems.append(.otherCluster(found: identity, own: own))
      } else if let refusal = own.layoutRefusal(in: identity) {
        problems.append(.redisUnsuitable(refusal))
      }
    }
    notes += redis.server.remarks.map { .redis($0) }
    if let reason = redis.population?.reason { notes.append(.populationUnknown(reason)) }
  }

  // MARK: Workers

  private mutating func judgeWorkers() {
    guard sample.redis.value != nil else {
      if sample.kafka.value != nil { notes.append(.workersUnknown) }
      return
    }
    for worker in workers {
      switch worker.standing {
      case .ready: break
      case .unready: problems.append(.unready(worker))
      case .draining: notes.append(.draining(worker.name))
      case .silent: problems.append(.silent(worker))
      case .unreadable: notes.append(.unreadable(worker.name))
      }
      // A greater difference makes the worker not ready, which is a problem of its own.
      if worker.standing == .ready, let ahead = worker.report?.clockAhead, abs(ahead) > ClockTrust.toleratedMilliseconds {
        problems.append(.clockDiffers(worker.name, ahead: ahead))
      }
    }
    guard sample.redis.value?.workers.value != nil else { return }
    judgeRole("transform", others: sample.kafka.value?.lag.value?.members?.members.count ?? 0)
    if let lanes { judgeRole("fan-out", others: lanes.count) }
    let versions = Set(workers.filter { $0.standing != .silent }.compactMap { $0.report?.version }).sorted()
    if versions.count > 1 { notes.append(.versions(versions)) }
    notes += SettingDifference.among(sample.redis.value?.workers.value ?? []).map { .settingDiffers($0) }
    if workers.count >= Workers.maximum { notes.append(.manyWorkers) }
  }

  /// Judges whether a role has a worker.
  ///
  /// - Parameter others: members of the group, or lanes, which also exist without a report.
  private mutating func judgeRole(_ role: String, others: Int) {
    // A silent worker may run and be refused by Redis, which is a problem above. A full Redis takes no reports at all.
    guard !workers.contains(where: { $0.roles.contains(role) }), sample.redis.value?.server.refusesReports != true else { return }
    // A worker of an earlier version does not report itself.
    if others > 0 { notes.append(.unreported(role, others)) } else { problems.append(.noWorker(role)) }
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

/// A problem of a cluster.
package enum StatusProblem: Sendable, Hashable {
  /// Kafka does not answer.
  case kafkaAway(String)
  /// Redis does not answer.
  case redisAway(String)
  /// A topic is missing.
  case topicMissing(String)
  /// A topic has wrong settings.
  case topicDiffers(String, [String])
  /// Partitions without a leader.
  case leaderless(String, [Int32])
  /// Partitions with copies that are not in sync.
  case replicasBehind(String, [Int32])
  /// Partitions that nobody can write to, because too few copies are in sync.
  case unwritable(WriteFault)
  /// A problem of the group or its topics.
  case lag(LagProblem)
  /// A part of Redis cannot be read, though Redis answers.
  case unreadable(StatusPart, String)
  /// Redis cannot be used.
  case redisUnsuitable(String)
  /// Redis has evicted keys.
  case evicted(keys: Int64)
  /// Redis has used more than four fifths of its memory.
  case memoryShort(used: Int64, maximum: Int64)
  /// Redis could not save its data to disk.
  case notSaved
  /// Redis belongs to another cluster.
  case otherCluster(found: ClusterIdentity, own: ClusterIdentity)
  /// A worker is not ready.
  case unready(Workers.Listing)
  /// A worker's clock is this many milliseconds ahead of Redis' clock; below zero it is behind.
  case clockDiffers(Name, ahead: Int64)
  /// A worker is silent.
  case silent(Workers.Listing)
  /// A role has no worker.
  case noWorker(String)
}

/// A part of Redis that is read alone, in words.
package enum StatusPart: String, Sendable, Hashable {
  /// The cluster that the Redis belongs to.
  case identity = "whose Redis this is"
  /// The workers' reports.
  case workers = "what the workers report of themselves to Redis"
  /// The fan-out lanes.
  case lanes = "which fan-out lanes live"
}

/// A fact that is not a problem.
package enum StatusNote: Sendable, Hashable {
  /// Workers of these versions run.
  case versions([String])
  /// Workers have different values of a shared setting.
  case settingDiffers(SettingDifference)
  /// A worker is draining.
  case draining(Name)
  /// A worker's report cannot be read.
  case unreadable(Name)
  /// This many workers of a role, or lanes, do not report themselves.
  case unreported(String, Int)
  /// There are so many workers that some may be missing here.
  case manyWorkers
  /// Redis is down, so the workers' reports are unknown.
  case workersUnknown
  /// An improvement for Redis, or something unknown about it.
  case redis(String)
  /// Devices and mailboxes could not be counted.
  case populationUnknown(String)
  /// An application is stopped.
  case stopped(Name, ApplicationStop)
  /// This many more are stopped.
  case moreStopped(Int)
  /// An application has a rate limit, which may begin in some seconds.
  case limited(Name, RateLimit)
  /// This many more have one.
  case moreLimited(Int)
  /// Which applications are stopped or limited is unknown.
  case applicationsUnknown(String)
  /// The broker keeps the producers' times in a topic's records.
  case producersTime(String)
  /// The settings of the topics are unknown.
  case settingsUnknown(String)
  /// The group's lag is unknown.
  case lagUnknown(String)
  /// Something unknown about the group.
  case lag(LagGap)
}
