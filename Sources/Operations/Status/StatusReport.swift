import Kafka
public import Notifications
public import Store
public import Worker

/// How a cluster is: the sample, what is wrong, and what is to be known beside it. A value that asks nobody.
public struct StatusReport: Sendable {
  /// What was found.
  public var sample: StatusSample
  /// What the names of all topics begin with.
  public var topics: Topics
  /// The consumer group of the transform workers.
  public var group: String
  private let buckets: Int?
  private let cluster: String?
  /// The workers by name; none where nothing can be read of them.
  public var workers: [WorkerState]
  /// The living fan-out lanes; nil where nothing can be read of them.
  public var lanes: [Lanes.Listing]?
  /// How far fan-out lanes are behind, as their workers say.
  public var laneLags: [FanOutLag]
  /// What is wrong: each makes the answer no.
  public var problems: [StatusProblem]
  /// What is to be known, and is not wrong.
  public var notes: [StatusNote]

  /// Judges a sample.
  ///
  /// - Parameters:
  ///   - laneLifetimeMilliseconds: how long a silent fan-out lane counts as alive.
  ///   - buckets: of the settings that the command was given; nil: they are not compared, and the same of `cluster`.
  public init(
    _ sample: StatusSample, _ topics: Topics, group: String, laneLifetimeMilliseconds: Int, buckets: Int? = nil, cluster: String? = nil
  ) {
    (self.sample, self.topics, self.group) = (sample, topics, group)
    (self.buckets, self.cluster) = (buckets, cluster)
    workers = sample.redis.value?.workers.value?.map { WorkerState($0) } ?? []
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
  public var isAway: Bool { sample.kafka.value == nil && sample.redis.value == nil }

  /// The fan-out lane that is the furthest behind; nil where no worker tells.
  public var worstLane: FanOutLag? { laneLags.max { $0.rank < $1.rank } }

  /// Partitions of `deliveries` that the living lanes of a worker read.
  public func partitions(of worker: WorkerState) -> [Int32] {
    (lanes ?? []).filter { Self.isLane($0.name, of: worker.name) }.map(\.partition)
  }

  /// A lane's name is its worker's with a number, or with its role in 'carillon up'.
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
      // Those without a leader are told of above.
      if case .tooFewInSync = fault.cause { problems.append(.unwritable(fault)) }
    }
    let journal = LagProblem(
      topics, requests: kafka.cluster.topics[topics.requests]?.partitions.map(\.id) ?? [],
      journal: kafka.cluster.topics[topics.journal]?.partitions.count)
    if let journal { problems.append(.lag(journal)) }
    if let reason = kafka.settingsUnknown { notes.append(.settingsUnknown(reason)) }
    if kafka.cluster.isEmbedded { notes.append(.producersTime(topics.requests)) }
    switch kafka.stopped {
    case .found(let stopped):
      notes += stopped.prefix(Self.maximumStopped).compactMap { entry in entry.stops.open.map { .stopped(entry.application, $0) } }
      if stopped.count > Self.maximumStopped { notes.append(.moreStopped(stopped.count - Self.maximumStopped)) }
    case .unknown(let reason): notes.append(.stoppedUnknown(reason))
    }
    switch kafka.lag {
    case .found(let lag):
      // Without its lanes: those are judged here.
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

  /// Stopped applications that are named at most.
  private static let maximumStopped = 20

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
      // Of a Kafka that is away only the topics can be compared.
      let kafka = sample.kafka.value.map { $0.cluster.id ?? "" } ?? identity.kafka
      let own = ClusterIdentity(kafka: kafka, topicPrefix: topics.prefix, buckets: buckets, name: cluster)
      if !own.differences(from: identity).isEmpty { problems.append(.otherCluster(found: identity, own: own)) }
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
      // A greater difference makes it not ready, and is told so.
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

  /// Whether a role has a worker, as far as that can be told.
  ///
  /// - Parameter others: members of the group or lanes, which there are without a report too.
  private mutating func judgeRole(_ role: String, others: Int) {
    // A silent one may run and be refused by Redis, which has been told already, and a full Redis takes no reports at all.
    guard !workers.contains(where: { $0.roles.contains(role) }), sample.redis.value?.server.refusesReports != true else { return }
    // A worker of an earlier version says nothing of itself.
    if others > 0 { notes.append(.unreported(role, others)) } else { problems.append(.noWorker(role)) }
  }
}

extension ServerState {
  /// Whether it may refuse what workers write: of a nearly full one the memory that each call needs takes the rest.
  var refusesReports: Bool {
    if let usedMemory, let maximumMemory { maximumMemory > 0 && usedMemory >= maximumMemory - maximumMemory / 50 } else { false }
  }
}

/// A worker as the others see it.
public struct WorkerState: Sendable, Hashable {
  /// How a worker stands.
  public enum Standing: String, Sendable, Hashable {
    /// It should be given work.
    case ready
    /// Something keeps it from its work.
    case unready = "not-ready"
    /// It was told to end.
    case draining
    /// It says nothing any more, and has not taken leave.
    case silent
    /// What it says cannot be read.
    case unreadable
  }

  /// Its name.
  public var name: Name
  /// Milliseconds since its last heartbeat.
  public var silentMilliseconds: Int64
  /// What it said then.
  public var report: WorkerReport?
  /// How it stands.
  public var standing: Standing

  /// Judges what is in Redis of a worker.
  public init(_ listing: Workers.Listing) {
    (name, silentMilliseconds, report) = (listing.name, listing.silentMilliseconds, listing.report)
    standing =
      if listing.isSilent { .silent } else if let report {
        report.isReady ? .ready : report.isDraining ? .draining : .unready
      } else { .unreadable }
  }

  /// The stages that it runs.
  public var roles: [String] { report?.roles ?? [] }

  /// How long it has run, in milliseconds, as far as is known: one that is silent until it was heard of last. By its own clock.
  public var age: Int64? { report.map { max(0, $0.written - $0.started) + (standing == .silent ? 0 : silentMilliseconds) } }

  /// How long a condition has not been ready, in milliseconds; by the worker's clock.
  public func age(of condition: WorkerReport.Condition) -> Int64 {
    max(0, (report?.written ?? condition.since) - condition.since) + silentMilliseconds
  }
}

/// What is wrong.
public enum StatusProblem: Sendable, Hashable {
  /// Kafka does not answer.
  case kafkaAway(String)
  /// Redis does not answer.
  case redisAway(String)
  /// A topic is not there.
  case topicMissing(String)
  /// A topic is not as it should be.
  case topicDiffers(String, [String])
  /// Partitions that no broker leads.
  case leaderless(String, [Int32])
  /// Partitions some of whose copies are not in step.
  case replicasBehind(String, [Int32])
  /// Partitions that nothing can be written to, for too few copies are in step.
  case unwritable(WriteFault)
  /// What is wrong with the group and what it works through.
  case lag(LagProblem)
  /// What Redis has of something cannot be read, though it answers.
  case unreadable(StatusPart, String)
  /// Redis cannot be worked with.
  case redisUnsuitable(String)
  /// Redis has thrown keys away.
  case evicted(keys: Int64)
  /// Redis has used more than four fifths of its memory.
  case memoryShort(used: Int64, maximum: Int64)
  /// What Redis keeps on disk could not be written.
  case notSaved
  /// Redis is another cluster's.
  case otherCluster(found: ClusterIdentity, own: ClusterIdentity)
  /// A worker is not ready.
  case unready(WorkerState)
  /// A worker's clock is ahead of Redis' clock by so many milliseconds, or below zero behind it.
  case clockDiffers(Name, ahead: Int64)
  /// A worker says nothing any more.
  case silent(WorkerState)
  /// There is no worker of a role.
  case noWorker(String)
}

/// What is read of Redis, each by itself.
public enum StatusPart: String, Sendable, Hashable {
  /// Whose Redis it is.
  case identity
  /// The workers' reports.
  case workers
  /// The fan-out lanes.
  case lanes
}

/// What is to be known, and is not wrong.
public enum StatusNote: Sendable, Hashable {
  /// Workers of these versions run.
  case versions([String])
  /// Workers have different values of a setting that should be equal.
  case settingDiffers(SettingDifference)
  /// A worker was told to end.
  case draining(Name)
  /// A worker's report cannot be read.
  case unreadable(Name)
  /// There are so many workers of a role, or lanes, that do not report themselves.
  case unreported(String, Int)
  /// There are so many workers that some may not be shown.
  case manyWorkers
  /// Redis is away, and with it the workers' reports.
  case workersUnknown
  /// What could be better about Redis, or was not found out.
  case redis(String)
  /// Devices and mailboxes could not be looked at.
  case populationUnknown(String)
  /// An application is stopped.
  case stopped(Name, ApplicationStop)
  /// So many more are.
  case moreStopped(Int)
  /// Which applications are stopped is not known.
  case stoppedUnknown(String)
  /// The broker keeps the times that producers give to the records of a topic.
  case producersTime(String)
  /// The settings of the topics are not known.
  case settingsUnknown(String)
  /// How far the group is behind is not known.
  case lagUnknown(String)
  /// What cannot be told of the group.
  case lag(LagGap)
}
