import EventLoop
import JSON
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// Requests of an application that is stopped and started again, on a lane.
@Suite struct StoppedApplicationTests {
  /// What somebody who stops and starts an application writes.
  private actor Switch {
    private var stops = ApplicationStops()
    private let lane: TransformFixture
    private let application: String

    init(_ lane: TransformFixture, _ application: String = TransformFixture.application) {
      (self.lane, self.application) = (lane, application)
    }

    /// Writes a change with a timestamp; a lane needs a moment to hear of it.
    func make(_ change: ApplicationStops.Change, at timestamp: Int64) async throws {
      try await lane.kafka.publish([try record(change, at: timestamp)], to: lane.topics.applications)
    }

    /// The record that makes a change.
    func record(_ change: ApplicationStops.Change, at timestamp: Int64) throws -> TestRecord {
      let value = try #require(stops.value(change, forgettingBefore: 0))
      stops = try value.withUnsafeBytes { try ApplicationStops($0, timestamp: timestamp) }
      return TestRecord(key: application, String(decoding: value, as: UTF8.self), partition: 0, timestamp: timestamp)
    }
  }

  /// A minute ago, so that nothing has expired.
  private static let start = WallClock.milliseconds() - 60_000

  /// A request that was published at so many milliseconds after the start.
  private static func request(
    _ target: String, _ milliseconds: Int64, id: String? = nil, application: String = TransformFixture.application,
    operation: String? = nil, origin: String? = nil
  ) -> TestRecord {
    var headers: [TestRecord.Header] = [.init("target", target), .init("apns-topic", application)]
    if let id { headers.append(.init("apns-id", id)) }
    if let operation { headers += [.init("operation", operation), .init("apns-collapse-id", "c")] }
    if let origin { headers.append(.init("carillon-origin", origin)) }
    return TestRecord(
      key: target, operation == nil ? #"{"aps":{"alert":"x"}}"# : "", headers: headers, partition: 0, timestamp: start + milliseconds)
  }

  private static func publish(_ lane: TransformFixture, _ records: TestRecord...) async throws {
    try await lane.kafka.publish(records, to: lane.topics.requests)
  }

  /// The events of a type, as many as there must be.
  private static func filtered(_ lane: TransformFixture, count: Int) async throws -> [JSONValue] {
    try await lane.kafka.records(of: lane.topics.events, count: count).filter { $0.header("ce_type") == "carillon.filtered.v1" }
      .map { try JSONValue(parsing: $0.text) }
  }

  @Test func whatIsPublishedBetweenStopAndStartIsFilteredAndNothingElse() async throws {
    try await TransformFixture.with(before: { lane in
      let stop = Switch(lane)
      try await stop.make(.stop(by: "eve", reason: "prices"), at: Self.start + 1_000)
      try await stop.make(.start(by: "eve"), at: Self.start + 2_000)
    }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await Self.publish(
        lane, Self.request("user:ada", 999), Self.request("user:ada", 1_000), Self.request("device:\(token)", 1_999),
        Self.request("device:\(token)", 1_500, operation: "remove"), Self.request("user:ada", 2_000))
      await lane.eventually("those before and after it wait, and the removal") { try await lane.waiting(token) == 3 }
      await lane.eventually("the others are filtered") { lane.count(.filtered) == 2 }
      // The two that are for a person and wait have one event each.
      let events = try await Self.filtered(lane, count: 4)
      #expect(events.count == 2 && events.allSatisfy { $0["reason"] == "ApplicationStopped" && $0["detail"] == "prices" })
      #expect(events.map { $0["device"]?.stringValue } == [nil, token] && events.first?["target"] == "user:ada")
    }
  }

  @Test func `a request that is filtered by a stop replaces what is pending under its identifier`() async throws {
    try await TransformFixture.with(before: { lane in
      let stop = Switch(lane)
      try await stop.make(.stop(by: "eve", reason: nil), at: Self.start + 1_000)
      try await stop.make(.start(by: "eve"), at: Self.start + 2_000)
    }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      for target in ["device:\(token)", "user:ada"] {
        try await lane.schedule(target, target.prefix(4).description, timestamp: Self.start + 500)
        var newer = Self.request(target, 1_500)
        newer.headers.append(.init("apns-collapse-id", target.prefix(4).description))
        try await Self.publish(lane, newer)
      }
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 4 }
      #expect(lane.count(.scheduled) == 2 && lane.count(.filtered) == 2)
      for identifier in ["devi", "user"] as [Name] {
        #expect(try await lane.state(of: identifier)?.phase == .ended(.replaced), "nothing of \(identifier) is shown after the start")
      }
    }
  }

  @Test func newWorkIsShownAfterTheStartAndAReplayRepeatsWhatWas() async throws {
    try await TransformFixture.with(before: { lane in
      let stop = Switch(lane)
      try await stop.make(.stop(by: "eve", reason: nil), at: Self.start + 1_000)
      try await stop.make(.start(by: "eve"), at: Self.start + 2_000)
    }) { lane in
      func origin(_ why: Origin.Purpose) -> String {
        var json = JSONWriter()
        let source = SourceCoordinates(topic: lane.topics.requests, partition: 0, offset: 0, timestamp: Self.start + 1_500)
        Origin.write(cluster: "carillon", source, why: why, to: &json)
        return json.text
      }
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await Self.publish(lane, Self.request("device:\(token)", 1_500))
      await lane.eventually("it is filtered") { lane.count(.filtered) == 1 }
      try await Self.publish(lane, Self.request("device:\(token)", 3_000, origin: origin(.replay)))
      await lane.eventually("the replay changes nothing") { lane.count(.replayed) == 1 }
      #expect(try await lane.waiting(token) == 0)
      try await Self.publish(lane, Self.request("device:\(token)", 3_000, origin: origin(.redrive)))
      await lane.eventually("new work waits for its device") { try await lane.waiting(token) == 1 }
    }
  }

  /// A lane reads all stops before it takes requests, and takes requests of other applications meanwhile and afterwards.
  @Test func aLaneKnowsTheStopsBeforeItsFirstRequest() async throws {
    try await TransformFixture.with(before: { lane in
      try await Switch(lane).make(.stop(by: "eve", reason: nil), at: Self.start + 1_000)
      let requests = (0..<50).map {
        Self.request("user:ada", 1_000 + $0, application: $0 % 2 == 0 ? TransformFixture.application : "other")
      }
      try await lane.kafka.publish(requests, to: lane.topics.requests)
    }) { lane in
      await lane.eventually("all are judged") { lane.count(.filtered) + lane.count(.unregistered) == 50 }
      #expect(lane.count(.filtered) == 25)
    }
  }

  /// What the lane does not know yet may have ended the stop: it asks before it filters anything.
  @Test func whatIsPublishedAfterTheStartIsNeverFilteredHoweverLateTheLaneHearsOfIt() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      let stop = Switch(lane)
      try await KafkaWriter.with(lane.kafka.configuration) { writer in
        for round in 0..<5 as Range<Int64> {
          let time = round * 1_000
          try await writer.write(
            try await stop.record(.stop(by: "eve", reason: nil), at: Self.start + time + 100), to: lane.topics.applications)
          let before = lane.count(.filtered)
          while lane.count(.filtered) == before {
            let judged = lane.count(.unregistered)
            try await writer.write(Self.request("user:nobody", time + 200), to: lane.topics.requests)
            await lane.eventually("it is judged") { lane.count(.unregistered) + lane.count(.filtered) > judged + before }
          }
          let filtered = lane.count(.filtered)
          // The lane has just looked for stops, which it does every half a second here, and looks for requests all the time.
          try await writer.write(try await stop.record(.start(by: "eve"), at: Self.start + time + 500), to: lane.topics.applications)
          try await writer.write(Self.request("device:\(token)", time + 500), to: lane.topics.requests)
          await lane.eventually("it waits for its device") { try await lane.waiting(token) == Int(round) + 1 }
          #expect(lane.count(.filtered) == filtered)
        }
      }
    }
  }

  /// Judged before the lane has heard of the stop, and again by a lane that has: what its device has stays, and its end is told once.
  @Test func aStopThatIsHeardOfLateTakesNothingOutOfAMailbox() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      let first = Self.request("device:\(token)", 1_500)
      try await Self.publish(lane, first)
      await lane.eventually("it waits for its device") { try await lane.waiting(token) == 1 }
      try await Switch(lane).make(.stop(by: "eve", reason: nil), at: Self.start + 1_000)
      await lane.eventually("the lane has heard of it") {
        let judged = lane.count(.unregistered) + lane.count(.filtered)
        try await Self.publish(lane, Self.request("user:nobody", 1_600))
        await lane.eventually("it is judged") { lane.count(.unregistered) + lane.count(.filtered) > judged }
        return lane.count(.filtered) > 0
      }
      #expect(try await lane.waiting(token) == 1)
    }
  }

  private actor Reading: LoopActor {
    nonisolated let loop = EventLoop(name: "applications")

    func start(_ kafka: KafkaFixture, _ topics: Topics) async throws {
      let reader = ApplicationsReader(on: loop, kafka.configuration, topics, logger: .silent, health: nil)
      do {
        try await reader.start(kafka.admin, withinMilliseconds: hangMilliseconds)
        await reader.close()
      } catch {
        await reader.close()
        throw error
      }
    }

    /// What the health says when the stops were asked for while Kafka was away, and again when it was back.
    func ask(_ kafka: KafkaFixture, _ topics: Topics) async throws -> (away: [String], back: [String]) {
      let health = Health()
      let reader = ApplicationsReader(on: loop, kafka.configuration, topics, logger: .silent, health: health)
      let admin = try Admin(kafka.configuration, timeoutMilliseconds: 1_000)
      try await reader.start(kafka.admin, withinMilliseconds: hangMilliseconds)
      try kafka.embedded?.takeDown()
      let away = await ask(reader, admin, health)
      try kafka.embedded?.bringUp()
      var back = away
      await eventually("the stops are known") {
        back = await ask(reader, admin, health)
        return back.isEmpty
      }
      await admin.close()
      await reader.close()
      return (away, back)
    }

    private func ask(_ reader: ApplicationsReader, _ admin: Admin, _ health: Health) async -> [String] {
      reader.confirm { _ in }
      await reader.ask(admin)
      return health.unready.map { "\($0.name): \($0.reason)" }
    }
  }

  @Test func whileKafkaDoesNotTellTheStopsTheHealthSaysThatRequestsWait() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let reading = Reading()
      let topics = Topics(prefix: KafkaFixture.unique("away") + ".")
      try kafka.embedded?.createTopic(topics.applications, partitions: 1)
      let said = try await reading.ask(kafka, topics)
      #expect(said.away.count == 1 && said.away.first?.hasPrefix("applications: requests of stopped applications wait: ") == true)
      #expect(said.back.isEmpty)
      await reading.loop.close()
    }
  }

  @Test func withoutTheTopicALaneSaysWhatMakesIt() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let reading = Reading()
      let topics = Topics(prefix: KafkaFixture.unique("missing") + ".")
      await #expect { try await reading.start(kafka, topics) } throws: {
        "\($0)" == "there is no topic \(topics.applications): 'carillon topics create' makes it"
      }
      try kafka.embedded?.createTopic(topics.applications, partitions: 3)
      try await reading.start(kafka, topics)
      await reading.loop.close()
    }
  }
}
