import JSON
import Notifications
import Testing
import Worker

@testable import Command
@testable import Kafka
@testable import Operations
@testable import Store

/// What a report says of topics and partitions, for programs and for a person.
@Suite struct LagJSONTests {
  private static let topics = Topics(prefix: "t.")
  private static let time: Int64 = 1_700_000_000_000

  private static func place(_ topic: String, _ number: Int32) -> TopicPartition { TopicPartition(topic, number) }

  /// Partition 1 of the requests is a minute behind; a lane reads one partition of deliveries, and another has not taken 120 records.
  private static func report(
    requests: [PartitionLag]? = nil, rates: (LagRates, LagRates)? = (LagRates(in: 0, out: 0.25), LagRates(in: 1.5, out: 2)),
    isForming: Bool = false
  ) -> ClusterReport {
    let (first, second) = (place(topics.requests, 0), place(topics.requests, 1))
    let member = GroupMembers.Member(id: "m-1", client: "transform@a:7/0", host: "/10.0.0.7", partitions: [second])
    var partitions =
      requests ?? [
        PartitionLag(partition: first, log: 2..<10, committed: 10),
        PartitionLag(partition: second, log: 0..<40, committed: 37, oldest: time - 60_000),
      ]
    partitions += [
      PartitionLag(partition: place(topics.deliveries, 0), log: 5..<25, newest: time - 500),
      PartitionLag(partition: place(topics.deliveries, 1), log: 5..<25, newest: time - 90_000),
      PartitionLag(partition: place(topics.events, 0), log: 0..<0),
    ]
    let group = GroupMembers(state: isForming ? "PreparingRebalance" : "Stable", members: [member])
    let lag = LagSample(partitions: partitions, members: group)
    let all = Dictionary(uniqueKeysWithValues: topics.all.map { ($0, TopicDescription(name: $0, partitions: [])) })
    let kafka = KafkaState(cluster: ClusterDescription(id: "k", brokers: [:], topics: all), lag: .found(lag))
    var fanOut = WorkerReport(name: "w", roles: ["fan-out", "transform"], version: "1", started: time, written: time)
    fanOut.laneLags = [
      .init(lane: "fan-out-0", partition: 0, records: 0, milliseconds: 0),
      .init(lane: "fan-out-1", partition: 1, records: 120, milliseconds: 5_000),
    ]
    let redis = RedisState(
      server: ServerState(address: "r"), identity: .found(nil),
      workers: .found([Workers.Listing(name: "w", silentMilliseconds: 10, report: fanOut)]),
      lanes: .found([Lanes.Listing(partition: 0, name: "w/0", silentMilliseconds: 10)]))
    let cluster = ReportedCluster(topics, group: "g", laneLifetimeMilliseconds: 10_000, buckets: 4, name: "c")
    let delivered = LagRates(in: 1.0 / 3, out: 0)
    let known = [first: rates?.0, second: rates?.1, place(topics.deliveries, 0): delivered, place(topics.deliveries, 1): delivered]
    return ClusterReport(
      ClusterSample(time: time, moment: 0, kafka: .found(kafka), redis: .found(redis)), cluster, known.compactMapValues(\.self))
  }

  private static func objects(_ report: ClusterReport, partitions: Bool = false) throws -> [JSONValue] {
    try StatusJSON.lines(report, partitions ? .partitions : .topics).map { try JSONValue(parsing: $0) }
  }

  @Test func `each topic has an object with how far it is read, its rates and its worst partition`() throws {
    let objects = try Self.objects(Self.report())
    #expect(objects.map { $0["topic"]?.stringValue } == ["t.requests", "t.deliveries", "t.events", nil])
    #expect(
      objects[0].text
        == #"{"topic":"t.requests","partitions":2,"logRecords":48,"newest":null,"newestAgeMs":null,"inPerSecond":1.5,"outPerSecond":2.25,"#
        + #""records":3,"behindMs":60000,"state":"catches-up","caughtUpInMs":6000,"missed":0,"worstPartition":1,"withoutReader":[0]}"#)
    #expect(
      objects[1].text
        == #"{"topic":"t.deliveries","partitions":2,"logRecords":40,"newest":"2023-11-14T22:13:19.500Z","newestAgeMs":500,"#
        + #""inPerSecond":0.667,"outPerSecond":null,"records":120,"behindMs":5000,"state":null,"caughtUpInMs":null,"missed":0,"#
        + #""worstPartition":1,"withoutReader":[1]}"#)
    #expect(objects[2]["records"] == .null && objects[2]["withoutReader"] == .null && objects[2]["newest"] == .null)
    let unread = PartitionLag(partition: Self.place(Self.topics.requests, 0), log: 0..<5, oldest: Self.time - 4_000)
    let unknown = try Self.objects(Self.report(requests: [unread], rates: nil, isForming: true))[0]
    #expect(unknown["withoutReader"] == .null && unknown["inPerSecond"] == .null && unknown["outPerSecond"] == .null)
    #expect(unknown["state"] == "unknown" && unknown["caughtUpInMs"] == .null && unknown["records"] == 5)
    let done = PartitionLag(partition: Self.place(Self.topics.requests, 0), log: 0..<5, committed: 5)
    let end = try Self.objects(Self.report(requests: [done]))[0]
    #expect(end["records"] == 0 && end["behindMs"] == 0 && end["state"] == "at-end" && end["worstPartition"] == .null)
  }

  @Test(
    arguments: [
      (CatchUp.atEnd, "at-end", 0, "at the end"), (.keepsUp, "keeps-up", 0, "keeps up"),
      (.after(milliseconds: 7), "catches-up", 7, "in 7 ms"),
      (.never, "falls-behind", nil, "never"), (.unknown, "unknown", nil, "-"),
    ] as [(CatchUp, String, Int64?, String)])
  func `when a group will have caught up is a word, and a time where there is one`(
    _ catchUp: CatchUp, _ name: String, _ time: Int64?, _ words: String
  ) {
    #expect(catchUp.facts == (name, time, words))
  }

  @Test func `each partition has an object of its own when that is wanted`() throws {
    let objects = try Self.objects(Self.report(), partitions: true)
    #expect(objects.map { $0["topic"]?.stringValue } == ["t.requests", "t.requests", "t.deliveries", "t.deliveries", "t.events", nil])
    #expect(
      objects[1].text
        == #"{"topic":"t.requests","partition":1,"logStart":0,"logEnd":40,"committed":37,"logRecords":40,"newest":null,"newestAgeMs":null,"#
        + #""inPerSecond":1.5,"outPerSecond":2.0,"records":3,"behindMs":60000,"state":"catches-up","caughtUpInMs":6000,"missed":0,"#
        + #""readers":["transform@a:7/0 10.0.0.7"]}"#)
    #expect(objects[0]["readers"] == [] && objects[2]["readers"]?.text == #"["w/0"]"# && objects[4]["readers"] == .null)
    #expect(objects[2...4].map { $0["records"]?.integerValue } == [0, 120, nil])
    let untold = try Self.objects(Self.report(isForming: true), partitions: true)[0]
    #expect(untold["readers"] == .null && untold["records"] == 0)
  }

  @Test func `the last object has the group, the lanes, what is wrong and what is not known`() throws {
    let summary = try #require(try Self.objects(Self.report()).last)
    #expect(summary["time"] == "2023-11-14T22:13:20.000Z" && summary["group"] == "g" && summary["groupState"] == "Stable")
    #expect(summary["members"] == 1 && summary["lanes"] == 1)
    #expect(summary["problems"]?.elements?.map { $0["problem"]?.stringValue } == ["without-owner", "unread-deliveries"])
    #expect(summary["problems"]?[0]?["partitions"]?.text == "[0]")
  }

  @Test func `each kind of problem has its facts beside its sentence`() throws {
    let requests = Self.topics.requests
    let lag = FanOutLag(worker: "w", lane: "fan-out-1", partition: 1, records: 120, behind: 61_000)
    let open = OpenTransaction(partition: Self.place(requests, 3), offset: 7, records: 9, since: Self.time)
    let problems: [(Finding, String, String)] = [
      (.ownerless(topic: requests, partitions: [0, 1]), "without-owner", #"{"topic":"t.requests","partitions":[0,1]}"#),
      (
        .missed(Self.place(requests, 0), 4..<15), "missed", #"{"topic":"t.requests","partition":0,"records":11,"first":4,"last":14}"#
      ),
      (
        .beyondEnd(Self.place(requests, 2), committed: 9, end: 5), "beyond-end",
        #"{"topic":"t.requests","partition":2,"committed":9,"logEnd":5}"#
      ),
      (
        .openTransaction(open), "open-transaction",
        #"{"topic":"t.requests","partition":3,"offset":7,"records":9,"since":"2023-11-14T22:13:20.000Z"}"#
      ),
      (
        .laneStands(topic: "t.deliveries", lag), "lane-stands-still",
        #"{"topic":"t.deliveries","worker":"w","lane":"fan-out-1","partition":1,"records":120,"behindMs":61000}"#
      ),
      (
        .unjournaled(topic: requests, partitions: [4], journal: "t.journal", count: 4), "without-journal",
        #"{"topic":"t.requests","partitions":[4],"journal":"t.journal","journalPartitions":4}"#
      ),
      (.unread(topic: "t.deliveries", partitions: [2]), "unread-deliveries", #"{"topic":"t.deliveries","partitions":[2]}"#),
    ]
    for (problem, name, facts) in problems {
      #expect(problem.isProblem && problem.name == name && problem.facts.text == facts, "\(problem.facts.text)")
    }
    #expect(problems[1].0.sentence == "t.requests/0: 11 records are gone and were not finished: offsets 4 to 14")
    #expect(
      problems[4].0.sentence.hasPrefix("t.deliveries/1: lane fan-out-1 of w stands still for 1 min 1 s and has not taken 120 records"))
  }

  @Test func `a person reads the same in a table, and what is wrong below it`() {
    let printer = StatusPrinter(report: Self.report(), width: nil)
    let columns = printer.lines(.topics).map { $0.split(separator: " ").joined(separator: " ") }
    #expect(columns[0] == "2023-11-14T22:13:20.000Z topics t.… group g: Stable, 1 member 1 fan-out lane")
    #expect(columns[2] == "TOPIC LOG NEWEST IN/S OUT/S RECORDS BEHIND CAUGHT UP WORST")
    #expect(columns[3] == "t.requests (2) 48 1.5 2.3 3 1 min in 6 s partition 1, transform@a:7/0 10.0.0.7", "\(columns[3])")
    #expect(columns[4] == "t.deliveries (2) 40 500 ms ago 0.7 120 5 s partition 1, NOBODY", "\(columns[4])")
    #expect(columns[5] == "t.events (1) 0")
    #expect(columns[7] == "WRONG t.requests: nobody works through partition 0: are transform workers running, and ready?")
    let each = printer.lines(.partitions).map { $0.split(separator: " ").joined(separator: " ") }
    #expect(each.contains("t.deliveries/1 20 1 min 30 s ago 0.3 120 5 s NOBODY"), "\(each)")
    #expect(each.contains("t.requests/0 8 0 0.3 0 0 at the end NOBODY"), "\(each)")
  }

  @Test func `on a screen what is wrong and the partitions that are the furthest behind come first`() {
    let printer = StatusPrinter(report: Self.report(), width: 80)
    let names = printer.lines(.partitions, height: 20).compactMap { $0.split(separator: " ").first.map(String.init) }
    #expect(names.prefix(3).map { $0.prefix(5) } == ["2023-", "WRONG", "WRONG"])
    #expect(names.filter { $0.hasPrefix("t.") }.prefix(2) == ["t.requests/1", "t.deliveries/1"])
    let unwatched = printer.lines(.partitions).compactMap { $0.split(separator: " ").first.map(String.init) }
    #expect(unwatched.filter { $0.hasPrefix("t.") }.first == "t.requests/0" && unwatched.last == "WRONG")
  }
}
