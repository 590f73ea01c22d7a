import Foundation
import JSON
import Kafka
import Redis
import TestSupport
import Testing
import Worker

/// `carillon lag`, over topics of its own and over workers that run.
@Suite struct LagTests {
  private struct Place: Sendable {
    let carillon: CarillonCommand
    let kafka: KafkaFixture
    let prefix: String
    let flags: [String]

    var requests: String { prefix + "requests" }

    /// A machine that stands still may keep Kafka from answering in the tool's time.
    func lag(_ more: String...) async throws -> CarillonCommand.Result {
      try await carillon.run(flags + more) {
        !$0.output.contains("Kafka does not answer") && !$0.output.contains("how far the group is behind is not known")
      }
    }
  }

  private func with(embeddedOnly: Bool = false, _ body: @Sendable (Place) async throws -> Void) async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with(embeddedOnly: embeddedOnly) { kafka in
        let prefix = KafkaFixture.unique("lag") + "."
        let topics = Topics(prefix: "").all
        try await kafka.makeTopics(topics.map { prefix + $0 }, partitions: 2)
        let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
        let flags = ["lag", "--kafka", servers, "--topic-prefix", prefix, "--group", prefix + "group"]
        try await body(Place(carillon: carillon, kafka: kafka, prefix: prefix, flags: flags))
      }
    }
  }

  private static func objects(_ result: CarillonCommand.Result) throws -> [JSONValue] {
    try result.lines.map { try JSONValue(parsing: $0) }
  }

  @Test func aProgramGetsAnObjectForEachTopicAndOneForWhatIsWrong() async throws {
    try await with { place in
      let old = Int64(Date().timeIntervalSince1970 * 1000) - 60_000
      try await place.kafka.publish((0..<3).map { TestRecord("\($0)", partition: 1, timestamp: old) }, to: place.requests)
      let result = try await place.lag("--json", "--no-rates")
      let isEmbedded = place.kafka.embedded != nil
      #expect(result.status == (isEmbedded ? 0 : 1), "it said: \(result.errors)")
      let objects = try Self.objects(result)
      #expect(
        objects.map { $0["topic"]?.stringValue?.dropFirst(place.prefix.count) }
          == ["requests", "devices", "deliveries", "events", "journal", "dead-letters", nil])
      #expect(objects[at: 0]?["records"]?.integerValue == 3 && objects[at: 0]?["worstPartition"]?.integerValue == 1)
      #expect(objects[at: 0]?["behindMs"]?.integerValue ?? 0 >= 60_000 && objects[at: 0]?["state"] == "unknown")
      #expect(
        objects[at: 1]?["records"]?.integerValue == 0 && objects[at: 1]?["behindMs"]?.integerValue == 0
          && objects[at: 1]?["state"] == "at-end")
      let summary = try #require(objects.last)
      if isEmbedded {
        #expect(summary["problems"]?.elements?.isEmpty == true && objects[at: 0]?["withoutReader"] == .null)
        #expect(summary["notes"]?.text.contains("the embedded broker does not tell who works through a partition") == true)
      } else {
        #expect(summary["groupState"] == "Dead" && objects[at: 0]?["withoutReader"]?.text == "[0,1]")
        #expect(summary["problems"]?.elements?.contains { $0["problem"] == "without-owner" } == true)
      }
    }
  }

  @Test(.onlyInAll("ClusterReportTests have what is told then"))
  func aRedisThatDoesNotAnswerIsAProblemAndTheRestIsTold() async throws {
    try await with { place in
      let result = try await place.lag("--no-rates", "--json", "--redis", "127.0.0.1:1")
      let objects = try Self.objects(result)
      #expect(result.status == 1 && objects.count == 7 && objects.last?["lanes"] == .null)
      #expect(objects.last?["problems"]?.text.contains("Redis does not answer: ") == true)
    }
  }

  @Test(.onlyInAll("ClusterHistoryTests and LagJSONTests have what is told of it"))
  func aFullRedisSaysNothingOfTheLanesAndNoneIsMissing() async throws {
    try await with { place in
      try await withRedis(listening: .port(nil), settings: ["--maxmemory", "4mb"]) { server in
        try await RedisProbe.with(server.address) { redis in
          // The server is asked for more than it has, until it says no, and then for the rest of what it has.
          for size in [100_000, 2_000] {
            for number in 0..<60 {
              _ = try? await redis.command("SET", .text("key-\(size)-\(number)"), .bytes([UInt8](repeating: 1, count: size)))
            }
          }
          let line = place.flags + ["--no-rates", "--redis", server.address.description]
          let result = try await place.carillon.run(line) { $0.output.contains("and is full") }
          #expect(result.status == 1 && result.output.contains("and is full"), "it said: \(result.output)")
          #expect(!result.output.contains("no fan-out worker runs"), "it said: \(result.output)")
          try await redis.command("FLUSHALL")
          let empty = try await place.carillon.run(line) { $0.output.contains("no fan-out worker runs") }
          #expect(empty.status == 1 && empty.output.contains("WRONG  no fan-out worker runs"), "it said: \(empty.output)")
        }
      }
    }
  }

  @Test(.onlyInAll("each report is that of LagJSONTests"))
  func watchingShowsOneReportAfterTheOther() async throws {
    try await with { place in
      let watching = try place.carillon.start(place.flags + ["--watch", "--interval", "500ms", "--json"])
      try await watching.untilOutput(contains: "\n", count: 14)
      try await watching.stop()
      let objects = try watching.outputSoFar.split(separator: "\n").prefix(14).map { try JSONValue(parsing: String($0)) }
      #expect(objects.count == 14 && objects[at: 0]?["inPerSecond"] == .null && objects[at: 7]?["inPerSecond"]?.integerValue == 0)
    }
  }

  @Test(.onlyInAll("LagJSONTests has what comes first"))
  func `a watched terminal is never scrolled`() async throws {
    // The report of a busy Kafka takes many questions, and this test is about the terminal.
    try await with(embeddedOnly: true) { place in
      let terminal = try PseudoTerminal(width: 100, height: 12)
      let watching = try place.carillon.start(
        place.flags + ["--watch", "--partitions", "--interval", "500ms"], streams: .init(output: terminal.terminal))
      let small = try await terminal.read(until: "\u{1B}[J", of: watching)
      #expect(small.split(separator: "\n", omittingEmptySubsequences: false).count <= 12, "\(small)")
      #expect(small.contains("further line"), "\(small)")
      try terminal.resize(width: 100, height: 60)
      let large = try await terminal.read(until: "dead-letters/1 ", of: watching)
      #expect(large.components(separatedBy: "\u{1B}[H").last?.contains("further line") == false, "\(large)")
      try await watching.stop()
    }
  }

  @Test(arguments: [["--interval", "100ms"], ["--watch", "5s"], ["--partition"], ["--lane-silence", "1s"]])
  func whatIsTypedWrongIsWrongUsage(arguments: [String]) async throws {
    let refusal = try await Typed.refusal(["lag", "--kafka", "127.0.0.1:1"] + arguments)
    #expect(refusal.code == .wrongUsage && refusal.command == "lag", "it says: \(refusal.text)")
  }

  @Test(
    .enabled(if: KafkaFixture.realServers != nil && ClusterFixture.python != nil, "\(KafkaFixture.howToGetOne)"),
    .onlyInAll("ClusterHistoryTests and LagJSONTests have what is told of missed records"))
  func recordsThatAreGoneUnfinishedAreCountedAndTheirRangeIsTold() async throws {
    try await with { place in
      try await place.kafka.publish((0..<20).map { TestRecord("\($0)", partition: 0) }, to: place.requests)
      let script = """
        import sys
        from confluent_kafka import Consumer, TopicPartition
        from confluent_kafka.admin import AdminClient
        servers, topic, group = sys.argv[1:]
        consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        consumer.close()
        admin = AdminClient({"bootstrap.servers": servers})
        [each.result(30) for each in admin.delete_records([TopicPartition(topic, 0, 15)]).values()]
        """
      let servers = place.kafka.configuration.bootstrapServers.joined(separator: ",")
      let python = try #require(ClusterFixture.python)
      let deleted = try await place.carillon.run(
        [try place.carillon.file("delete.py", script), servers, place.requests, place.prefix + "group"],
        program: URL(fileURLWithPath: python))
      #expect(deleted.status == 0, "it said: \(deleted.errors)")
      let result = try await place.lag("--no-rates", "--json")
      #expect(result.status == 1)
      let objects = try Self.objects(result)
      #expect(objects[at: 0]?["missed"]?.integerValue == 11 && objects[at: 0]?["records"]?.integerValue == 5)
      let problem = objects.last?["problems"]?.elements?.first { $0["problem"] == "missed" }
      #expect(problem?["records"]?.integerValue == 11 && problem?["first"]?.integerValue == 4 && problem?["last"]?.integerValue == 14)
      let text = try await place.lag("--no-rates")
      #expect(text.output.contains("\(place.requests)/0: 11 records are gone and were not finished: offsets 4 to 14"))
    }
  }

  @Test(.onlyInAll("LagJSONTests has what is told of lanes"))
  func deliveriesAreToldByLaneWithWhatEachHasNotTaken() async throws {
    try await withRedis(listening: .port(nil)) { server in
      try await RedisProbe.with(server.address) { redis in
        try await with { place in
          /// What `carillon lag` says while a worker reports two lanes, of which these have a heartbeat.
          func lag(living: [String] = ["0:w/0", "1:w/1"], _ more: String...) async throws -> CarillonCommand.Result {
            var result: CarillonCommand.Result?
            // What stands still for seconds is told as away: asked again, it answers.
            for _ in 0..<5 where result?.output.contains("120") != true {
              result = try await once(living, more)
            }
            return try #require(result)
          }
          func once(_ living: [String], _ more: [String]) async throws -> CarillonCommand.Result {
            let seconds = try #require(try await redis.command("TIME").array?.first?.text.flatMap { Int64($0) })
            let lags = #"{"lane":"fan-out-0","partition":0,"records":0,"ms":0},{"lane":"fan-out-1","partition":1,"records":120,"ms":61000}"#
            let report = #"{"worker":"w","roles":["fan-out"],"version":"0.1.0","started":1,"written":2,"lags":[\#(lags)]}"#
            try await redis.command("ZADD", "workers", .integer(seconds * 1000), "w")
            try await redis.command("HSET", "{workers}reports", "w", .text(report))
            try await redis.command("DEL", "lanes")
            for lane in living { try await redis.command("ZADD", "lanes", .integer(seconds * 1000), .text(lane)) }
            return try await place.carillon.run(
              place.flags + ["--redis", server.address.description, "--no-rates", "--lane-silence", "60s"] + more)
          }
          func columns(_ text: CarillonCommand.Result, _ topic: String) -> String {
            let line = text.lines.first { $0.hasPrefix(place.prefix + topic) } ?? ""
            return line.split(separator: " ").dropFirst().joined(separator: " ")
          }
          let topic = try Self.objects(try await lag("--json"))[2]
          #expect(topic["records"]?.integerValue == 120 && topic["behindMs"]?.integerValue == 61_000, "\(topic.text)")
          #expect(topic["worstPartition"]?.integerValue == 1)
          let partitions = try Self.objects(try await lag("--json", "--partitions"))[4...5].map { $0 }
          #expect(partitions.map { $0["records"]?.integerValue } == [0, 120] && partitions[0]["behindMs"]?.integerValue == 0)
          let text = try await lag()
          #expect(columns(text, "deliveries") == "(2) 0 120 1 min 1 s partition 1, w/1", "\(text.output)")
          #expect(columns(text, "events") == "(2) 0", "\(text.output)")
          #expect(columns(try await lag("--partitions"), "deliveries/1") == "0 120 1 min 1 s w/1")
          let still = try await lag(living: ["0:w/0"])
          #expect(still.status == 1, "its heartbeat has stopped, and its process runs")
          #expect(still.output.contains("lane fan-out-1 of w stands still for 1 min 1 s and has not taken 120 records"), "\(still.output)")
          let problems = try Self.objects(try await lag(living: ["0:w/0"], "--json")).last?["problems"]?.elements ?? []
          let lane = problems.first { $0["problem"] == "lane-stands-still" }?["lane"]
          #expect(lane == "fan-out-1", "\(problems)")
        }
      }
    }
  }

  @Test func workersThatRunHaveNoLagAndShowIt() async throws {
    try await WorkerPair.with { pair in
      let flags = ["lag", "--group", pair.prefix + "transform", "--redis", pair.redisAddress, "--json", "--no-rates"] + pair.flags
      try await pair.register(String(repeating: "a", count: 64), user: "ada")
      try await pair.publish((0..<5).map { _ in WorkerPair.request("user:ada") })
      try await pair.eventually("all is finished, and told so") {
        let result = try await pair.carillon.run(flags)
        guard result.status == 0 else { return false }
        let objects = try Self.objects(result)
        return objects[at: 0]?["records"]?.integerValue == 0 && objects.last?["lanes"]?.integerValue == 1
          && objects[at: 2]?["records"]?.integerValue == 0
          && objects[at: 2]?["behindMs"]?.integerValue == 0 && objects[at: 2]?["worstPartition"] == .null
      }
      if pair.kafka.embedded == nil {
        let lane = try await pair.carillon.run(["status", "--redis", pair.redisAddress, "--json", "--sample", "0s"] + pair.flags).lines
          .compactMap { try JSONValue(parsing: $0) }.first { $0["roles"]?[0] == "transform" }?["worker"]?.stringValue
        let owners = try Self.objects(try await pair.carillon.run(flags + ["--partitions"])).prefix(8).compactMap {
          $0["readers"]?[0]?.stringValue?.split(separator: " ").first.map(String.init)
        }
        #expect(Set(owners) == ["\(lane ?? "-")/0"] && owners.count == 8, "a member of the group is called as its lane")
      }
      let place = "{topic=\"\(pair.prefix)requests\",partition=\"0\"}"
      try await pair.eventually("the worker shows its partitions") {
        let metrics = try await pair.metrics()
        return metrics["carillon_lag_seconds" + place] == 0 && metrics["carillon_lag_records" + place] == 0
          && metrics["carillon_transform_assigned_partitions"] == 8
      }
      let metrics = try await pair.metrics()
      #expect(metrics["carillon_transform_in_flight"] == 0 && metrics["carillon_transform_in_flight_limit"] == 100_000)
      #expect(metrics["carillon_transform_missed_total"] == 0)
    }
  }
}
