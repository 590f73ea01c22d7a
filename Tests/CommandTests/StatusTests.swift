import Foundation
import JSON
import Kafka
import Redis
import Synchronization
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
    return try await answered(pair.carillon, place + more, away: Self.kafkaAway + (redis == nil ? Self.redisAway : []))
  }

  /// What is told of a dependency that does not answer.
  private static let (kafkaAway, redisAway) = (["kafka-away", "Kafka does not answer"], ["redis-away", "Redis does not answer"])

  /// What `carillon status` says, asked again while it calls something away that is there.
  private func answered(_ carillon: CarillonCommand, _ flags: [String], away: [String]) async throws -> CarillonCommand.Result {
    try await carillon.answer(["status"] + flags, "what is there answers") { result in !away.contains { result.output.contains($0) } }
  }

  @Test func workersThatRunAreShownWithAllThatTheyAreAndHave() async throws {
    try await WorkerPair.with { pair in
      let token = String(repeating: "a", count: 64)
      let device = try pair.device(token, user: "ada")
      _ = try await device.firstLine()
      try await pair.register(String(repeating: "b", count: 64), user: "bob")
      try await pair.publish((0..<3).map { _ in WorkerPair.request("user:bob") })
      try await pair.eventually("all is told") {
        let told = try Told(try await status(pair, "--json", "--sample", "60s"))
        let (transform, fanOut) = (told.worker("transform"), told.worker("fan-out"))
        guard told.status == 0, let transform, let fanOut, let found = told["population"] else { return false }
        return transform["state"] == "ready" && transform["partitions"]?.integerValue == 8 && transform["connections"] == .null
          && fanOut["state"] == "ready" && fanOut["connections"]?.integerValue == 1
          && fanOut["admin"]?.stringValue?.hasPrefix("http://127.0.0.1:") == true
          && fanOut["devices"]?[0]?.stringValue?.hasPrefix("ws://127.0.0.1:") == true && fanOut["version"] == "0.1.0"
          && fanOut["lanes"]?.integerValue == 1 && fanOut["lags"]?[0]?["lane"] == "fan-out-0"
          && fanOut["lags"]?[0]?["records"]?.integerValue == 0 && fanOut["lags"]?[0]?["behindMs"]?.integerValue == 0
          && found["exact"] == true && found["devices"]?.integerValue == 2 && found["connected"]?.integerValue == 1
          && found["notifications"]?.integerValue == 3 && found["mailboxes"]?.integerValue == 1
      }
      // A lane that died long ago is among them until another begins.
      try await pair.redis.command("ZADD", "lanes", "1", "0:dead/0")
      // A machine that stands still makes lanes look silent, and Redis too slow to be counted.
      var latest: Told?
      try await pair.eventually("nothing is wrong") {
        latest = try Told(try await status(pair, "--json", "--sample", "0s", "--lane-silence", "2m"))
        // A member that stood still too long joins again.
        let isStable = pair.kafka.embedded != nil || latest?.summary["groupState"] == "Stable"
        return latest?.problems.isEmpty == true && isStable
      }
      let told = try #require(latest)
      #expect(told["population"] == nil && told["redis"]?["policy"] == "noeviction")
      #expect(told["redis"]?["topicPrefix"]?.stringValue == pair.prefix && told["redis"]?["usedMemory"]?.integerValue ?? 0 > 0)
      #expect(told.summary["lanes"]?.integerValue == 1)
      #expect(told["kafka"]?["id"] == told["redis"]?["kafka"] && told["kafka"]?["topics"]?.elements?.count == Topics().all.count)
      if pair.kafka.embedded == nil { #expect(told["kafka"]?["members"]?.elements?.count == 1) }
      var shown: CarillonCommand.Result?
      try await pair.eventually("a person reads that nothing is wrong") {
        shown = try await status(pair, "--sample", "60s", "--lane-silence", "2m")
        return shown?.status == 0
      }
      let text = try #require(shown)
      let columns = text.lines.map { $0.split(separator: " ").map(String.init) }
      #expect(columns.contains { $0.first == "WORKER" } && columns.contains { $0.prefix(3).last == "ready" })
      #expect(columns.contains { $0.first == "\(pair.prefix)deliveries" }, "\(text.output)")
      #expect(text.output.contains("2 registered, 1 connected") && text.output.contains("3 notifications in 1 mailbox"))
      try await device.stop()
    }
  }

  @Test(.onlyInAll("ClusterReportTests has what is told of it"))
  func aWorkerThatEndsInOrderIsGoneAtOnce() async throws {
    let isGone = Atomic(false)
    // Its end waits a second for Redis, which a machine that stands still may take: then another one ends.
    for _ in 0..<3 where !isGone.load(ordering: .relaxed) {
      try await WorkerPair.with { pair in
        try await pair.eventually("both are there") { try Told(try await status(pair, "--json", "--sample", "0s")).workers.count == 2 }
        pair.transform.signal(SIGTERM)
        _ = try await pair.transform.result()
        let told = try Told(try await status(pair, "--json", "--sample", "0s"))
        isGone.store(told.worker("transform") == nil && told.status == 1 && told.problems.contains("no-worker"), ordering: .relaxed)
      }
    }
    let hasGone = isGone.load(ordering: .relaxed)
    #expect(hasGone)
  }

  @Test(.onlyInAll("ClusterReportTests and StatusJSONTests have what is told of it"))
  func aKilledWorkerIsTold() async throws {
    try await WorkerPair.with { pair in
      try await pair.eventually("both are there") { try Told(try await status(pair, "--json", "--sample", "0s")).workers.count == 2 }
      pair.fanOut.signal(SIGKILL)
      _ = try await pair.fanOut.result()
      try await pair.eventually("it is seen to be silent") {
        try Told(try await status(pair, "--json", "--sample", "0s")).problems.contains("worker-silent")
      }
      let text = try await status(pair, "--sample", "0s")
      #expect(text.status == 1 && text.output.contains("SILENT for"), "it said: \(text.output)")
      #expect(text.lines.contains { $0.hasPrefix("WRONG  fan-out@") && $0.contains("it was killed, hangs, or cannot write to Redis") })
    }
  }

  @Test(.onlyInAll("ClusterReportTests and StatusJSONTests have what is told of it"))
  func aWorkerThatWasToldToEndIsSeenToDoSoAndIsNotWrong() async throws {
    // It lets devices in until it is told to end for the second time, as all are at the end of the test.
    try await WorkerPair.with(fanOut: ["--unready-for", "2m", "--drain", "3m"]) { pair in
      try await pair.eventually("both are there") { try Told(try await status(pair, "--json", "--sample", "0s")).workers.count == 2 }
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
        try await worker.untilErrors(contain: "could not start")
        let flags = ["status", "--sample", "0s"] + place
        let json = try await carillon.answer(flags + ["--json"], "the worker is told") { result in
          let told = try Told(result)
          return told.status == 1 && Set(told.problems).isSuperset(of: ["kafka-away", "worker-not-ready"])
        }
        let told = try #require(try Told(json).workers.first)
        #expect(told["worker"]?.stringValue == name && told["state"] == "not-ready")
        #expect(told["conditions"]?[0]?["forMs"]?.integerValue ?? -1 >= 0)
        #expect(json.output.unicodeScalars.allSatisfy { $0 == "\n" || $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) })
        _ = try await carillon.answer(flags, "a person reads it") { text in
          text.status == 1 && text.output.contains("NOT READY") && text.output.contains("WRONG  Kafka does not answer at 127.0.0.1:1")
            && text.lines.contains { $0.hasPrefix("WRONG  waits\u{FFFD}[2J\u{FFFD}2J\u{FFFD} is not ready: ") }
        }
        try await worker.stop()
      }
    }
  }

  @Test(.onlyInAll("ClusterReportTests and StatusJSONTests have what is told then"))
  func withRedisAwayTheRestIsToldAndWithBothAwayADependencyIsMissing() async throws {
    try await WorkerPair.with { pair in
      let noRedis = try Told(try await status(pair, "--json", redis: "127.0.0.1:1"))
      #expect(noRedis.status == 1 && noRedis.problems == ["redis-away"] && noRedis["kafka"] != nil && noRedis["redis"] == nil)
      #expect(noRedis.summary["redisAnswers"] == false && noRedis.summary["workers"] == .null)
      if pair.kafka.embedded == nil { #expect(noRedis["kafka"]?["members"]?[0]?["host"]?.stringValue?.isEmpty == false) }
      let nothing = try await pair.carillon.run(["status", "--kafka", "127.0.0.1:1", "--redis", "127.0.0.1:1"])
      #expect(
        nothing.status == 3 && nothing.output.contains("WRONG  Kafka does not answer") && nothing.output.contains("WRONG  Redis does not"))
    }
  }

  @Test(.onlyInAll("ClusterReportTests and StatusJSONTests have what is told of it"))
  func aRedisOfAnotherClusterIsWrongAndIsNotTaken() async throws {
    try await WorkerPair.with { pair in
      try await pair.eventually("Redis is theirs") { try await pair.redis.command("EXISTS", "cluster").integer == 1 }
      let prefix = KafkaFixture.unique("none") + "."
      let place = ["--kafka", pair.kafka.configuration.bootstrapServers.joined(separator: ","), "--redis", pair.redisAddress]
      let flags = ["--json", "--sample", "0s", "--topic-prefix", prefix] + place
      let told = try Told(try await answered(pair.carillon, flags, away: Self.kafkaAway + Self.redisAway))
      #expect(told.status == 1 && told.problems.filter { $0 == "topic-missing" }.count == Topics().all.count)
      let other = try #require(told.summary["problems"]?.elements?.first { $0["problem"] == "other-cluster" })
      #expect(other["topicPrefix"]?.stringValue == pair.prefix)
      #expect(try await pair.redis.command("HGET", "cluster", "prefix").text == pair.prefix)
    }
  }

  @Test(.onlyInAll("ClusterReportTests has what is wrong with it"))
  func aRedisThatEvictsOrIsFullIsWrong() async throws {
    try await withRedis(listening: .port(nil), settings: ["--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random"]) { server in
      try await RedisProbe.with(server.address) { redis in
        for number in 0..<60 { try await redis.command("SET", .text("key-\(number)"), .bytes([UInt8](repeating: 1, count: 100_000))) }
        try await CarillonCommand.with { carillon in
          let place = ["--kafka", "127.0.0.1:1", "--redis", server.address.description]
          let result = try await answered(carillon, place, away: Self.redisAway)
          #expect(result.status == 1 && result.output.contains("WRONG  Redis: maxmemory-policy is allkeys-random"))
          #expect(
            result.output.contains("WRONG  Redis has evicted ") && result.output.contains("WRONG  Redis has used "), "\(result.output)")
        }
      }
    }
  }

  @Test(.onlyInAll("each report is that of StatusJSONTests"))
  func watchingShowsOneReportAfterTheOther() async throws {
    try await CarillonCommand.with { carillon in
      let place = ["--kafka", "127.0.0.1:1", "--redis", "127.0.0.1:1"]
      let watching = try carillon.start(["status", "--watch", "--interval", "500ms", "--json"] + place)
      try await watching.untilOutput(contains: "\n", count: 2)
      try await watching.stop()
      let objects = try watching.outputSoFar.split(separator: "\n").prefix(2).map { try JSONValue(parsing: String($0)) }
      #expect(objects.count == 2 && objects.allSatisfy { $0["kafkaAnswers"] == false })
    }
  }

  @Test(arguments: [["--interval", "100ms"], ["--sample", "-1s"], ["--watch", "5s"], ["--workers"]])
  func whatIsTypedWrongIsWrongUsage(arguments: [String]) async throws {
    let refusal = try await Typed.refusal(["status", "--kafka", "127.0.0.1:1", "--redis", "127.0.0.1:1"] + arguments)
    #expect(refusal.code == .wrongUsage && refusal.command == "status", "it says: \(refusal.text)")
  }
}
