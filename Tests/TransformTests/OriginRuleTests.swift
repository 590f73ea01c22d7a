import JSON
import EventLoop
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// What a producer comes to that writes `carillon-origin` itself.
@Suite struct OriginRuleTests {
  private static func id(_ number: Int) -> String { "\(number)0000000-0000-4000-8000-000000000000" }

  private static func origin(
    _ lane: TransformFixture, cluster: String = "carillon", topic: String? = nil, partition: Int32 = 0, offset: Int64 = 0,
    timestamp: Int64 = 0, why: Origin.Purpose = .redrive
  ) -> String {
    var json = JSONWriter()
    let source = SourceCoordinates(topic: topic ?? lane.topics.requests, partition: partition, offset: offset, timestamp: timestamp)
    Origin.write(cluster: cluster, source, why: why, to: &json)
    return json.text
  }

  private static func request(_ token: String, _ id: Int, collapse: String? = nil, origin: String? = nil) -> TestRecord {
    var headers: [TestRecord.Header] = [
      .init("target", "device:\(token)"), .init("apns-topic", TransformFixture.application), .init("apns-id", Self.id(id)),
    ]
    if let collapse { headers.append(.init("apns-collapse-id", collapse)) }
    if let origin { headers.append(.init("carillon-origin", origin)) }
    return TestRecord(key: token, #"{"aps":{"alert":"\#(id)"}}"#, headers: headers, partition: 0)
  }

  @Test func `an origin that does not count is rejected with its rule and blocks nothing`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      let origins = [
        (Self.origin(lane, cluster: "west"), "cluster"), (Self.origin(lane, topic: "other.requests"), "topic"),
        (Self.origin(lane, partition: 7), "partition"), (Self.origin(lane, offset: 1_000), "offset"),
        (Self.origin(lane, timestamp: .max), "five minutes"), (Self.origin(lane, timestamp: .max, why: .replay), "five minutes"),
      ]
      let records = origins.enumerated().map { Self.request(token, $0.offset + 1, collapse: "x", origin: $0.element.0) }
      try await lane.kafka.publish([Self.request(token, 8)] + records + [Self.request(token, 9, collapse: "x")], to: lane.topics.requests)
      await lane.eventually("all have a verdict") { lane.count(.rejected) + lane.count(.queued) == 8 }
      // The newest of the collapse id is not behind one from the end of time.
      #expect(lane.count(.queued) == 2)
      #expect(try await lane.waiting(token) == 2)
      let events = try await lane.kafka.records(of: lane.topics.events, count: 6).map { try JSONValue(parsing: $0.text) }
      for (event, (_, word)) in zip(events, origins) {
        #expect(event["reason"] == "BadRequestParams" && event["field"] == "carillon-origin")
        #expect(event["rule"]?.stringValue?.contains(word) == true, "it says: \(event.text)")
      }
      let letters = try await lane.kafka.records(of: lane.topics.deadLetters, count: 6)
      #expect(letters.allSatisfy { $0.header("carillon-dead-letter-field") == "carillon-origin" })
    }
  }

  @Test func `an origin that names another request's place leaves that request in the mailbox`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.kafka.publish([Self.request(token, 1)], to: lane.topics.requests)
      let first = try #require(try await lane.kafka.records(of: lane.topics.requests, count: 1).first)
      let origin = Self.origin(lane, offset: try #require(first.offset), timestamp: try #require(first.timestamp))
      try await lane.kafka.publish([Self.request(token, 2, origin: origin)], to: lane.topics.requests)
      await lane.eventually("both have a verdict") { lane.count(.queued) + lane.count(.collapsed) == 2 }
      let entries = try await lane.probe.command("HVALS", .text(TransformFixture.keys.mailbox(token))).array ?? []
      #expect(entries.compactMap(\.bytes).map { $0[0] } == [0x10], "the mailbox has the entry of the first one")
      let event = try JSONValue(parsing: try #require(try await lane.kafka.records(of: lane.topics.events, count: 1).first).text)
      #expect(event["by"]?["apnsId"]?.stringValue == Self.id(1), "it says: \(event.text)")
    }
  }

  /// One record would otherwise silence its target for five minutes.
  @Test func `a removal or a collapse id whose origin is ahead bars nothing that is published afterwards`() async throws {
    try await TransformFixture.with(partitions: 2) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      func ahead(_ offset: Int64) -> String { Self.origin(lane, offset: offset, timestamp: WallClock.milliseconds() + 290_000) }
      var removal = Self.request(tokens[0], 3, origin: ahead(0))
      (removal.value, removal.headers) = (Array(#"{"all":true}"#.utf8), removal.headers + [.init("operation", "remove")])
      try await lane.kafka.publish(
        [Self.request(tokens[1], 1), Self.request(tokens[1], 2), removal, Self.request(tokens[0], 4, collapse: "x", origin: ahead(1))],
        to: lane.topics.requests)
      await lane.eventually("all are kept") { lane.count(.queued) == 4 }
      var later = [Self.request(tokens[0], 5), Self.request(tokens[0], 6, collapse: "x")]
      for index in later.indices { later[index].partition = 1 }
      try await lane.kafka.publish(later, to: lane.topics.requests)
      await lane.eventually("what is published afterwards has a verdict") {
        lane.count(.queued) + lane.count(.canceled) + lane.count(.collapsed) >= 6
      }
      #expect(lane.count(.queued) == 6 && lane.count(.canceled) == 0)
    }
  }

  @Test func `a replay has no effect of its own, whatever its origin names`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      let replay = Self.origin(lane, offset: 0, why: .replay)
      try await lane.kafka.publish([Self.request(token, 1), Self.request(token, 2, origin: replay)], to: lane.topics.requests)
      await lane.eventually("both have a verdict") { lane.count(.queued) + lane.count(.replayed) == 2 }
      #expect(lane.count(.replayed) == 1)
      #expect(try await lane.waiting(token) == 1)
    }
  }
}
