import EventLoop
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// A lane whose Kafka and Redis fail it in the middle of its work, and mend.
@Suite struct TransformLaneTests {
  /// Each page of these devices comes to a megabyte with these payloads, of which sixteen may be under way.
  private static let (devices, payload) = (32, 32_000)

  /// What waits for room that failed pages held is nobody's to wake when those are let go of.
  @Test func pagesThatWaitForTheirTurnAreAskedForWhenRedisIsVerified() async throws {
    try await TransformFixture.with({ $0.payloadBytes = 32_768 }) { lane in
      let home = TransformFixture.keys.bucket(of: "ada")
      let other = (home + 1) % TransformFixture.buckets
      let tokens = TransformFixture.tokens(in: [(other, Self.devices)])
      try await lane.register(tokens, for: "ada")
      try await lane.lose(other)
      // All of them are taken before the first is judged.
      try await lane.whileRedisStandsStill {
        try await lane.request("user:ada", count: 60, bytes: Self.payload)
        // Unless it has looked for the bucket by itself in between: then it takes none before it has it again.
        await lane.eventually("all requests are taken") {
          lane.taken == 60 || !lane.health.isReady
        }
      }
      await lane.eventually("the lane knows that a bucket is lost") { !lane.health.isReady }
      try await lane.settled { try await lane.calls() }
      try await lane.putBack(other)
      await lane.eventually("every request waits in every mailbox") {
        for token in [tokens[0], tokens[Self.devices - 1]] where try await lane.waiting(token) != 60 { return false }
        return true
      }
    }
  }

  /// A connection that is gone fails what is asked of it at once; thousands that wait for their turn must not do so inside each other.
  @Test func thousandsThatWaitForTheirTurnOutliveTheLossOfRedis() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 1)])
      try await lane.register(tokens, for: "ada")
      try await lane.whileRedisStandsStill {
        try await lane.request("user:ada", count: 20_000)
        await lane.eventually("all requests are taken") { lane.taken == 20_000 }
      }
      try await lane.probe.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
      // What was judged just before comes again where the loss has taken its markers, and counts twice.
      await lane.eventually("all of them are judged") {
        let isDone = try await lane.committed(lane.topics.requests) == 20_000
        return isDone && lane.count(.addressed) >= 20_000
      }
    }
  }

  /// What cannot be read ends as soon as it is taken, and makes room while the lane still looks at the batch that it came with.
  @Test func registrationsThatCannotBeReadDoNotHoldUpWhatComesBehindThem() async throws {
    try await TransformFixture.with({ $0.inFlight = 10 }) { lane in
      let count = 200
      try await lane.kafka.publish((0..<count).map { TestRecord(key: "no token \($0)", "{}", partition: 0) }, to: lane.topics.devices)
      await lane.eventually("all of them are finished") { try await lane.committed(lane.topics.devices) == Int64(count) }
      try await lane.request("user:nobody", count: 10)
      await lane.eventually("the requests are judged") { lane.count(.unregistered) == 10 }
    }
  }

  /// A little more than the bound, for a batch is taken whole.
  @Test func whatIsInFlightIsBoundedByItsBytesAndWhatWaitsForThatIsTakenLater() async throws {
    try await TransformFixture.with({ $0.inFlightBytes = 100_000 }) { lane in
      var published = 0
      func isFull() -> Bool { lane.metric("carillon_transform_in_flight_bytes") >= 100_000 }
      try await lane.whileRedisStandsStill {
        while published < 300, !isFull() {
          try await lane.request("user:nobody", count: 10, bytes: 3_000)
          published += 10
          await lane.eventually("these are taken, or the lane is full") { lane.taken == published || isFull() }
        }
        #expect(published < 300, "so many retain twenty times as much")
        // What had come before the lane was full may be taken still.
        let most = published
        try await lane.request("user:nobody", count: 50, bytes: 3_000)
        published += 50
        try await lane.settled { lane.taken }
        #expect(lane.taken <= most)
      }
      await lane.eventually("all of them are judged") { lane.count(.unregistered) == published }
    }
  }

  /// What lies before Redis is written out, and would only lie there.
  @Test func whatIsAskedOfRedisAtATimeIsBoundedAndWhatWaitsForThatIsTakenLater() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.whileRedisStandsStill {
        try await lane.request("device:" + token, count: 20_000)
        await lane.eventually("the first are taken") { lane.taken > 0 }
        try await lane.settled { lane.taken }
        #expect(lane.taken < 10_000, "\(lane.taken): 64 calls of 64 requests and what comes in a turn")
      }
      await lane.eventually("all of them are judged") { try await lane.committed(lane.topics.requests) == 20_000 }
    }
  }

  /// Deliveries have no record that waits for them, and take the room that pages wait for.
  @Test func pagesThatWaitForKafkaAreAskedForWhenItHasTakenDeliveries() async throws {
    try await TransformFixture.with({ $0.payloadBytes = 32_768 }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, Self.devices)])
      try await lane.register(tokens, for: "ada")
      for token in tokens { try await lane.connect(token) }
      let deliveries = TopicPartition(lane.topics.deliveries, 0)
      try lane.kafka.embedded?.setLeader(of: deliveries, to: -1)
      // A megabyte each, of which 64 may be under way before no further page is asked for.
      try await lane.request("user:ada", count: 120, bytes: Self.payload, collapse: "one")
      await lane.eventually("the first ones are told of") { lane.count(.addressed) > 32 }
      try await lane.settled { lane.count(.addressed) }
      #expect(lane.count(.addressed) < 120, "the others wait")
      try lane.kafka.embedded?.setLeader(of: deliveries, to: 1)
      await lane.eventually("the others go on") { lane.count(.addressed) == 120 }
    }
  }

  @Test func whatALaterRequestOfTheSameCallSupersedesIsNotDelivered() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.connect(token)
      try await lane.request("device:" + token, count: 40, collapse: "one")
      await lane.eventually("all requests are judged") { lane.count(.queued) == 40 }
      let deliveries = TopicPartition(lane.topics.deliveries, 0)
      let events = TopicPartition(lane.topics.events, 0)
      func count(_ partition: TopicPartition) async throws -> Int {
        try await lane.kafka.admin.ends(of: [partition])[partition]?.count ?? 0
      }
      await lane.eventually("all but the newest are collapsed") { try await count(events) == 39 }
      await lane.eventually("the newest is delivered") { try await count(deliveries) > 0 }
      #expect(try await count(deliveries) < 40, "they were read together, and so judged together")
    }
  }

  /// What Kafka's client refuses at once never has a report.
  @Test func aDeliveryThatKafkaDoesNotTakeIsCountedAndItsRequestWaitsInTheMailbox() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.connect(token, partition: 999)
      for number in 1...3 {
        try await lane.request("device:" + token)
        await lane.eventually("the request is judged") { lane.count(.queued) == number }
        await lane.eventually("its delivery is lost") { lane.metric(MetricNames.deliveriesLost.name) == Double(number) }
      }
      #expect(try await lane.waiting(token) == 3)
    }
  }

  /// What waits for one of the devices is not the person's.
  @Test func `a request for a person is finished where something is scheduled for each of the devices`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 1), (1, 1)])
      try await lane.register(tokens, for: "ada")
      let trigger = #"{"type":"timeInterval","timeInterval":3600}"#
      let scheduled = tokens.map { token in
        TestRecord(
          key: token, #"{"aps":{"alert":"x"}}"#,
          headers: [.init("target", "device:\(token)"), .init("apns-topic", TransformFixture.application), .init("trigger", trigger)],
          partition: 0)
      }
      try await lane.kafka.publish(scheduled, to: lane.topics.requests)
      await lane.eventually("both are scheduled") { try await lane.committed(lane.topics.requests) == 2 }
      try await lane.request("user:ada", count: 2, collapse: "order-7")
      await lane.eventually("both requests are finished") { try await lane.committed(lane.topics.requests) == 4 }
      for token in tokens { #expect(try await lane.waiting(token) == 1) }
    }
  }

  @Test func theBatchAfterABisectedOneIsTaken() async throws {
    // As if three workers had ended where this one begins.
    try await TransformFixture.with(before: { try await $0.probe.command("HSET", .text(Keys.tries), "q0", "0 3") }) { lane in
      for number in 1...3 {
        try await lane.request("device:" + TransformFixture.tokens(in: [(0, 1)])[0], count: 70)
        await lane.eventually("the batch is judged") { lane.count(.unregistered) == 70 * number }
      }
    }
  }

  /// As after a worker that ended between the two, on topics that are quiet since: else `lag` would show it behind for as long.
  @Test func whatAFormerOwnerHasAppliedAndNotCommittedIsCommitted() async throws {
    try await TransformFixture.with(sessionMilliseconds: 4_000) { lane in
      try await lane.request("device:" + TransformFixture.tokens(in: [(0, 1)])[0])
      await lane.eventually("it is committed") { try await lane.committed(lane.topics.requests) == 1 }
      await lane.drain(withinMilliseconds: hangMilliseconds)
      try await lane.request("device:" + TransformFixture.tokens(in: [(0, 1)])[0], count: 6)
      let last = try #require(try await lane.kafka.records(of: lane.topics.requests, count: 7).last)
      let applied = Marker(offset: 7, timestamp: try #require(last.timestamp))
      for bucket in 0..<TransformFixture.buckets {
        _ = try await lane.probe.command("HSET", .text(TransformFixture.keys.markers(bucket)), "q0", .bytes(applied.bytes))
      }
      try await lane.beside(1) { _ in
        await lane.eventually("the group knows it") { try await lane.committed(lane.topics.requests) == 7 }
      }
    }
  }

  @Test func aReplayOfWhatWasAppliedDoesNothingAndARedriveIsNewWork() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      try await lane.request("user:ada")
      await lane.eventually("the markers stand behind it") { try await lane.committed(lane.topics.requests) == 1 }
      // As if Redis had lost what is below its marker: all that it remembers of one device.
      try await lane.probe.command("DEL", .text(TransformFixture.keys.mailbox(tokens[0])))
      try await lane.probe.command("HDEL", .text(TransformFixture.keys.device(tokens[0])), "w")
      let first = try #require(try await lane.kafka.records(of: lane.topics.requests, count: 1).first)
      try await lane.again(first, why: .replay)
      await lane.eventually("the replay is taken") { lane.count(.replayed) == 1 }
      #expect(try await lane.waiting(tokens[0]) == 0)
      try await lane.again(first, why: .redrive)
      await lane.eventually("the redrive is judged") { lane.count(.addressed) == 2 }
      #expect(try await lane.waiting(tokens[0]) == 1)
      #expect(try await lane.waiting(tokens[1]) == 1, "what the other device has is a repeat")
      var elsewhere = first
      elsewhere.offset = 7
      try await lane.again(elsewhere, why: .replay)
      await lane.eventually("what points behind itself is rejected") { lane.count(.rejected) == 1 }
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 4 }
    }
  }

  @Test func aRequestIsTimedFromItsPublicationAndALetterIsCountedByItsReason() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 1)])
      try await lane.register(tokens, for: "ada")
      let began = WallClock.milliseconds()
      try await lane.request("user:ada", count: 2)
      try await lane.request("user:")
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 3 }
      let seconds = Double(WallClock.milliseconds() - began) / 1000
      #expect(lane.metric("carillon_published_to_transformed_seconds_count") == 3, "registrations are none")
      #expect(lane.metric("carillon_published_to_transformed_seconds_sum") <= 3 * seconds + 1)
      #expect(lane.metric("carillon_transform_dead_letters_total{reason=\"bad_device_token\"}") == 1)
      #expect(lane.metric("carillon_events_total{type=\"rejected\"}") == 1)
      #expect(lane.metric("carillon_events_total{type=\"addressed\"}") == 2)
      #expect(lane.metric("carillon_transform_partitions") == 2)
      await lane.eventually("its producers are shown") {
        lane.metric("carillon_producer_queue_records_limit{lane=\"transform_0\",producer=\"patient\"}") == 400_000
      }
      // The first record's time is that of its publication, a redrive's is not.
      let first = try #require(try await lane.kafka.records(of: lane.topics.requests, count: 1).first)
      try await lane.again(first, why: .redrive)
      await lane.eventually("the redrive is judged") { lane.count(.addressed) == 3 }
      await lane.eventually("and timed") { lane.metric("carillon_published_to_transformed_seconds_count") == 4 }
    }
  }

  @Test func `a request of other agents and of misspelt names is delivered, and what has no effect is counted`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 1)])
      try await lane.register(tokens, for: "ada")
      let trace = TestRecord.Header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
      let target = "device:\(tokens[0])"
      let headers: [TestRecord.Header] = [
        .init("Target", target), .init("Apns-Topic", TransformFixture.application), .init("Apns-Collapse-Id", "c"), trace, trace,
        .init("apns-colapse-id", "c"),
      ]
      let record = TestRecord(key: target, #"{"aps":{"alert":null,"badge":1,"alertt":"x"}}"#, headers: headers, partition: 0)
      try await lane.kafka.publish([record, record], to: lane.topics.requests)
      await lane.eventually("both are finished") { try await lane.committed(lane.topics.requests) == 2 }
      #expect(lane.metric("carillon_transform_dead_letters_total{reason=\"duplicate_headers\"}") == 0)
      #expect(lane.count(.queued) + lane.count(.collapsed) == 2)
      #expect(try await lane.waiting(tokens[0]) == 1, "one took the other's place")
      #expect(lane.metric("carillon_transform_unknown_fields_total{kind=\"header\"}") >= 2)
      #expect(lane.metric("carillon_transform_unknown_fields_total{kind=\"payload\"}") >= 2)
    }
  }

  @Test func aRequestForAnotherApplicationThanItsDevicesIsRejectedAndSaysSo() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      let headers: [TestRecord.Header] = [.init("target", "device:" + token), .init("apns-topic", "com.example.news")]
      let request = TestRecord(key: token, #"{"aps":{"alert":"x"}}"#, headers: headers, partition: 0)
      try await lane.kafka.publish([request], to: lane.topics.requests)
      let letter = try #require(try await lane.kafka.records(of: lane.topics.deadLetters, count: 1).first)
      func header(_ header: DeadLetterHeader) -> String? {
        letter.headers.first { $0.name == header.rawValue }?.value.map { String(decoding: $0, as: UTF8.self) }
      }
      #expect(header(.reason) == "DeviceTokenNotForTopic")
      #expect(header(.field) == "apns-topic")
      #expect(header(.rule) == "The device is registered for another application than the topic names.")
      // The letter can be read before the lane has heard that Kafka has it.
      await lane.eventually("it has its verdict") { lane.count(.rejected) == 1 }
    }
  }

  /// A policy may be changed while a worker runs.
  @Test func nothingIsJudgedWhileRedisMayThrowItAway() async throws {
    try await TransformFixture.with({ $0.store.inspectionMilliseconds = 50 }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.probe.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
      await lane.eventually("the lane is not ready") { !lane.health.isReady }
      #expect(lane.health.json.contains("allkeys-lru"))
      #expect(lane.metric("carillon_redis_suitable") == 0)
      try await lane.request("device:\(token)")
      // Even a sign for which the markers are compared in any other phase, and another connection, change nothing about it.
      let looks = try await lane.looks()
      try await lane.probe.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
      await lane.eventually("it has looked again") { try await lane.looks() > looks + 5 }
      #expect(try await lane.waiting(token) == 0 && !lane.health.isReady)
      try await lane.probe.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
      await lane.eventually("the request waits in its mailbox") { try await lane.waiting(token) == 1 && lane.health.isReady }
      await lane.eventually("metrics tell that it is suitable") { lane.metric("carillon_redis_suitable") == 1 }
    }
  }

  /// By such a clock a request with minutes left would have expired.
  @Test(arguments: [3_000_000, -3_000_000] as [Int64])
  func `nothing is judged while the machine's clock is far from that of Redis`(ahead: Int64) async throws {
    let offset = ClockShift()
    try await TransformFixture.with({
      $0.store.inspectionMilliseconds = 50
      $0.store.wallClock = { offset.now }
    }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      offset.ahead = ahead
      await lane.eventually("the lane is not ready, and names the clock") { lane.health.unready.contains { $0.name == "clock" } }
      #expect(lane.metric("carillon_redis_suitable") == 1, "nothing is wrong with Redis")
      #expect(abs(lane.metric("carillon_clock_offset_seconds") - Double(ahead) / 1000) < 60)
      try await lane.request("device:\(token)")
      let looks = try await lane.looks()
      await lane.eventually("it has looked again") { try await lane.looks() > looks + 5 }
      #expect(try await lane.waiting(token) == 0 && !lane.health.isReady)
      offset.ahead = 0
      await lane.eventually("the request waits in its mailbox") { try await lane.waiting(token) == 1 && lane.health.isReady }
    }
  }

  @Test func `a lane whose clock is wrong at its start judges nothing`() async throws {
    let offset = ClockShift()
    offset.ahead = 3_000_000
    try await TransformFixture.with(
      {
        $0.store.inspectionMilliseconds = 50
        $0.store.wallClock = { offset.now }
      }, awaitsReadiness: false
    ) { lane in
      await lane.eventually("the lane is not ready, and names the clock") { lane.health.unready.contains { $0.name == "clock" } }
      let looks = try await lane.looks()
      await lane.eventually("it has looked again") { try await lane.looks() > looks + 5 }
      #expect(Set(lane.health.unready.map(\.name)).isSuperset(of: ["clock", "redis"]))
      offset.ahead = 0
      await lane.eventually("the lane is ready") { lane.health.isReady }
    }
  }

  @Test func ofALaneWithoutAPartitionOnlyThatIsNotReady() async throws {
    try await TransformFixture.with(sessionMilliseconds: 4_000) { lane in
      // Three lanes share one partition, so that one of these two never gets it, whoever has it when they have agreed.
      try await lane.beside(2) { others in
        await lane.eventually("Redis is ready, and no partition is assigned") {
          others.contains { $0.json.contains("no partition is assigned yet") && $0.json.contains(#""name":"redis","ready":true"#) }
        }
      }
    }
  }

  /// A failover may make a primary a replica of another.
  @Test func aLaneIsNotReadyWhileItsRedisIsAReplica() async throws {
    try await TransformFixture.with({ $0.store.inspectionMilliseconds = 100 }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      // Of a server that does not answer: what it has stays as it is.
      try await lane.probe.command("REPLICAOF", "127.0.0.1", "1")
      await lane.eventually("the lane is not ready") { !lane.health.isReady && lane.health.json.contains("replica") }
      try await lane.request("device:\(token)")
      let looks = try await lane.looks()
      await lane.eventually("it has looked again") { try await lane.looks() > looks + 5 }
      #expect(!lane.health.isReady)
      try await lane.probe.command("REPLICAOF", "NO", "ONE")
      await lane.eventually("the request waits in its mailbox") { try await lane.waiting(token) == 1 && lane.health.isReady }
    }
  }

  /// A policy that was wrong for less than the time between two looks may have cost keys all the same.
  @Test func afterAnEvictionTheMarkersAreCompared() async throws {
    try await TransformFixture.with({ $0.store.inspectionMilliseconds = 3_000 }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.request("device:\(token)", count: 3)
      await lane.eventually("it has looked at Redis") { lane.metric("carillon_redis_suitable") == 1 }
      let since = try #require(lane.redisSince)
      // Only what has an end is thrown away with this policy, and nothing else has one that is so near.
      try await lane.probe.command("SETRANGE", "large", .integer(20 << 20), "x")
      try await lane.probe.command("EXPIRE", "large", 600)
      try await lane.probe.command("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
      try await lane.probe.command("CONFIG", "SET", "maxmemory", "16mb")
      await lane.eventually("it is thrown away") { try await lane.evicted() == 1 }
      try await lane.probe.command("CONFIG", "SET", "maxmemory", "0")
      try await lane.probe.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
      await lane.eventually("the lane was not ready meanwhile, and is again") { lane.health.isReady && lane.redisSince != since }
      #expect(lane.metric("carillon_redis_evicted_keys") == 1)
      await lane.eventually("metrics tell that it is suitable again") { lane.metric("carillon_redis_suitable") == 1 }
      try await lane.request("device:\(token)")
      await lane.eventually("the next request waits with the others") { try await lane.waiting(token) == 4 }
    }
  }

  @Test(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
  func aJournalThatIsRefusedMakesTheLaneNotReady() async throws {
    // No record of the journal is so small.
    try await TransformFixture.with(real: { [$0.journal: ["max.message.bytes": "10"]] }) { lane in
      try await lane.register(TransformFixture.tokens(in: [(0, 100)]), for: "ada")
      try await lane.request("user:ada")
      await lane.eventually("the lane is not ready") { !lane.health.isReady }
      #expect(lane.health.json.contains("Kafka does not take the journal"))
    }
  }

  @Test func `a record of the journal that the client itself does not take is split`() async throws {
    // What the journal says of these devices does not fit.
    try await TransformFixture.with({ $0.kafka.properties["message.max.bytes"] = "2000" }) { lane in
      try await lane.register(TransformFixture.tokens(in: [(0, 100)]), for: "ada")
      try await lane.request("user:ada")
      await lane.eventually("it is committed") { try await lane.committed(lane.topics.requests) == 1 }
      await lane.eventually("the lane is ready") { lane.health.isReady }
    }
  }

  /// What the journal says of a page may be all that is left of a request: its partition has another owner by then.
  @Test func aDrainEndsWithTheLastRecordOfTheJournal() async throws {
    try await TransformFixture.with(sessionMilliseconds: 20_000) { lane in
      let home = TransformFixture.keys.bucket(of: "ada")
      let (first, second) = ((home + 1) % TransformFixture.buckets, (home + 2) % TransformFixture.buckets)
      // A page is judged, and the next one fails.
      try await lane.register(TransformFixture.tokens(in: [(first, Recipients.pageSize), (second, 1)]), for: "ada")
      let journal = TopicPartition(lane.topics.journal, 0)
      try lane.kafka.embedded?.setLeader(of: journal, to: -1)
      try await lane.lose(second)
      try await lane.request("user:ada")
      await lane.eventually("the page is in the journal") { lane.metric("carillon_transform_journal_records_total") >= 1 }
      let request = try #require(try await lane.kafka.records(of: lane.topics.requests, count: 1).first)
      try await lane.putBack(second, andMark: Marker(offset: 1, timestamp: request.timestamp ?? -1))
      await lane.eventually("the request is left to the other owner") { lane.count(.revoked) >= 1 }
      async let drained: Void = endsByItself("the drain, which waits for nothing") {
        await lane.drain(withinMilliseconds: 4 * hangMilliseconds)
      }
      try lane.kafka.embedded?.setLeader(of: journal, to: 1)
      try await drained
    }
  }
}
