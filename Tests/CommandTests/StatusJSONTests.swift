import Foundation
import JSON
import Notifications
import Testing
import Worker

@testable import Command
@testable import Kafka
@testable import Operations
@testable import Store

/// What a program reads of a cluster's status: an object for each worker, for Kafka, Redis and the counts, and one for what is wrong.
@Suite struct StatusJSONTests {
  private static let topics = Topics(prefix: "t.")
  private static let time: Int64 = 1_700_000_000_000

  private static var fanOut: WorkerReport {
    var report = WorkerReport(name: "f", roles: ["fan-out"], version: "1", started: time - 60_000, written: time)
    (report.admin, report.devices, report.lanes) = ("http://10.0.0.1:9464", ["ws://10.0.0.1:7171/v1/device"], 1)
    (report.connections, report.clockAhead) = (5, -3)
    report.laneLags = [.init(lane: "fan-out-0", partition: 3, records: 2, milliseconds: 700)]
    return report
  }

  private static var transform: WorkerReport {
    var report = WorkerReport(name: "t", roles: ["transform"], version: "1", started: time - 1_000, written: time)
    (report.lanes, report.partitions) = (1, 8)
    return report
  }

  private static var kafka: KafkaState {
    let partitions = (0..<4).map { TopicDescription.Partition(id: $0, leader: 1, replicas: 3, inSync: 3) }
    let all = Dictionary(uniqueKeysWithValues: topics.all.map { ($0, TopicDescription(name: $0, partitions: partitions)) })
    let partition = TopicPartition(topics.requests, 0)
    let member = GroupMembers.Member(id: "m", client: "t/0", host: "/10.0.0.2", partitions: [partition])
    let lag = LagSample(
      partitions: [PartitionLag(partition: partition, log: 0..<9, committed: 4, oldest: time - 2_000)],
      members: GroupMembers(state: "Stable", members: [member]))
    var kafka = KafkaState(cluster: ClusterDescription(id: "k", brokers: [2: "c:9092", 1: "b:9092"], topics: all), lag: .found(lag))
    kafka.settings = .found([topics.requests: TopicSettings(differences: [])])
    return kafka
  }

  private static var redis: RedisState {
    var server = ServerState(address: "redis:6379")
    (server.version, server.isPrimary, server.replicas, server.policy) = ("7.0.15", true, 1, "noeviction")
    (server.usedMemory, server.maximumMemory, server.evictedKeys, server.isSaved) = (80, 100, 0, true)
    (server.appendsWrites, server.synchronization) = (true, "everysec")
    return RedisState(
      server: server, identity: .found(ClusterIdentity(kafka: "k", topicPrefix: "t.", buckets: 4, name: "c")),
      workers: .found([listing(fanOut), listing(transform)]),
      lanes: .found([Lanes.Listing(partition: 3, name: "f/0", silentMilliseconds: 100)]))
  }

  private static func listing(_ report: WorkerReport, silent: Int64 = 100) -> Workers.Listing {
    Workers.Listing(name: report.name, silentMilliseconds: silent, report: report)
  }

  private static func report(
    kafka: KafkaState? = Self.kafka, redis: RedisState? = Self.redis, _ change: (inout KafkaState, inout RedisState) -> Void = { _, _ in }
  ) -> ClusterReport {
    var (changedKafka, changedRedis) = (kafka ?? Self.kafka, redis ?? Self.redis)
    change(&changedKafka, &changedRedis)
    let sample = ClusterSample(
      time: time, moment: 0, kafka: kafka == nil ? .unknown("no answer") : .found(changedKafka),
      redis: redis == nil ? .unknown("no answer") : .found(changedRedis))
    return ClusterReport(sample, ReportedCluster(topics, group: "g", laneLifetimeMilliseconds: 10_000, buckets: 4, name: "c"))
  }

  private static func objects(_ report: ClusterReport) throws -> [JSONValue] {
    try StatusJSON.lines(report, .all).map { try JSONValue(parsing: $0) }
  }

  @Test func `of a cluster that is well each worker, Kafka and Redis have an object, and the last has no problem`() throws {
    let objects = try Self.objects(Self.report())
    #expect(objects.count == 6)
    #expect(
      objects[0].text
        == #"{"worker":"f","state":"ready","silentMs":100,"roles":["fan-out"],"version":"1","started":"2023-11-14T22:12:20.000Z","#
        + #""admin":"http://10.0.0.1:9464","devices":["ws://10.0.0.1:7171/v1/device"],"lanes":1,"connections":5,"partitions":null,"#
        + #""lags":[{"lane":"fan-out-0","partition":3,"records":2,"behindMs":700}],"#
        + #""clockAheadMs":-3,"conditions":[]}"#)
    #expect(objects[1]["worker"] == "t" && objects[1]["partitions"] == 8 && objects[1]["connections"] == .null)
    #expect(objects[1]["lags"] == [] && objects[1]["admin"] == .null)
    #expect(objects[2]["topic"] == "t.requests" && objects[2]["records"] == 5 && objects[2]["behindMs"] == 2_000)
    let kafka = try #require(objects[3]["kafka"])
    #expect(kafka["id"] == "k" && kafka["brokers"]?.text == #"["b:9092","c:9092"]"#)
    #expect(kafka["members"]?.text == #"[{"member":"m","client":"t/0","host":"/10.0.0.2","partitions":1}]"#)
    #expect(kafka["topics"]?.elements?.count == Self.topics.all.count)
    let requests = try #require(kafka["topics"]?.elements?.first { $0["topic"] == "t.requests" })
    #expect(requests.text == #"{"topic":"t.requests","partitions":4,"replication":3,"differences":[]}"#)
    let events = try #require(kafka["topics"]?.elements?.first { $0["topic"] == "t.events" })
    #expect(events["differences"] == .null)
    #expect(
      objects[4]["redis"]?.text
        == #"{"address":"redis:6379","version":"7.0.15","role":"primary","replicas":1,"usedMemory":80,"maximumMemory":100,"#
        + #""policy":"noeviction","evictedKeys":0,"appendOnly":true,"appendFsync":"everysec","saved":true,"kafka":"k","topicPrefix":"t.","#
        + #""layout":2,"oldestLayout":2}"#)
    #expect(
      objects[5].text
        == #"{"time":"2023-11-14T22:13:20.000Z","topicPrefix":"t.","group":"g","groupState":"Stable","members":1,"kafkaAnswers":true,"#
        + #""redisAnswers":true,"workers":2,"lanes":1,"problems":[],"notes":[]}"#)
  }

  @Test func `the article names every member`() throws {
    var found = Population.Counts()
    found.devices = 1
    let waits = WorkerReport.Condition(name: "redis", lane: "f-0", reason: "connecting", since: Self.time)
    let report = Self.report { kafka, redis in
      (redis.population, kafka.lag) = (.found(found), Self.kafka.lag)
      redis.schedules = .found(
        ScheduleHolders(
          holders: [.init(application: "a", pending: 1)], withoutDevices: 0, fullest: .init(bucket: 0, partition: 0, pending: 1)))
      var unready = Self.fanOut
      (unready.unreadyCount, unready.unready) = (1, [waits])
      redis.workers = .found([Self.listing(unready)])
    }
    var names: Set<String> = []
    func take(_ value: JSONValue) {
      for member in value.members ?? [] {
        names.insert("\(member.key)")
        // Each kind of finding has its own facts.
        if member.key != "problems", member.key != "notes" { take(member.value) }
      }
      for value in value.elements ?? [] { take(value) }
    }
    for line in StatusJSON.lines(report, .all) + StatusJSON.lines(report, .partitions) { take(try JSONValue(parsing: line)) }
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
    let article = try String(contentsOf: folder.appending(path: "../../Sources/carillon/Documentation.docc/Status.md"), encoding: .utf8)
    let section = try #require(article.split(separator: "## For scripts").last?.split(separator: "\n## ").first)
    #expect(names.count > 60)
    for name in names.sorted() { #expect(section.contains("`\(name)`"), "\(name)") }
  }

  @Test func `where one is away it has no object, and the rest is told`() throws {
    let noRedis = try Self.objects(Self.report(redis: nil))
    #expect(noRedis.count == 3 && noRedis[1]["kafka"] != nil && noRedis[2]["redisAnswers"] == false)
    #expect(noRedis[2]["workers"] == .null && noRedis[2]["lanes"] == .null)
    #expect(noRedis[2]["problems"]?.text == #"[{"problem":"redis-away","sentence":"Redis does not answer: no answer"}]"#)
    let noKafka = try Self.objects(Self.report(kafka: nil))
    #expect(noKafka.count == 4 && noKafka[2]["redis"] != nil && noKafka[3]["kafkaAnswers"] == false)
    let nothing = try Self.objects(Self.report(kafka: nil, redis: nil))
    #expect(nothing.count == 1 && nothing[0]["problems"]?.elements?.map { $0["problem"] } == ["kafka-away", "redis-away"])
    let part = try Self.objects(
      Self.report { kafka, redis in
        (kafka.lag, kafka.applications) = (.unknown("slow"), .unknown("slow"))
        (redis.identity, redis.workers, redis.lanes) = (.found(nil), .unknown("a"), .unknown("b"))
      })
    #expect(part[0]["kafka"]?["members"] == .null && part[1]["redis"]?["kafka"] == .null)
    #expect(part[2]["groupState"] == .null && part[2]["lanes"] == .null && part[2]["workers"] == .null)
  }

  @Test func `a worker is told with how it stands, and why and since when it is not ready`() throws {
    let waits = WorkerReport.Condition(name: "redis", lane: "f-0", reason: "connecting", since: Self.time - 30_000)
    let objects = try Self.objects(
      Self.report { _, redis in
        var (unready, draining) = (Self.fanOut, Self.transform)
        (unready.unreadyCount, unready.unready) = (1, [waits])
        (draining.unreadyCount, draining.unready) = (1, [.init(name: "draining", reason: "ending", since: 1)])
        var silent = Self.transform
        silent.name = "s"
        redis.workers = .found([
          Self.listing(unready), Self.listing(draining), Self.listing(silent, silent: 20_000),
          Workers.Listing(name: "d\u{1B}[2J", silentMilliseconds: 1, report: nil),
        ])
      })
    #expect(objects.prefix(4).map { $0["state"]?.stringValue } == ["not-ready", "draining", "silent", "unreadable"])
    #expect(
      objects[0]["conditions"]?.text
        == #"[{"name":"redis","lane":"f-0","reason":"connecting","since":"2023-11-14T22:12:50.000Z","forMs":30100}]"#)
    #expect(objects[3].members?.map(\.key) == ["worker", "state", "silentMs"] && objects[3]["worker"] == "d\u{1B}[2J")
    let problems = try #require(objects.last?["problems"]?.elements)
    #expect(problems.map { $0["problem"] } == ["worker-not-ready", "worker-silent"])
    #expect(problems[0]["conditions"] == objects[0]["conditions"] && problems[1]["worker"] == "s" && problems[1]["silentMs"] == 20_000)
    #expect(problems[1]["sentence"]?.stringValue?.contains("it was killed, hangs, or cannot write to Redis") == true)
  }

  @Test func `what was counted in Redis is told, and whether it is an estimate`() throws {
    var found = Population.Counts()
    (found.keys, found.devices, found.connected, found.mailboxes, found.entries) = (10, 9, 1, 1, 3)
    let objects = try Self.objects(Self.report { $1.population = .found(found) })
    #expect(
      objects[5]["population"]?.text == #"{"devices":9,"connected":1,"mailboxes":1,"notifications":3,"exact":true}"#, "\(objects[5].text)")
    let lines = StatusPrinter(report: Self.report { $1.population = .found(found.scaled(toKeys: 100)) }, width: nil).lines(.all)
    #expect(lines.contains("devices    about 90 registered, about 10 connected"), "\(lines)")
    #expect(lines.contains("mailboxes  about 30 notifications in about 10 mailboxes"), "\(lines)")
  }

  @Test func `status says whose schedules are pending, the application with most first, and what nobody has`() throws {
    let found = ScheduleHolders(
      holders: [.init(application: "com.a", pending: 9), .init(application: "com.b", pending: 2)], withoutDevices: 4,
      fullest: .init(bucket: 3, partition: 1, pending: 8))
    let report = Self.report { $1.schedules = .found(found) }
    #expect(
      try Self.objects(report)[5]["schedules"]?.text
        == #"{"pending":15,"withoutDevices":4,"applications":[{"application":"com.a","pending":9},{"application":"com.b","pending":2}],"#
        + #""fullest":{"bucket":3,"partition":1,"pending":8}}"#)
    let lines = StatusPrinter(report: report, width: nil).lines(.all)
    #expect(
      lines.contains(
        "schedules  15 requests pending: com.a 9, com.b 2, 4 for targets without a device; partition 1 has 8 of them in bucket 3, where most are"
      ), "\(lines)")
    let none = Self.report { $1.schedules = .found(ScheduleHolders(holders: [], withoutDevices: 0, fullest: nil)) }
    #expect(!StatusPrinter(report: none, width: nil).lines(.all).contains { $0.hasPrefix("schedules") })
  }

  @Test func `stopped and limited applications are told with who did it`() throws {
    func entry(_ application: Name, _ change: ApplicationStops.Change) throws -> ApplicationEntry {
      let value = try #require(ApplicationStops().value(change, forgettingBefore: 0))
      return .init(application: application, stops: try value.withUnsafeBytes { try ApplicationStops($0, timestamp: Self.time) })
    }
    let limit = RateLimit(perTarget: 5, perApplication: nil, window: 1_000)
    let entries = [
      try entry("a.b", .stop(by: "ada", reason: "wrong prices")), try entry("c.d", .limit(limit, by: "bob")),
    ]
    let objects = try Self.objects(Self.report { kafka, _ in kafka.applications = .found(entries) })
    let notes = try #require(objects.last?["notes"]?.elements)
    #expect(
      notes.first?.text.hasPrefix(
        #"{"note":"stopped","application":"a.b","from":"2023-11-14T22:13:20.000Z","by":"ada","reason":"wrong prices","sentence":"#) == true,
      "\(notes)")
    #expect(
      notes.first?["sentence"]
        == "a.b is stopped since 2023-11-14T22:13:20.000Z by ada: wrong prices; 'carillon applications start a.b' starts it again")
    #expect(notes.last?["application"] == "c.d" && notes.last?["perTarget"] == 5 && notes.last?["perApplication"] == .null)
    #expect(notes.count == 2 && objects.last?["problems"] == [])
  }

  @Test func `each kind of problem has its facts beside its sentence`() throws {
    let other = ClusterIdentity(kafka: "other", topicPrefix: "t.", buckets: nil, name: nil)
    let report = Self.report { kafka, redis in
      kafka.cluster.topics[Self.topics.people] = nil
      kafka.settings = .found([
        Self.topics.devices: TopicSettings(differences: ["has retention.ms=1, not 2"]),
        Self.topics.events: TopicSettings(differences: [], minimumInSync: 2),
      ])
      kafka.cluster.topics[Self.topics.requests]?.partitions[1].leader = -1
      kafka.cluster.topics[Self.topics.events]?.partitions[2].inSync = 1
      if var lag = kafka.lag.value {
        lag.members?.members = []
        lag.partitions = [PartitionLag(partition: TopicPartition("t.requests", 0), log: 15..<20, committed: 4)]
        kafka.lag = .found(lag)
      }
      (redis.server.findings, redis.server.evictedKeys, redis.server.isSaved) = ([.error: ["maxmemory-policy is allkeys-lru"]], 3, false)
      (redis.server.usedMemory, redis.identity) = (90, .found(other))
      var ahead = Self.fanOut
      ahead.clockAhead = 7_000
      redis.workers = .found([Self.listing(ahead)])
    }
    let problems = try #require(try Self.objects(report).last?["problems"]?.elements)
    let names: Set<String?> = [
      "topic-missing", "topic-differs", "without-leader", "replicas-behind", "cannot-be-written", "without-owner", "missed",
      "redis-unsuitable",
      "redis-evicted", "redis-memory", "redis-not-saved", "other-cluster", "worker-clock", "no-worker",
    ]
    #expect(Set(problems.map { $0["problem"]?.stringValue }) == names && problems.count == names.count, "\(problems.map(\.text))")
    #expect(problems.allSatisfy { $0["sentence"]?.stringValue?.isEmpty == false })
    func problem(_ name: String) -> JSONValue? { problems.first { $0["problem"]?.stringValue == name } }
    #expect(
      problem("topic-missing")?["topic"] == "t.people"
        && problem("topic-differs")?["differences"]?.text == #"["has retention.ms=1, not 2"]"#)
    #expect(problem("without-leader")?["partitions"]?.text == "[1]" && problem("replicas-behind")?["partitions"]?.text == "[2]")
    #expect(problem("cannot-be-written")?["topic"] == "t.events" && problem("cannot-be-written")?["partitions"]?.text == "[2]")
    #expect(problem("missed")?["first"] == 4 && problem("redis-evicted")?["keys"] == 3)
    #expect(problem("redis-memory")?["usedMemory"] == 90 && problem("redis-memory")?["maximumMemory"] == 100)
    #expect(problem("other-cluster")?["kafka"] == "other" && problem("other-cluster")?["topicPrefix"] == "t.")
    #expect(problem("worker-clock")?["aheadMs"] == 7_000 && problem("no-worker")?["role"] == "transform")
    let unreadable = try Self.objects(Self.report { $1.lanes = .unknown("c") }).last?["problems"]
    #expect(unreadable?.elements?.map { $0["part"] } == ["lanes"])
  }

  @Test func `a person reads the same, with what is wrong below it and nothing that a terminal obeys`() throws {
    let text = StatusPrinter(
      report: Self.report { _, redis in
        var unready = Self.fanOut
        unready.name = "f\u{1B}[2J\u{9B}2J"
        (unready.unreadyCount, unready.unready) = (1, [.init(name: "kafka", reason: "no broker", since: Self.time - 5_000)])
        redis.workers = .found([Self.listing(unready), Self.listing(Self.transform, silent: 90_000)])
      }, width: nil
    ).lines(.all)
    let columns = text.map { $0.split(separator: " ").joined(separator: " ") }
    #expect(columns[0] == "2023-11-14T22:13:20.000Z topics t.… group g: Stable, 1 member 1 fan-out lane")
    #expect(columns[2] == "WORKER ROLE STATE LANES PARTITIONS CONNECTIONS UP VERSION WHERE")
    #expect(columns[3].hasPrefix("f\u{FFFD}[2J\u{FFFD}2J fan-out NOT READY 1"), "\(columns[3])")
    #expect(columns[4].hasPrefix("t transform SILENT for 1 min 30 s 1 8"), "\(columns[4])")
    #expect(columns.contains { $0.hasPrefix("Redis redis:6379, version 7.0.15, primary, 1 replica, 80 B of 100 B (80") }, "\(columns)")
    #expect(columns.contains("t.requests (1) 9 5 2 s keeps up partition 0, t/0 10.0.0.2"), "\(columns)")
    #expect(columns.contains { $0.hasPrefix("WRONG f\u{FFFD}[2J\u{FFFD}2J is not ready: kafka: no broker (for 5") }, "\(columns)")
    #expect(columns.contains { $0.hasPrefix("WRONG t has said nothing for 1 min 30 s: it was killed, hangs") }, "\(columns)")
    #expect(text.joined().unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) })
    let away = StatusPrinter(report: Self.report(kafka: nil, redis: nil), width: nil).lines(.all)
    #expect(
      away.contains { $0.hasPrefix("WRONG  Kafka does not answer at no answer") } && away.contains { $0.hasPrefix("Redis      away") })
  }
}
