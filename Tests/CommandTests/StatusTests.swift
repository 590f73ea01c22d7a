import Foundation
import JSON
import Kafka
import Redis
import TestSupport
import Testing
import Worker

/// `carillon status`, over workers that run, and over what is away.
@Suite struct StatusTests {
  /// What a program was told.
  private struct Told {
    let status: Int32
    let objects: [JSONValue]

    init(_ result: CarillonCommand.Result) throws {
      status = result.status
      objects = try result.lines.map { try JSONValue(parsing: $0) }
    }

    var summary: JSONValue { objects.last ?? .null }
    var problems: [String] { summary["problems"]?.elements?.compactMap { $0["problem"]?.stringValue } ?? [] }
    var workers: [JSONValue] { objects.filter { $0["worker"] != nil } }
    func worker(_ role: String) -> JSONValue? { workers.first { $0["roles"]?.text == "[\"\(role)\"]" } }
    subscript(_ part: String) -> JSONValue? { objects.compactMap { $0[part] }.first { $0.members != nil } }
  }

  private func status(_ pair: WorkerPair, _ more: String..., redis: String? = nil) async throws -> CarillonCommand.Result {
    let place = pair.flags + ["--redis", redis ?? pair.redisAddress, "--group", pair.prefix + "transform"]
    // What stands still for seconds is told as away: asked again, it answers.
    let away = ["kafka-away", "Kafka does not answer"] + (redis == nil ? ["redis-away", "Redis does not answer"] : [])
    var result = try await pair.carillon.run(["status"] + place + more)
    for _ in 0..<4 where away.contains(where: { result.output.contains($0) }) {
      result = try await pair.carillon.run(["status"] + place + more)
    }
    return result
  }

  @Test func workersThatRunAreShownWithAllThatTheyAreAndHave() async throws {
    try await WorkerPair.with { pair in
      let token = String(repeating: "a", count: 64)
      let device = try pair.device(token, user: "ada")
      _ = try await device.firstLine()
      try await pair.register(String(repeating: "b", count: 64), user: "bob")
      try await pair.publish((0..<3).map { _ in WorkerPair.request("user:bob") })
      try await pair.eventually("all is told") {
        let told = try Told(try await status(pair, "--json"))
        let (transform, fanOut) = (told.worker("transform"), told.worker("fan-out"))
        guard told.status == 0, let transform, let fanOut, let found = told["population"] else { return false }
        return transform["state"] == "ready" && transform["partitions"]?.integerValue == 8 && transform["connections"] == .null
          && fanOut["state"] == "ready" && fanOut["connections"]?.integerValue == 1
          && fanOut["deliveryPartitions"]?.elements?.count == 1 && fanOut["admin"]?.stringValue?.hasPrefix("http://127.0.0.1:") == true
          && fanOut["devices"]?[0]?.stringValue?.hasPrefix("ws://127.0.0.1:") == true && fanOut["version"] == "0.1.0"
          && fanOut["lanes"]?.integerValue == 1 && fanOut["lags"]?[0]?["lane"] == "fan-out-0"
          && fanOut["lags"]?[0]?["records"]?.integerValue == 0 && fanOut["lags"]?[0]?["behindMs"]?.integerValue == 0
          && found["exact"] == true && found["devices"]?["value"]?.integerValue == 2
          && found["connected"]?["value"]?.integerValue == 1 && found["notifications"]?["value"]?.integerValue == 3
          && found["mailboxes"]?["value"]?.integerValue == 1
          && found["largest"]?[0]?["device"]?.stringValue == String(repeating: "b", count: 64)
      }
      // A lane that died long ago is among them until another begins.
      try await pair.redis.command("ZADD", "lanes", "1", "0:dead/0")
      let told = try Told(try await status(pair, "--json", "--sample", "0s"))
      #expect(told.problems.isEmpty && told["population"] == nil && told["redis"]?["policy"] == "noeviction")
      #expect(told["redis"]?["topicPrefix"]?.stringValue == pair.prefix && told["redis"]?["usedMemory"]?.integerValue ?? 0 > 0)
      #expect(told["redis"]?["fanOutLanes"]?.integerValue == 1 && told.summary["lanes"]?.integerValue == 1)
      #expect(told["kafka"]?["id"] == told["redis"]?["kafka"] && told["kafka"]?["topics"]?.elements?.count == Topics().all.count)
      if pair.kafka.embedded == nil { #expect(told["kafka"]?["groupState"] == "Stable" && told["kafka"]?["members"]?.elements?.count == 1) }
      let text = try await status(pair)
      let columns = text.lines.map { $0.split(separator: " ").map(String.init) }
      #expect(text.status == 0 && columns.contains { $0.first == "WORKER" } && columns.contains { $0.prefix(3).last == "ready" })
      #expect(text.output.contains("\(pair.prefix)deliveries 0 records"), "\(text.output)")
      #expect(text.output.contains("2 registered, 1 connected") && text.output.contains("3 notifications wait in 1 mailbox"))
      try await device.stop()
    }
  }

  @Test func aKilledWorkerIsToldAndOneThatEndsInOrderIsGoneAtOnce() async throws {
    try await WorkerPair.with { pair in
      try await pair.eventually("both are there") { try Told(try await status(pair, "--json", "--sample", "0s")).workers.count == 2 }
      pair.transform.signal(SIGTERM)
      _ = try await pair.transform.result(withinSeconds: 30)
      let ended = try Told(try await status(pair, "--json", "--sample", "0s"))
      #expect(ended.worker("transform") == nil && ended.status == 1 && ended.problems.contains("no-worker"))
      pair.fanOut.signal(SIGKILL)
      _ = try await pair.fanOut.result(withinSeconds: 30)
      try await pair.eventually("it is seen to be silent") {
        try Told(try await status(pair, "--json", "--sample", "0s")).problems.contains("worker-silent")
      }
      let text = try await status(pair, "--sample", "0s")
      #expect(text.status == 1 && text.output.contains("SILENT for"), "it said: \(text.output)")
      #expect(text.lines.contains { $0.hasPrefix("WRONG  fan-out@") && $0.contains("it was killed, hangs, or cannot write to Redis") })
    }
  }

  @Test func aWorkerThatWasToldToEndIsSeenToDoSoAndIsNotWrong() async throws {
    try await WorkerPair.with { pair in
      try await pair.eventually("both are there") { try Told(try await status(pair, "--json", "--sample", "0s")).workers.count == 2 }
      // It lets devices in for five seconds more.
      pair.fanOut.signal(SIGTERM)
      try await pair.eventually("it is seen to end") {
        let told = try Told(try await status(pair, "--json", "--sample", "0s"))
        guard told.worker("fan-out")?["state"] == "draining" else { return false }
        #expect(!told.problems.contains("worker-not-ready") && told.summary["notes"]?.text.contains("is draining") == true)
        return true
      }
    }
  }

  @Test func aWorkerThatIsNotReadySaysWhyAndSinceWhen() async throws {
    try await withRedis(listening: .port(nil)) { server in
      try await CarillonCommand.with { carillon in
        let place = ["--kafka", "127.0.0.1:1", "--redis", server.address.description]
        // What a terminal obeys, as it is written with seven bits and with eight.
        let name = "waits\u{1B}[2J\u{9B}2J\u{7F}"
        let worker = try carillon.start(["transform", "--worker", name] + place)
        try await worker.untilErrors(contain: "could not start", withinSeconds: 60)
        var told = try Told(try await carillon.run(["status", "--json", "--sample", "0s"] + place))
        let deadline = ContinuousClock.now + .seconds(40)
        while told.workers.isEmpty, ContinuousClock.now < deadline {
          try await Task.sleep(for: .milliseconds(200))
          told = try Told(try await carillon.run(["status", "--json", "--sample", "0s"] + place))
        }
        #expect(told.status == 1 && told.problems.contains("kafka-away") && told.problems.contains("worker-not-ready"))
        #expect(told.workers.first?["state"] == "not-ready" && told.workers.first?["conditions"]?[0]?["forMs"]?.integerValue ?? -1 >= 0)
        let json = try await carillon.run(["status", "--json", "--sample", "0s"] + place)
        #expect(try Told(json).workers.first?["worker"]?.stringValue == name)
        #expect(json.output.unicodeScalars.allSatisfy { $0 == "\n" || $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) })
        let text = try await carillon.run(["status", "--sample", "0s"] + place)
        #expect(
          text.status == 1 && text.output.contains("NOT READY") && text.output.contains("WRONG  Kafka does not answer at 127.0.0.1:1"))
        #expect(text.lines.contains { $0.hasPrefix("WRONG  waits\u{FFFD}[2J\u{FFFD}2J\u{FFFD} is not ready: ") }, "it said: \(text.output)")
        try await worker.stop()
      }
    }
  }

  @Test func withRedisAwayTheRestIsToldAndWithBothAwayADependencyIsMissing() async throws {
    try await WorkerPair.with { pair in
      let noRedis = try Told(try await status(pair, "--json", redis: "127.0.0.1:1"))
      #expect(noRedis.status == 1 && noRedis.problems == ["redis-away"] && noRedis["kafka"] != nil && noRedis["redis"] == nil)
      #expect(noRedis.summary["redisAnswers"] == false && noRedis.summary["workers"] == .null)
      if pair.kafka.embedded == nil { #expect(noRedis["kafka"]?["members"]?[0]?["host"]?.stringValue?.isEmpty == false) }
      let start = ContinuousClock.now
      let nothing = try await pair.carillon.run(["status", "--kafka", "127.0.0.1:1", "--redis", "127.0.0.1:1"])
      #expect(
        nothing.status == 3 && nothing.output.contains("WRONG  Kafka does not answer") && nothing.output.contains("WRONG  Redis does not"))
      #expect(ContinuousClock.now - start < .seconds(40), "nothing is waited for long")
    }
  }

  @Test func aRedisOfAnotherClusterIsWrongAndIsNotTaken() async throws {
    try await WorkerPair.with { pair in
      try await pair.eventually("Redis is theirs") { try await pair.redis.command("EXISTS", "cluster").integer == 1 }
      let prefix = KafkaFixture.unique("none") + "."
      let place = ["--kafka", pair.kafka.configuration.bootstrapServers.joined(separator: ","), "--redis", pair.redisAddress]
      let told = try Told(try await pair.carillon.run(["status", "--json", "--sample", "0s", "--topic-prefix", prefix] + place))
      #expect(told.status == 1 && told.problems.filter { $0 == "topic-missing" }.count == Topics().all.count)
      let other = try #require(told.summary["problems"]?.elements?.first { $0["problem"] == "other-cluster" })
      #expect(other["topicPrefix"]?.stringValue == pair.prefix)
      #expect(try await pair.redis.command("HGET", "cluster", "prefix").text == pair.prefix)
    }
  }

  @Test func aRedisThatEvictsOrIsFullIsWrong() async throws {
    try await withRedis(listening: .port(nil), settings: ["--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random"]) { server in
      try await RedisProbe.with(server.address) { redis in
        for number in 0..<60 { try await redis.command("SET", .text("key-\(number)"), .bytes([UInt8](repeating: 1, count: 100_000))) }
        try await CarillonCommand.with { carillon in
          let result = try await carillon.run(["status", "--kafka", "127.0.0.1:1", "--redis", server.address.description])
          #expect(result.status == 1 && result.output.contains("WRONG  Redis: maxmemory-policy is allkeys-random"))
          #expect(
            result.output.contains("WRONG  Redis has evicted ") && result.output.contains("WRONG  Redis has used "), "\(result.output)")
        }
      }
    }
  }

  @Test func watchingShowsOneReportAfterTheOther() async throws {
    try await CarillonCommand.with { carillon in
      let place = ["--kafka", "127.0.0.1:1", "--redis", "127.0.0.1:1"]
      let watching = try carillon.start(["status", "--watch", "--interval", "500ms", "--json"] + place)
      let deadline = ContinuousClock.now + .seconds(60)
      while watching.outputSoFar.split(separator: "\n").count < 2, ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(50))
      }
      try await watching.stop()
      let objects = try watching.outputSoFar.split(separator: "\n").prefix(2).map { try JSONValue(parsing: String($0)) }
      #expect(objects.count == 2 && objects.allSatisfy { $0["kafkaAnswers"] == false })
    }
  }

  @Test(arguments: [["--interval", "100ms"], ["--sample", "-1s"], ["--watch", "5s"], ["--workers"]])
  func whatIsTypedWrongIsWrongUsage(arguments: [String]) async throws {
    try await CarillonCommand.with { carillon in
      let result = try await carillon.run(["status", "--kafka", "127.0.0.1:1", "--redis", "127.0.0.1:1"] + arguments)
      #expect(result.status == 2 && result.output.isEmpty && result.errors.contains("carillon status --help"), "it said: \(result.errors)")
    }
  }
}
