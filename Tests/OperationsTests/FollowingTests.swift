import EventLoop
import Kafka
import Notifications
import Synchronization
import TestSupport
import Testing
import Worker

@testable import Operations

/// Published requests are followed until each has its outcomes.
@Suite struct FollowingTests {
  private static let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"
  private static let device = String(repeating: "ab", count: 32)

  /// A request that lay at an offset first.
  private static func request(_ topics: Topics, first offset: Int64, target: String = "device:\(device)") -> TestRecord {
    let origin = #"{"cluster":"c","topic":"\#(topics.requests)","partition":0,"offset":\#(offset),"timestamp":1000,"why":"redrive"}"#
    return TestRecord(
      key: target, #"{"aps":{"alert":"x"}}"#,
      headers: [.init("target", target), .init("apns-topic", "com.example"), .init("apns-id", id), .init("carillon-origin", origin)],
      partition: 0)
  }

  /// An event of the request that lay at an offset first.
  private static func event(_ topics: Topics, _ type: String, first offset: Int64, of id: String = id) -> TestRecord {
    TestRecord(
      key: device,
      #"{"device":"\#(device)","worker":"w","source":{"topic":"\#(topics.requests)","partition":0,"offset":\#(offset),"timestamp":1000}}"#,
      headers: [
        .init("ce_specversion", "1.0"), .init("ce_id", "\(type)\(offset)"), .init("ce_type", "carillon.\(type).v1"),
        .init("ce_source", "/carillon/c"), .init("ce_subject", id),
      ], partition: 0)
  }

  private static func make(_ topics: Topics, on kafka: KafkaFixture) async throws {
    let names = [topics.requests, topics.events, topics.journal]
    for topic in names { try kafka.embedded?.createTopic(topic, partitions: 1) }
    try await kafka.admin.ensureTopics(names.map { TopicSpecification($0, partitions: 1) })
  }

  @Test func eachOfSeveralRequestsWithOneApnsIdHasItsOwnOutcome() async throws {
    try await KafkaFixture.with { kafka in
      let rules = RequestRules(topics: Topics(prefix: KafkaFixture.unique("followed") + "."))
      let topics = rules.topics
      try await Self.make(topics, on: kafka)
      let loop = EventLoop(name: "watch-test")
      let tool = ClusterTool(on: loop, kafka.configuration, rules)
      let positions = try await tool.placesToFollow()
      try await kafka.publish(Array(repeating: TestRecord("first", partition: 0), count: 20), to: topics.requests)
      try await kafka.publish((10..<13).map { Self.request(topics, first: $0) }, to: topics.requests)
      // They lie at 20, 21 and 22.
      #expect(try await kafka.records(of: topics.requests, count: 23).map(\.offset).last == 22)
      try await kafka.publish(
        [
          Self.event(topics, "rejected", first: 10), Self.event(topics, "delivered", first: 11),
          // Of a record with the same apns-id that nobody follows.
          Self.event(topics, "expired", first: 99),
        ], to: topics.events)
      let outcomes = Mutex<[Int64: FollowedRequest]>([:])
      let isKnown = Mutex(false)
      let following = Task {
        try await tool.follow((20..<23).map { ("\($0)", 0, $0) }, from: positions, forMilliseconds: 600_000) { outcome in
          let count = outcomes.withLock {
            $0[Int64(outcome.id) ?? -1] = outcome
            return $0.count
          }
          if count == 2 { isKnown.withLock { $0 = true } }
        }
      }
      await eventually("two have their outcomes") { isKnown.withLock { $0 } }
      // It looks once more, and nothing is told of the third.
      following.cancel()
      try await following.value
      await loop.close()
      let found = outcomes.withLock { $0 }
      #expect(found.count == 3, "each is told of once: \(found)")
      #expect(found[20]?.explanation.devices.first?.outcome == .rejected && found[20]?.isSettled == true)
      #expect(found[21]?.explanation.devices.first?.outcome == .delivered && found[21]?.isSettled == true)
      #expect(found[22]?.explanation.devices.isEmpty == true && found[22]?.isSettled == false, "nothing is told of the third")
    }
  }
}
