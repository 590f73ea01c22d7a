import EventLoop
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// Requests of an application with a rate limit, on a lane.
@Suite struct RateLimitTests {
  /// A minute ago, so that nothing has expired, at the beginning of a window of any length.
  private static let start = (WallClock.milliseconds() - 60_000) / 30_000 * 30_000

  private static func limit(_ lane: TransformFixture, _ limit: RateLimit?, at timestamp: Int64, after former: ApplicationStops = .init())
    async throws
  {
    let value = try #require(former.value(.limit(limit, by: "eve"), forgettingBefore: 0))
    let record = TestRecord(
      key: TransformFixture.application, String(decoding: value, as: UTF8.self), partition: 0, timestamp: timestamp)
    try await lane.kafka.publish([record], to: lane.topics.applications)
  }

  /// A request that was published at so many milliseconds after the start.
  private static func request(
    _ target: String, _ milliseconds: Int64, application: String = TransformFixture.application, _ headers: [TestRecord.Header] = []
  ) -> TestRecord {
    TestRecord(
      key: target, #"{"aps":{"alert":"x"}}"#, headers: [.init("target", target), .init("apns-topic", application)] + headers, partition: 0,
      timestamp: start + milliseconds)
  }

  private static func publish(_ lane: TransformFixture, _ records: [TestRecord]) async throws {
    try await lane.kafka.publish(records, to: lane.topics.requests)
  }

  /// The offsets of the requests that were rejected for a limit, by the events, in any order.
  private static func rejected(_ lane: TransformFixture) async throws -> [Int] {
    let count = try await lane.kafka.admin.ends(of: [TopicPartition(lane.topics.events, 0)]).values.first?.count ?? 0
    var offsets: Set<Int> = []
    for record in try await lane.kafka.records(of: lane.topics.events, count: count)
    where record.header("ce_type") == "carillon.rejected.v1" {
      let event = try JSONValue(parsing: record.text)
      #expect(event["reason"] == "TooManyRequests")
      if let offset = event["source"]?["offset"]?.integerValue { offsets.insert(Int(offset)) }
    }
    return offsets.sorted()
  }

  @Test func `requests beyond a limit are rejected with the end of the window, and become no dead letters`() async throws {
    try await TransformFixture.with(before: { lane in
      try await Self.limit(lane, RateLimit(perTarget: 2, perApplication: 5, window: 1_000), at: Self.start - 10_000)
    }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      let (one, other) = ("device:\(tokens[0])", "device:\(tokens[1])")
      try await lane.register(tokens, for: "ada")
      var broken = Self.request(one, 300)
      broken.headers.append(.init("apns-priority", "11"))
      try await Self.publish(
        lane,
        [
          Self.request(one, 0), Self.request(one, 100), Self.request(one, 200), broken, Self.request(other, 400),
          Self.request("user:nobody", 450, application: "other"), Self.request(other, 500), Self.request(one, 1_000),
        ])
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 8 }
      #expect(try await [lane.waiting(tokens[0]), lane.waiting(tokens[1])] == [3, 1])
      #expect(try await Self.rejected(lane) == [2, 3, 6])
      #expect(try await lane.kafka.admin.ends(of: [TopicPartition(lane.topics.deadLetters, 0)]).values.first?.count == 0)
      let events = try await lane.kafka.records(of: lane.topics.events, count: 5).filter { $0.header("ce_type") == "carillon.rejected.v1" }
        .map { try JSONValue(parsing: $0.text) }
      #expect(Set(events.compactMap { $0["retryAfter"]?.stringValue }) == [Timestamp.text(Self.start + 1_000)])
      #expect(events.map { $0["field"]?.stringValue ?? "" }.sorted() == ["apns-topic", "target", "target"])
      #expect(lane.metric(#"carillon_transform_rate_limited_total{scope="target"}"#) == 2)
      #expect(lane.metric(#"carillon_transform_rate_limited_total{scope="application"}"#) == 1)
    }
  }

  /// On the embedded broker, which finds no offsets by time, and on the real one.
  ///
  /// A marker lacks its timestamp above records that cannot be read.
  @Test(arguments: KafkaFixture.realServers == nil ? [false] : [false, true], [false, true])
  func `the verdicts are the same when another lane goes on in the middle of a window`(isReal: Bool, isTimeKnown: Bool) async throws {
    // A real broker gives records its own time unless the topic says otherwise.
    let settings: @Sendable (Topics) -> [String: [String: String]] = { topics in
      let timed = ["message.timestamp.type": "CreateTime"]
      return [topics.requests: timed, topics.applications: timed]
    }
    try await TransformFixture.with(
      before: { lane in
        try await Self.limit(lane, RateLimit(perTarget: 10, perApplication: nil, window: 10_000), at: Self.start - 40_000)
      }, sessionMilliseconds: 6_000, real: isReal ? settings : nil
    ) { lane in
      // Long before, in the window before, in this one.
      try await Self.publish(
        lane,
        (0..<30).map { Self.request("user:ada", -30_000 + $0) } + (0..<5).map { Self.request("user:ada", -100 + $0) }
          + (0..<7).map { Self.request("user:ada", $0) })
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 42 }
      await lane.drain(withinMilliseconds: hangMilliseconds)
      if !isTimeKnown {
        for bucket in 0..<TransformFixture.buckets {
          let marker = Marker(offset: 42, timestamp: -1, incarnation: 0)
          try await lane.probe.command("HSET", .text(TransformFixture.keys.markers(bucket)), "q0", .bytes(marker.bytes))
        }
      }
      // Some step back, and stay in the window.
      try await Self.publish(lane, (0..<7).map { Self.request("user:ada", $0 % 2 == 0 ? -50 : 100 + $0) })
      try await lane.beside(1) { _ in
        await lane.eventually("all are finished by the other lane") { try await lane.committed(lane.topics.requests) == 49 }
      }
      #expect(try await Self.rejected(lane) == Array(10..<30) + Array(45..<49))
    }
  }

  @Test func `a rewind counts nothing twice and forgets nothing`() async throws {
    try await TransformFixture.with(before: { lane in
      try await Self.limit(lane, RateLimit(perTarget: 10, perApplication: nil, window: 10_000), at: Self.start - 10_000)
    }) { lane in
      var published = 0
      for round in 0..<5 {
        try await Self.publish(lane, (0..<3).map { Self.request("user:ada", Int64(10 * round + $0)) })
        published += 3
        await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == Int64(published) }
        try await lane.probe.command("CLIENT", "KILL", "TYPE", "normal")
        await lane.eventually("the lane is ready again") { lane.health.isReady }
      }
      #expect(try await Self.rejected(lane) == Array(10..<15))
    }
  }

  @Test func `while Kafka does not give the last window its partition waits, and the lane says so`() async throws {
    try await TransformFixture.with(
      { $0.askMilliseconds = 10_000 },
      before: { lane in
        try await Self.limit(lane, RateLimit(perTarget: 2, perApplication: nil, window: 10_000), at: Self.start - 10_000)
      }
    ) { lane in
      try await Self.publish(lane, (0..<2).map { Self.request("user:ada", $0) })
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 2 }
      try lane.kafka.embedded?.takeDown()
      // After a lost connection the lane goes back to its markers.
      try await lane.probe.command("CLIENT", "KILL", "TYPE", "normal")
      await lane.eventually("the lane says what waits") {
        lane.health.unready.contains { $0.name == "limits" && $0.reason.hasPrefix("partitions wait until") }
      }
      try lane.kafka.embedded?.bringUp()
      await lane.eventually("it is ready again") { lane.health.isReady }
      try await Self.publish(lane, [Self.request("user:ada", 2)])
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 3 }
      // A client that has seen the broker away may fail once more.
      await lane.eventually("the third is rejected, and no other") { try await Self.rejected(lane) == [2] }
    }
  }

  @Test func `a rebuild brings back what was accepted, and nothing else`() async throws {
    try await TransformFixture.with(before: { lane in
      try await Self.limit(lane, RateLimit(perTarget: 3, perApplication: nil, window: 1_000), at: Self.start - 10_000)
    }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await Self.publish(lane, (0..<5).map { Self.request("device:\(token)", $0) })
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 5 }
      #expect(try await lane.waiting(token) == 3)
      await lane.drain(withinMilliseconds: hangMilliseconds)
      try await lane.rebuild()
      #expect(try await lane.waiting(token) == 3)
    }
  }

  @Test func `replays and firings do not count, and a redriven request does`() async throws {
    try await TransformFixture.with(before: { lane in
      try await Self.limit(lane, RateLimit(perTarget: 2, perApplication: nil, window: 10_000), at: Self.start - 10_000)
    }) { lane in
      func origin(_ why: Origin.Purpose) -> [TestRecord.Header] {
        var json = JSONWriter()
        let source = SourceCoordinates(topic: lane.topics.requests, partition: 0, offset: 0, timestamp: Self.start)
        Origin.write(cluster: "carillon", source, why: why, to: &json)
        return [.init("carillon-origin", json.text)]
      }
      let schedule = JournalReference(revision: Revision(timestamp: 1, partition: 0, offset: 1), id: NotificationID(high: 1, low: 2))
      let fired = FiringHeader(schedule: schedule, .init(zone: "", due: 2, name: 1))
      var json = JSONWriter()
      fired.write(to: &json)
      let firing: [TestRecord.Header] = [
        .init("carillon-firing", json.text), .init("apns-id", fired.occurrence.description), .init("apns-collapse-id", "a"),
      ]
      try await Self.publish(
        lane,
        [
          Self.request("user:ada", 0), Self.request("user:ada", 1, origin(.replay)), Self.request("user:ada", 2, origin(.replay)),
          Self.request("user:ada", 3, firing), Self.request("user:ada", 4, origin(.redrive)),
          Self.request("user:ada", 5, origin(.redrive)), Self.request("user:ada", 6),
        ])
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 7 }
      // A redriven request has its first place in the event.
      let events = try await lane.kafka.records(of: lane.topics.events, count: 4).compactMap { record -> (String, Int64)? in
        guard record.header("ce_type") == "carillon.rejected.v1" else { return nil }
        let event = try JSONValue(parsing: record.text)
        return (event["reason"]?.stringValue ?? "", event["source"]?["offset"]?.integerValue ?? -1)
      }
      #expect(events.count { $0 == ("TooManyRequests", 0) } == 1 && events.count { $0 == ("TooManyRequests", 6) } == 1)
      #expect(events.count == 2)
    }
  }

  @Test func `a replay of a request that was beyond the limit does not pass it`() async throws {
    try await TransformFixture.with(before: { lane in
      try await Self.limit(lane, RateLimit(perTarget: 1, perApplication: nil, window: 10_000), at: Self.start - 10_000)
    }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      for round in 0..<5 as Range<Int64> {
        var json = JSONWriter()
        let time = Self.start + 10_000 * round
        let source = SourceCoordinates(topic: lane.topics.requests, partition: 0, offset: 3 * round + 1, timestamp: time + 1)
        Origin.write(cluster: "carillon", source, why: .replay, to: &json)
        let replay = Self.request("device:\(token)", 10_000 * round + 2, [.init("carillon-origin", json.text)])
        let others = (0..<2).map { Self.request("device:\(token)", 10_000 * round + $0) }
        try await Self.publish(lane, others + [replay])
        await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 3 * (round + 1) }
        #expect(try await lane.waiting(token) == Int(round) + 1)
      }
      #expect(lane.count(.rejected) == 5 && lane.count(.replayed) == 5)
      #expect(try await Self.rejected(lane) == [1, 4, 7, 10, 13])
    }
  }

  @Test func `a limit that ends lets requests pass from its end on`() async throws {
    try await TransformFixture.with(before: { lane in
      let limit = RateLimit(perTarget: 1, perApplication: nil, window: 10_000)
      try await Self.limit(lane, limit, at: Self.start - 10_000)
      let value = try #require(ApplicationStops().value(.limit(limit, by: "eve"), forgettingBefore: 0))
      let former = try value.withUnsafeBytes { try ApplicationStops($0, timestamp: Self.start - 10_000) }
      try await Self.limit(lane, nil, at: Self.start - 4_000, after: former)
    }) { lane in
      try await Self.publish(lane, [0, 1, 999, 1_000, 1_001].map { Self.request("user:ada", $0) })
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 5 }
      #expect(try await Self.rejected(lane) == [1, 2])
    }
  }
}
