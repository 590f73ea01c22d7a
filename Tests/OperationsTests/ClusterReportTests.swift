import Notifications
import Testing
import Worker

@testable import Kafka
@testable import Operations
@testable import Store

/// What is wrong with a cluster, and what is not.
@Suite struct ClusterReportTests {
  private static let topics = Topics(prefix: "t.")
  private static let identity = ClusterIdentity(kafka: "k", topicPrefix: "t.", buckets: 4, name: "c")

  private static var server: ServerState {
    var server = ServerState(address: "redis:6379")
    (server.version, server.isPrimary, server.policy, server.evictedKeys) = ("7.0.15", true, "noeviction", 0)
    (server.usedMemory, server.maximumMemory, server.isSaved) = (80, 100, true)
    return server
  }

  private static func worker(_ name: Name, _ role: String, silent: Int64 = 100, _ change: (inout WorkerReport) -> Void = { _ in })
    -> Workers.Listing
  {
    var report = WorkerReport(name: name, roles: [role], version: "1", started: 1_000, written: 61_000)
    change(&report)
    return Workers.Listing(name: name, silentMilliseconds: silent, report: report)
  }

  private static var kafka: KafkaState {
    let partitions = (0..<4).map { TopicDescription.Partition(id: $0, leader: 1, replicas: 3, inSync: 3) }
    let topics = Dictionary(uniqueKeysWithValues: Self.topics.all.map { ($0, TopicDescription(name: $0, partitions: partitions)) })
    let lag = LagSample(partitions: [], members: GroupMembers(state: "Stable", members: []))
    return KafkaState(cluster: ClusterDescription(id: "k", brokers: [1: "b:9092"], topics: topics), lag: .found(lag))
  }

  private static var redis: RedisState {
    RedisState(
      server: server, identity: .found(identity), workers: .found([worker("f", "fan-out"), worker("t", "transform")]),
      lanes: .found([Lanes.Listing(partition: 3, name: "f/0", silentMilliseconds: 100)]))
  }

  private func report(
    kafka: KafkaState? = Self.kafka, redis: RedisState? = Self.redis, _ change: (inout KafkaState, inout RedisState) -> Void = { _, _ in }
  ) -> ClusterReport {
    var (changedKafka, changedRedis) = (kafka ?? Self.kafka, redis ?? Self.redis)
    change(&changedKafka, &changedRedis)
    let sample = ClusterSample(
      time: 100, moment: 100, kafka: kafka == nil ? .unknown("no answer") : .found(changedKafka),
      redis: redis == nil ? .unknown("no answer") : .found(changedRedis))
    return ClusterReport(
      sample, ReportedCluster(Self.topics, group: "g", laneLifetimeMilliseconds: 10_000, buckets: 4, name: "c"))
  }

  @Test func ofAClusterThatIsWellNothingIsWrong() {
    let report = report()
    #expect(report.problems.isEmpty && report.notes.isEmpty && !report.isAway)
    #expect(report.workers.map(\.standing) == [.ready, .ready])
    #expect(report.workers[0].age == 60_100)
  }

  @Test func whereOneIsAwayTheOtherIsJudgedAllTheSame() {
    let noKafka = report(kafka: nil) { $1.server.evictedKeys = 3 }
    #expect(noKafka.problems == [.kafkaAway("no answer"), .evicted(keys: 3)] && !noKafka.isAway)
    let noRedis = report(redis: nil) { kafka, _ in kafka.cluster.topics[Self.topics.events] = nil }
    #expect(noRedis.problems == [.topicMissing("t.events"), .redisAway("no answer")] && noRedis.notes == [.workersUnknown])
    let nothing = report(kafka: nil, redis: nil)
    #expect(nothing.isAway && nothing.problems.count == 2 && nothing.notes.isEmpty)
  }

  @Test func topicsAreJudged() {
    let report = report { kafka, _ in
      kafka.cluster.topics[Self.topics.requests]?.partitions[1].leader = -1
      kafka.cluster.topics[Self.topics.devices]?.partitions[2].inSync = 2
      kafka.cluster.topics[Self.topics.journal]?.partitions.removeLast()
      kafka.settings = .found([
        Self.topics.events: TopicSettings(differences: ["has retention.ms=1, not 2"]), Self.topics.devices: TopicSettings(differences: []),
      ])
    }
    #expect(
      report.problems == [
        .leaderless("t.requests", [1]), .replicasBehind("t.devices", [2]), .topicDiffers("t.events", ["has retention.ms=1, not 2"]),
        .unjournaled(topic: "t.requests", partitions: [3], journal: "t.journal", count: 3),
      ])
    let unknown = self.report { kafka, _ in kafka.settings = .unknown("not allowed") }
    #expect(unknown.findings == [.settingsUnknown("not allowed")])
  }

  @Test func `stopped applications and a broker that keeps its producers' times are noted`() throws {
    let stop = ApplicationStop(from: 5, by: "ada", reason: "wrong prices")
    let value = try #require(ApplicationStops().value(.stop(by: "ada", reason: "wrong prices"), forgettingBefore: 0))
    let stops = try value.withUnsafeBytes { try ApplicationStops($0, timestamp: 5) }
    func entry(_ number: Int) -> ApplicationEntry { .init(application: "a.\(number)", stops: stops) }
    let some = report { kafka, _ in
      kafka.applications = .found([entry(1)])
      kafka.cluster.id = "mockCluster1"
    }
    // The Redis is of another Kafka now, which is not the point.
    #expect(some.notes == [.producersTime("t.requests"), .stopped("a.1", stop)])
    let many = report { kafka, _ in kafka.applications = .found((0..<25).map(entry)) }
    #expect(many.problems.isEmpty && many.notes.count == 21 && many.notes.last == .moreApplications(5))
    #expect(report { kafka, _ in kafka.applications = .unknown("slow") }.notes == [.applicationsUnknown("slow")])
  }

  @Test func `applications with a rate limit are noted behind the stopped ones`() throws {
    let limit = RateLimit(perTarget: 5, perApplication: nil, window: 1_000)
    let value = try #require(ApplicationStops().value(.limit(limit, by: "ada"), forgettingBefore: 0))
    let limited = try value.withUnsafeBytes { try ApplicationStops($0, timestamp: 5) }
    func entry(_ number: Int) -> ApplicationEntry { .init(application: "a.\(number)", stops: limited) }
    let found = report { kafka, _ in kafka.applications = .found((0..<22).map(entry)) }
    #expect(found.problems.isEmpty && found.notes.count == 21)
    #expect(found.notes.first == .limited("a.0", limit) && found.notes.last == .moreApplications(2))
  }

  @Test func `partitions with fewer copies in step than the topic asks for cannot be written`() {
    let report = report { kafka, _ in
      kafka.cluster.topics[Self.topics.events]?.partitions[2].inSync = 1
      kafka.settings = .found([Self.topics.events: TopicSettings(differences: [], minimumInSync: 2)])
    }
    let fault = WriteFault("t.events", [2], .tooFewInSync(minimum: 2))
    #expect(report.problems == [.replicasBehind("t.events", [2]), .unwritable(fault)])
  }

  @Test func whatIsNotKnownOfTheGroupIsNoted() {
    let report = report { kafka, _ in
      guard var lag = kafka.lag.value else { return }
      (lag.notes, lag.openTransactions) = ([.ownersUntold], [])
      kafka.lag = .found(lag)
    }
    #expect(report.findings == [.ownersUntold])
    #expect(self.report { kafka, _ in kafka.lag = .unknown("slow") }.notes == [.lagUnknown("slow")])
  }

  @Test func `a transaction that has been open for long is a problem`() {
    let partition = TopicPartition(Self.topics.requests, 1)
    let open = [-9_899, -9_900].map { OpenTransaction(partition: partition, offset: 7, records: 9, since: $0) }
    let report = report { kafka, _ in kafka.lag = .found(LagSample(partitions: [], openTransactions: open)) }
    #expect(report.findings.filter(\.isProblem) == [.openTransaction(open[1])])
  }

  @Test func aLaneThatStandsStillIsWrongAndTheOneThatIsTheFurthestBehindIsTold() {
    let lags = [
      WorkerReport.Lag(lane: "fan-out-0", partition: 3, records: 2, milliseconds: 70_000),
      WorkerReport.Lag(lane: "fan-out-1", partition: 4, records: 9, milliseconds: 60_000),
    ]
    let report = report { kafka, redis in
      redis.workers = .found([Self.worker("f", "fan-out") { $0.laneLags = lags }, Self.worker("t", "transform")])
      kafka.lag = .found(LagSample(partitions: [PartitionLag(partition: TopicPartition(Self.topics.deliveries, 4), log: 0..<9)]))
    }
    let still = FanOutLag(worker: "f", lane: "fan-out-1", partition: 4, records: 9, behind: 60_000)
    #expect(report.problems == [.laneStands(topic: "t.deliveries", still)], "the other one's heart beats")
    #expect(report.laneLags.count == 2)
  }

  @Test func redisIsJudged() {
    let other = ClusterIdentity(kafka: "other", topicPrefix: "t.", buckets: nil, name: nil)
    let report = report { _, redis in
      redis.server.findings = [.error: ["maxmemory-policy is allkeys-lru"], .warning: ["hash-max-listpack-value is 64"]]
      (redis.server.usedMemory, redis.server.isSaved) = (90, false)
      (redis.identity, redis.population) = (.found(other), .unknown("slow"))
    }
    #expect(
      report.problems == [
        .redisUnsuitable("maxmemory-policy is allkeys-lru"), .memoryShort(used: 90, maximum: 100), .notSaved,
        .otherCluster(found: other, own: Self.identity),
      ])
    #expect(report.notes == [.redis("hash-max-listpack-value is 64"), .populationUnknown("slow")])
    // Nothing is said of a server that sets itself no bound, or that no cluster has used.
    #expect(
      self.report { _, redis in
        (redis.server.maximumMemory, redis.identity) = (0, .found(nil))
      }.problems.isEmpty)
    // Of a Kafka that is away the topics' prefix can be compared.
    let prefix = ClusterIdentity(kafka: "k", topicPrefix: "staging.", buckets: nil, name: nil)
    #expect(self.report(kafka: nil) { $1.identity = .found(other) }.problems == [.kafkaAway("no answer")])
    #expect(self.report(kafka: nil) { $1.identity = .found(prefix) }.problems.count == 2)
  }

  @Test func `other buckets than those of the cluster are told by their number`() {
    let found = ClusterIdentity(kafka: "k", topicPrefix: "t.", buckets: 256, name: "c")
    let report = report { $1.identity = .found(found) }
    #expect(report.problems == [.otherCluster(found: found, own: Self.identity)])
    #expect(Self.identity.differences(from: found) == ["--buckets 256, and not 4"])
  }

  @Test func `a setting that differs between living workers is a note`() {
    func worker(_ name: Name, _ settings: [String: String], silent: Int64 = 100) -> Workers.Listing {
      Self.worker(name, "transform", silent: silent) { $0.settings = settings }
    }
    let report = report { _, redis in
      redis.workers = .found([
        Self.worker("f", "fan-out") { $0.settings = ["one": "5 s"] }, worker("a", ["one": "5 s", "two": "x"]),
        worker("b", ["one": "6 s", "two": "x"]), worker("c", ["two": "y"], silent: 20_000),
      ])
    }
    let differences = SettingDifference.among(report.workers)
    #expect(report.notes == differences.map { .settingDiffers($0) })
    #expect(differences.map(\.text) == ["one differs between workers: 5 s at a, f; 6 s at b"])
    #expect(differences.first?.concerns("f") == true && differences.first?.concerns("c") == false)
  }

  @Test func `a worker whose clock differs is wrong`() {
    func worker(_ name: Name, _ ahead: Int64?, silent: Int64 = 100) -> Workers.Listing {
      Self.worker(name, "transform", silent: silent) { $0.clockAhead = ahead }
    }
    let report = report { _, redis in
      redis.workers = .found([
        Self.worker("f", "fan-out"), worker("a", 5_000), worker("b", 5_001), worker("c", -7_000), worker("d", nil),
      ])
    }
    #expect(report.problems == [.clockDiffers("b", ahead: 5_001), .clockDiffers("c", ahead: -7_000)])
  }

  @Test func workersThatAreNotReadyOrSilentAreWrongAndThoseThatEndAreNot() {
    let waits = WorkerReport.Condition(name: "redis", lane: "f-0", reason: "connecting", since: 31_000)
    let report = report { _, redis in
      redis.workers = .found([
        Self.worker("a", "fan-out") { ($0.unreadyCount, $0.unready) = (1, [waits]) },
        Self.worker("b", "fan-out") { ($0.unreadyCount, $0.unready) = (1, [.init(name: "draining", reason: "ending", since: 1)]) },
        Self.worker("c", "transform", silent: 20_000), Workers.Listing(name: "d", silentMilliseconds: 1, report: nil),
        Self.worker("e", "transform") { $0.version = "2" },
      ])
    }
    #expect(report.workers.map(\.standing) == [.unready, .draining, .silent, .unreadable, .ready])
    #expect(report.problems == [.unready(report.workers[0]), .silent(report.workers[2])])
    #expect(report.notes == [.draining("b"), .unreadable("d"), .versions(["1", "2"])])
    #expect(report.workers[0].age(of: waits) == 30_100)
  }

  @Test func aRoleWithoutAWorkerIsWrongUnlessItsWorkersSayNothingOfThemselves() {
    let none = report { _, redis in (redis.workers, redis.lanes) = (.found([]), .found([])) }
    #expect(none.problems == [.noWorker("transform"), .noWorker("fan-out")])
    let silent = report { _, redis in
      redis.workers = .found([Self.worker("t", "transform", silent: 60_000)])
      redis.lanes = .found([Lanes.Listing(partition: 3, name: "f/0", silentMilliseconds: 60_000)])
    }
    #expect(silent.problems == [.silent(silent.workers[0]), .noWorker("fan-out")], "whether it runs is not known")
    let earlier = report { kafka, redis in
      redis.workers = .found([])
      guard var lag = kafka.lag.value else { return }
      lag.members?.members = [.init(id: "m", client: "c", host: "/h", partitions: [])]
      kafka.lag = .found(lag)
    }
    #expect(earlier.findings.isEmpty)
  }

  @Test func aFullRedisTakesNoReportsSoNothingIsSaidOfWorkersThatItDoesNotHave() {
    let full = report { _, redis in
      (redis.workers, redis.lanes) = (.found([]), .found([]))
      redis.server.usedMemory = 100
    }
    #expect(full.problems == [.memoryShort(used: 100, maximum: 100)] && full.notes.isEmpty)
    func problems(used: Int64) -> [Finding] {
      report { _, redis in
        (redis.workers, redis.lanes, redis.server.usedMemory) = (.found([]), .found([]), used)
      }.problems
    }
    #expect(problems(used: 98) == [.memoryShort(used: 98, maximum: 100)], "a call's own memory fills it")
    #expect(problems(used: 97).contains(.noWorker("transform")))
  }

  @Test func whatCannotBeReadInRedisIsWrongAndHidesNothingElse() {
    let report = report { _, redis in
      (redis.identity, redis.workers, redis.lanes) = (.unknown("a"), .unknown("b"), .unknown("c"))
      redis.server.evictedKeys = 1
    }
    #expect(
      report.problems == [.evicted(keys: 1), .unreadable("identity", "a"), .unreadable("workers", "b"), .unreadable("lanes", "c")],
      "whether a worker runs is not known")
    #expect(!report.isAway && report.workers.isEmpty && report.lanes == nil)
    let lanes = self.report { $1.lanes = .unknown("c") }
    #expect(lanes.problems == [.unreadable("lanes", "c")] && lanes.workers.count == 2)
  }
}
