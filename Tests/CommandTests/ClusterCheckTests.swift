import EventLoop
import Foundation
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

/// What was given for one cluster and is of another is found out before anything is written.
@Suite struct ClusterCheckTests {
  private static let token = String(repeating: "ef", count: 32)
  private static let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"

  /// Topics on an embedded broker without any worker.
  private struct Place: Sendable {
    let carillon: CarillonCommand
    let kafka: KafkaFixture
    let topics: Topics
    var flags: [String] {
      ["--kafka", kafka.configuration.bootstrapServers.joined(separator: ","), "--topic-prefix", topics.prefix]
    }

    static func with(_ body: @Sendable (Place) async throws -> Void) async throws {
      try await KafkaFixture.with(embeddedOnly: true) { kafka in
        try await CarillonCommand.with { carillon in
          let topics = Topics(prefix: KafkaFixture.unique("check") + ".")
          try await kafka.makeTopics(topics.all, partitions: 2)
          let place = Place(carillon: carillon, kafka: kafka, topics: topics)
          try await kafka.publish(Array(repeating: WorkerPair.request("user:ada"), count: 5), to: topics.requests)
          try await body(place)
        }
      }
    }

    /// What a worker of a cluster of this name has told, or somebody else.
    func tell(_ source: String, minutesAgo minutes: Int64 = 0) async throws {
      let event = TestRecord(
        key: "user:ada", "{}",
        headers: [
          .init("ce_specversion", "1.0"), .init("ce_id", "1"), .init("ce_type", "carillon.addressed.v1"), .init("ce_source", source),
        ], timestamp: WallClock.milliseconds() - minutes * 60_000)
      try await kafka.publish([event], to: topics.events)
    }

    func run(_ words: String...) async throws -> CarillonCommand.Result { try await carillon.run(words + flags) }

    /// How many requests there are.
    func requests() async throws -> Int64 {
      let partitions = (0..<2 as Range<Int32>).map { TopicPartition(topics.requests, $0) }
      return try await kafka.admin.ends(of: partitions).values.reduce(0) { $0 + $1.upperBound }
    }
  }

  @Test func aReplayUnderAnotherNameThanItsWorkersIsRefusedBeforeAnythingIsWritten() async throws {
    try await Place.with { place in
      let state = place.carillon.folder.appendingPathComponent("state.json").path
      // Of long ago, and of somebody else.
      try await place.tell("/carillon/carillon", minutesAgo: 60)
      try await place.tell("/shop/orders")
      try await place.tell("/carillon/west")
      let wrong = try await place.run("replay", "--state", state)
      #expect(wrong.status == 2 && wrong.output.isEmpty, "it said: \(wrong.errors)\(wrong.output)")
      #expect(wrong.errors.contains("(ce_source: /carillon/west), and not carillon"), "it said: \(wrong.errors)")
      #expect(wrong.errors.contains("give --cluster west"), "it said: \(wrong.errors)")
      #expect(try await place.requests() == 5)
      #expect(access(state, F_OK) != 0, "a file is left")
      let right = try await place.run("replay", "--state", state, "--cluster", "west")
      #expect(right.status == 0, "it said: \(right.errors)")
      #expect(try await place.requests() == 10)
      // Of two names that are in use nobody knows which is wrong.
      try await place.tell("/carillon/east")
      #expect(try await place.run("replay", "--dry-run", "--cluster", "west").status == 0)
      #expect(try await place.run("replay", "--dry-run", "--cluster", "north").errors.contains("east and west"))
    }
  }

  @Test(.onlyInAll("aReplayUnderAnotherNameThanItsWorkersIsRefusedBeforeAnythingIsWritten has the same check"))
  func aReplayThatWasBegunUnderAnotherNameIsNotGoneOnWith() async throws {
    try await Place.with { place in
      // So many that a machine that stands still does not let it come to its end.
      try await place.kafka.publish(Array(repeating: WorkerPair.request("user:ada"), count: 600), to: place.topics.requests)
      let state = place.carillon.folder.appendingPathComponent("state.json").path
      let begun = try place.carillon.start(["replay", "--state", state, "--records-per-second", "1"] + place.flags)
      try await begun.untilErrors(contain: "its progress is in")
      // One that ended before it wrote anything could not be gone on with.
      _ = try await place.kafka.records(of: place.topics.requests, count: 5 + 600 + 1)
      begun.signal(SIGINT)
      #expect(try await begun.result().status == 1)
      try await place.tell("/carillon/west")
      let result = try await place.run("replay", "--resume", state)
      #expect(result.status == 2 && result.errors.contains("begin a new replay with it"), "it said: \(result.errors)")
    }
  }

  @Test func whatIsRedrivenUnderAnotherNameIsRefused() async throws {
    try await Place.with { place in
      var letter = DeadLetter(
        poison: "", tries: 1,
        source: SourceCoordinates(topic: place.topics.requests, partition: 0, offset: 0, timestamp: WallClock.milliseconds()))
      letter.reason = "MissingTopic"
      var headers: [TestRecord.Header] = [.init("target", "user:ada"), .init("apns-topic", "com.example")]
      headers += letter.headers.map { .init($0.name, $0.value) }
      try await place.kafka.publish(
        [TestRecord(key: "user:ada", #"{"aps":{"alert":"x"}}"#, headers: headers, partition: 0)], to: place.topics.deadLetters)
      try await place.tell("/carillon/west")
      let wrong = try await place.run("dead-letters", "redrive", "--everything")
      #expect(wrong.status == 2 && wrong.output.isEmpty && wrong.errors.contains("give --cluster west"), "it said: \(wrong.errors)")
      #expect(try await place.requests() == 5)
      // What is discarded has no origin.
      #expect(try await place.run("dead-letters", "discard", "--everything", "--dry-run").status == 0)
      let right = try await place.run("dead-letters", "redrive", "--everything", "--cluster", "west")
      #expect(right.status == 0, "it said: \(right.errors)\(right.output)")
    }
  }

  @Test func whatIsUnfinishedIsLookedForInTheClustersOwnRedisOnly() async throws {
    try await Place.with { place in
      try await withRedis(listening: .port(nil)) { server in
        try await RedisProbe.with(server.address) { redis in
          let state = place.carillon.folder.appendingPathComponent("state.json").path
          func search() async throws -> CarillonCommand.Result {
            try await place.run("replay", "--only-unfinished", "--state", state, "--redis", server.address.description)
          }
          // Nothing was judged yet: there is nothing to be there.
          #expect(try await search().errors.contains("nothing was found"))
          unlink(state)
          try await place.kafka.publish([TestRecord("a record of the journal", partition: 0)], to: place.topics.journal)
          let unused = try await search()
          #expect(unused.status == 2 && unused.errors.contains("no cluster has used this Redis"), "it said: \(unused.errors)")
          #expect(unused.errors.contains("carillon rebuild"), "it said: \(unused.errors)")

          let kafka = try await place.kafka.admin.describeCluster().id ?? ""
          try await redis.command("HSET", "cluster", "kafka", .text(kafka), "prefix", .text(place.topics.prefix))
          let emptied = try await search()
          #expect(
            emptied.status == 2 && emptied.errors.contains("256 of 256 buckets are missing in this Redis"), "it said: \(emptied.errors)")

          try await redis.command("HSET", "cluster", "kafka", "another", "prefix", "staging.")
          let refused = try await search()
          #expect(refused.status == 2 && refused.errors.contains("the Kafka cluster another, and not"))
          #expect(refused.errors.contains("--topic-prefix staging., and not"))
          #expect(refused.errors.contains(place.topics.prefix), "it said: \(refused.errors)")
          #expect(access(state, F_OK) != 0, "a file is left")
        }
      }
    }
  }

  @Test(.onlyInAll("it needs workers, and whatIsUnfinishedIsLookedForInTheClustersOwnRedisOnly has the other checks"))
  func aGroupThatHasCommittedNothingIsRefusedWhereOthersHave() async throws {
    try await WorkerPair.with { pair in
      let redis = ["--redis", pair.redisAddress]
      let group = ["--group", pair.prefix + "transform"]
      try await pair.register(Self.token, user: "ada")
      try await pair.publish([WorkerPair.request("device:\(Self.token)", ["apns-id": Self.id])])
      let partitions = (0..<4 as Range<Int32>).map { TopicPartition(pair.prefix + "requests", $0) }
      try await pair.eventually("it is committed") {
        try await !pair.kafka.admin.committed(group: pair.prefix + "transform", of: partitions).isEmpty
      }
      let state = pair.carillon.folder.appendingPathComponent("state.json").path
      let named = pair.kafka.embedded == nil ? "as one of those that have: \(pair.prefix)transform" : "give the --group"
      for further in [["--only-unfinished"] + redis, ["--max-behind", "2s"]] {
        let wrong = try await pair.carillon.run(["replay", "--state", state, "--group", "nobodys"] + further + pair.flags)
        #expect(wrong.status == 2 && wrong.output.isEmpty, "it said: \(wrong.errors)\(wrong.output)")
        #expect(wrong.errors.contains("the group nobodys has committed nothing of \(pair.prefix)requests"), "it said: \(wrong.errors)")
        #expect(wrong.errors.contains(named), "it said: \(wrong.errors)")
        #expect(wrong.errors.contains("or give --max-behind 0") == (further.count == 2), "it said: \(wrong.errors)")
        #expect(access(state, F_OK) != 0, "a file is left")
      }
      // What does not ask a group needs none, and a dry run does not wait for it.
      #expect(try await pair.carillon.run(["replay", "--dry-run", "--group", "nobodys"] + pair.flags).status == 0)
      let found = try await pair.carillon.run(["replay", "--only-unfinished", "--dry-run", "--grace", "0s"] + redis + group + pair.flags)
      #expect(found.status == 1 && found.errors.contains("0 requests are unfinished"), "it said: \(found.errors)")
      // Workers that have stopped have committed something.
      try await pair.transform.stop()
      let stopped = try await pair.carillon.run(["replay", "--state", state] + group + pair.flags)
      #expect(stopped.status == 0, "it said: \(stopped.errors)")
    }
  }

  /// The embedded broker tells nobody's members.
  @Test(
    .enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"), .onlyInAll("it stops a worker before its first commit"))
  func aGroupWhoseWorkersHaveNotCommittedYetIsNotRefused() async throws {
    try await WorkerPair.with(transform: ["--session-timeout", "5m"]) { pair in
      // It is a member, and stands still before its first commit.
      pair.transform.signal(SIGSTOP)
      try await pair.publish([WorkerPair.request("device:\(Self.token)", ["apns-id": Self.id])])
      try await pair.kafka.publish([TestRecord("a record of the journal", partition: 0)], to: pair.prefix + "journal")
      let flags = ["replay", "--only-unfinished", "--dry-run", "--redis", pair.redisAddress] + pair.flags
      let result = try await pair.carillon.run(flags + ["--group", pair.prefix + "transform"])
      #expect(result.status == 1 && result.errors.contains("nothing was found"), "it said: \(result.errors)")
      let wrong = try await pair.carillon.run(flags + ["--group", "nobodys"])
      #expect(wrong.status == 2 && wrong.errors.contains("give the --group of the transform workers"), "it said: \(wrong.errors)")
      pair.transform.signal(SIGCONT)
    }
  }

  @Test(.onlyInAll("ClusterTests rebuild a Redis across processes"))
  func aRedisThatIsRebuiltBelongsToItsClusterAgainAndToNoOther() async throws {
    try await WorkerPair.with { pair in
      try await pair.register(Self.token, user: "ada")
      try await pair.publish([WorkerPair.request("device:\(Self.token)", ["apns-id": Self.id])])
      let partitions = (0..<4 as Range<Int32>).map { TopicPartition(pair.prefix + "requests", $0) }
      try await pair.eventually("it is committed") {
        try await !pair.kafka.admin.committed(group: pair.prefix + "transform", of: partitions).isEmpty
      }
      try await pair.transform.stop()
      try await pair.fanOut.stop()
      func identity() async throws -> [String?] {
        try await pair.redis.command("HMGET", "cluster", "kafka", "prefix").array?.map(\.text) ?? []
      }
      func rebuild() async throws -> CarillonCommand.Result {
        try await pair.carillon.run(["rebuild", "--redis", pair.redisAddress, "--group", pair.prefix + "transform"] + pair.flags)
      }
      let own = try await identity()
      #expect(own.last == pair.prefix)

      try await pair.redis.command("FLUSHALL")
      try await pair.redis.command("HSET", "cluster", "kafka", "another", "prefix", "staging.")
      let refused = try await rebuild()
      #expect(refused.status == 2 && refused.output.isEmpty, "it said: \(refused.errors)\(refused.output)")
      #expect(refused.errors.contains("the Kafka cluster another, and not"), "it said: \(refused.errors)")
      #expect(refused.errors.contains("--topic-prefix staging., and not"), "it said: \(refused.errors)")
      #expect(refused.errors.contains(pair.prefix), "it said: \(refused.errors)")
      #expect(try await pair.redis.command("DBSIZE").integer == 1)

      try await pair.redis.command("FLUSHALL")
      let rebuilt = try await rebuild()
      #expect(rebuilt.status == 0, "it said: \(rebuilt.errors)")
      #expect(try await identity() == own)
    }
  }
}
