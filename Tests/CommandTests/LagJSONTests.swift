import JSON
import Notifications
import Testing
import Worker

@testable import Command
@testable import Kafka
@testable import Operations
@testable import Store

/// What a program reads of a lag report: an object for each topic or partition, and one for what is wrong.
@Suite struct LagJSONTests {
  private static let topics = Topics(prefix: "t.")
  private static let time: Int64 = 1_700_000_000_000

  private static func requests(_ number: Int32) -> TopicPartition { TopicPartition(topics.requests, number) }

  private static func state(
    _ number: Int32, log: Range<Int64>, committed: Int64?, behind: Int64, _ catchUp: CatchUp = .unknown, _ owner: PartitionOwner = .unknown,
    rates: LagRates? = nil
  ) -> PartitionState {
    let lag = PartitionLag(partition: requests(number), log: log, committed: committed, oldest: behind > 0 ? time - behind : nil)
    return PartitionState(lag: lag, behind: behind, rates: rates, catchUp: catchUp, owner: owner)
  }

  /// Partition 1 of the requests is a minute behind; lanes read both partitions of deliveries, and one has not taken 120 records.
  private static func report(_ change: (inout LagReport) -> Void = { _ in }) -> LagReport {
    let member = GroupMembers.Member(id: "m-1", client: "transform@a:7/0", host: "/10.0.0.7", partitions: [requests(1)])
    let states = [
      state(0, log: 2..<10, committed: 10, behind: 0, .atEnd, .nobody, rates: LagRates(in: 0, out: 0.25)),
      state(1, log: 0..<40, committed: 37, behind: 60_000, .after(milliseconds: 9_000), .member(member), rates: LagRates(in: 1.5, out: 2)),
    ]
    let deliveries = (0..<2 as Range<Int32>).map { number in
      let log = PartitionLog(
        partition: TopicPartition(topics.deliveries, number), offsets: 5..<25, newest: number == 0 ? time - 500 : time - 90_000)
      var partition = TopicLog.Partition(log: log, rate: 1.0 / 3, readers: number == 0 ? ["w/0"] : [])
      partition.lags = [
        FanOutLag(
          worker: "w", lane: "fan-out-\(number)", partition: number, records: Int64(number) * 120, behind: Int64(number) * 61_000)
      ]
      return partition
    }
    let events = TopicLog.Partition(log: PartitionLog(partition: TopicPartition(topics.events, 0), offsets: 0..<0))
    var report = LagReport(
      time: time, group: "g", members: GroupMembers(state: "Stable", members: [member]),
      topics: [TopicLag(topic: topics.requests, partitions: states)],
      logs: [TopicLog(topic: topics.deliveries, partitions: deliveries), TopicLog(topic: topics.events, partitions: [events])],
      lanes: [Lanes.Listing(partition: 0, name: "w/0", silentMilliseconds: 10)], problems: [], gaps: [])
    change(&report)
    return report
  }

  private static func objects(_ report: LagReport, partitions: Bool = false) throws -> [JSONValue] {
    try LagJSON.lines(report, showsPartitions: partitions).map { try JSONValue(parsing: $0) }
  }

  @Test func `each topic of the group has an object with its lag, its rates and its worst partition`() throws {
    let objects = try Self.objects(Self.report())
    #expect(objects.map { $0["topic"]?.stringValue } == ["t.requests", "t.deliveries", "t.events", nil])
    #expect(
      objects[0].text
        == #"{"topic":"t.requests","group":"g","partitions":2,"records":3,"behindMs":60000,"inPerSecond":1.5,"outPerSecond":2.25,"#
        + #""state":"catches-up","caughtUpInMs":9000,"worstPartition":1,"missed":0,"withoutOwner":[0]}"#)
    let unknown = try Self.objects(
      Self.report { $0.topics[0].partitions = [Self.state(0, log: 0..<5, committed: nil, behind: 1_000)] })[0]
    #expect(unknown["withoutOwner"] == .null && unknown["inPerSecond"] == .null && unknown["outPerSecond"] == .null)
    #expect(unknown["state"] == "unknown" && unknown["caughtUpInMs"] == .null && unknown["records"] == 5)
    let done = try Self.objects(Self.report { $0.topics[0].partitions.removeLast() })[0]
    #expect(done["records"] == 0 && done["behindMs"] == 0 && done["state"] == "at-end" && done["worstPartition"] == .null)
  }

  @Test(arguments: [
    (CatchUp.atEnd, "at-end", JSONValue.integer(0)), (.keepsUp, "keeps-up", .integer(0)),
    (.after(milliseconds: 7), "catches-up", .integer(7)), (.never, "falls-behind", .null), (.unknown, "unknown", .null),
  ])
  func `when a group will have caught up is a word, and a time where there is one`(_ catchUp: CatchUp, _ word: String, _ time: JSONValue)
    throws
  {
    let object = try Self.objects(
      Self.report { $0.topics[0].partitions = [Self.state(0, log: 0..<5, committed: 1, behind: 9, catchUp)] })[0]
    #expect(object["state"]?.stringValue == word && object["caughtUpInMs"] == time)
  }

  @Test func `each partition has an object of its own when that is wanted`() throws {
    let objects = try Self.objects(Self.report(), partitions: true)
    #expect(objects.map { $0["topic"]?.stringValue } == ["t.requests", "t.requests", "t.deliveries", "t.deliveries", "t.events", nil])
    #expect(
      objects[1].text
        == #"{"topic":"t.requests","partition":1,"group":"g","logStart":0,"logEnd":40,"committed":37,"oldest":"2023-11-14T22:12:20.000Z","#
        + #""records":3,"behindMs":60000,"inPerSecond":1.5,"outPerSecond":2.0,"state":"catches-up","caughtUpInMs":9000,"missed":0,"#
        + #""owner":{"member":"m-1","client":"transform@a:7/0","host":"/10.0.0.7"}}"#)
    #expect(objects[0]["owner"] == .null && objects[0]["oldest"] == .null)
    let untold = try Self.objects(
      Self.report { $0.topics[0].partitions = [Self.state(0, log: 0..<5, committed: nil, behind: 0)] }, partitions: true)[0]
    #expect(untold["owner"] == "unknown" && untold["committed"] == .null && untold["records"] == 0)
  }

  @Test func `deliveries are told by lane with what each has not taken`() throws {
    let topic = try Self.objects(Self.report())[1]
    #expect(
      topic.text
        == #"{"topic":"t.deliveries","partitions":2,"records":40,"newest":"2023-11-14T22:13:19.500Z","newestAgeMs":500,"#
        + #""inPerSecond":0.667,"unread":120,"behindMs":61000,"worstPartition":1,"readPartitions":[0]}"#)
    let partitions = try Self.objects(Self.report(), partitions: true)[2...3].map { $0 }
    #expect(partitions.map { $0["unread"]?.integerValue } == [0, 120] && partitions[0]["behindMs"] == 0)
    #expect(partitions[1]["lags"]?.text == #"[{"worker":"w","lane":"fan-out-1","partition":1,"records":120,"behindMs":61000}]"#)
    #expect(partitions[0]["lanes"]?.text == #"["w/0"]"# && partitions[1]["lanes"]?.text == "[]")
    let calm = try Self.objects(
      Self.report { report in
        for index in 0..<2 { report.logs[0].partitions[index].lags[0].records = 0 }
        report.logs[0].partitions[0].lags[0].behind = nil
      })[1]
    #expect(calm["unread"] == 0 && calm["worstPartition"] == .null)
    // Nobody reports lags, and lanes do not read this topic.
    let events = try Self.objects(Self.report())[2]
    #expect(events.text == #"{"topic":"t.events","partitions":1,"records":0,"newest":null,"newestAgeMs":null,"inPerSecond":null}"#)
    let log = try Self.objects(Self.report(), partitions: true)[4]
    #expect(log["unread"] == nil && log["lags"] == nil && log["lanes"] == nil && log["partition"] == 0)
  }

  @Test func `the last object has the group, the lanes, what is wrong and what is not known`() throws {
    let report = Self.report {
      ($0.problems, $0.gaps) = ([.ownerless(topic: "t.requests", partitions: [0])], [.redisAway("no answer"), .ownersUntold])
    }
    let summary = try #require(try Self.objects(report).last)
    #expect(summary["time"] == "2023-11-14T22:13:20.000Z" && summary["group"] == "g" && summary["groupState"] == "Stable")
    #expect(summary["members"] == 1 && summary["lanes"] == 1 && summary["problems"]?.elements?.count == 1)
    #expect(
      summary["notes"]?.elements == [
        "the fan-out lanes are not known: no answer", "the embedded broker does not tell who works through a partition",
      ])
    let unknown = try #require(
      try Self.objects(
        Self.report { ($0.members, $0.lanes) = (nil, nil) }
      ).last)
    #expect(unknown["groupState"] == .null && unknown["members"] == .null && unknown["lanes"] == .null)
    #expect(unknown["problems"] == [] && unknown["notes"] == [])
  }

  @Test func `each kind of problem has its facts beside its sentence`() throws {
    let lag = FanOutLag(worker: "w", lane: "fan-out-1", partition: 1, records: 120, behind: 61_000)
    let open = OpenTransaction(partition: Self.requests(3), offset: 7, records: 9, since: Self.time)
    let problems: [(LagProblem, String)] = [
      (.ownerless(topic: "t.requests", partitions: [0, 1]), #""problem":"without-owner","topic":"t.requests","partitions":[0,1]"#),
      (.missed(Self.requests(0), 4..<15), #""problem":"missed","topic":"t.requests","partition":0,"records":11,"first":4,"last":14"#),
      (
        .beyondEnd(Self.requests(2), committed: 9, end: 5),
        #""problem":"beyond-end","topic":"t.requests","partition":2,"committed":9,"logEnd":5"#
      ),
      (
        .openTransaction(open),
        #""problem":"open-transaction","topic":"t.requests","partition":3,"offset":7,"records":9,"since":"2023-11-14T22:13:20.000Z""#
      ), (.noLane, #""problem":"no-lane""#),
      (
        .laneStands(topic: "t.deliveries", lag),
        #""problem":"lane-stands-still","topic":"t.deliveries","worker":"w","lane":"fan-out-1","partition":1,"records":120,"behindMs":61000"#
      ),
      (
        .unjournaled(topic: "t.requests", partitions: [4], journal: "t.journal", count: 4),
        #""problem":"without-journal","topic":"t.requests","partitions":[4],"journal":"t.journal","journalPartitions":4"#
      ), (.unread(topic: "t.deliveries", partitions: [2]), #""problem":"unread-deliveries","topic":"t.deliveries","partitions":[2]"#),
    ]
    for (problem, facts) in problems {
      let object = LagJSON.problem(problem)
      #expect(object["sentence"]?.stringValue == LagWords.problem(problem))
      #expect(object.text.hasPrefix("{" + facts + #","sentence":"#), "\(object.text)")
    }
    #expect(
      LagWords.problem(.missed(Self.requests(0), 4..<15)) == "t.requests/0: 11 records are gone and were not finished: offsets 4 to 14")
    #expect(
      LagWords.problem(.laneStands(topic: "t.deliveries", lag)).hasPrefix(
        "t.deliveries/1: lane fan-out-1 of w stands still for 1 min 1 s and has not taken 120 records"))
  }

  @Test func `a problem is the answer no, and only Redis that is away is a missing dependency`() {
    #expect(Self.report().exitCode == .done && Self.report { $0.gaps = [.redisNotGiven, .redisFull, .ownersUntold] }.exitCode == .done)
    #expect(Self.report { $0.gaps = [.redisAway("x")] }.exitCode == .dependencyMissing)
    #expect(Self.report { ($0.problems, $0.gaps) = ([.noLane], [.redisAway("x")]) }.exitCode == .answerIsNo)
  }

  @Test func `a person reads the same in a table, and what is wrong below it`() {
    let report = Self.report {
      ($0.problems, $0.gaps) = ([.ownerless(topic: "t.requests", partitions: [0])], [.redisNotGiven])
    }
    let lines = LagPrinter(report: report, width: nil).lines(showsPartitions: false)
    let columns = lines.map { $0.split(separator: " ").joined(separator: " ") }
    #expect(columns[0] == "2023-11-14T22:13:20.000Z group g Stable, 1 member 1 fan-out lane")
    #expect(columns[2] == "TOPIC RECORDS BEHIND IN/S OUT/S CAUGHT UP WORST")
    #expect(columns[3] == "t.requests (2) 3 1 min 1.5 2.3 in 9 s partition 1, transform@a:7/0 10.0.0.7", "\(columns[3])")
    #expect(
      columns[6] == "t.deliveries (2) 40 500 ms ago 0.7 120 1 min 1 s lanes on 1 of 2 partitions, worst: partition 1", "\(columns[6])")
    #expect(columns[7] == "t.events (1) 0 - -")
    #expect(columns.contains("WRONG t.requests: nobody works through partition 0: are transform workers running, and ready?"))
    #expect(columns.contains("NOTE the fan-out lanes are not known without --redis"))
    let each = LagPrinter(report: report, width: nil).lines(showsPartitions: true).map { $0.split(separator: " ").joined(separator: " ") }
    #expect(each.contains("t.deliveries/1 20 1 min 30 s ago 0.3 120 1 min 1 s no lane"), "\(each)")
    #expect(each.contains("t.requests/0 0 0 0 0.3 at the end NOBODY"), "\(each)")
  }
}
