import EventLoop
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Operations

/// Facts out of real records: requests as producers write them, events as workers do.
@Suite struct FactReaderTests {
  private static let token = String(repeating: "ab", count: 32)
  private static let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"

  private actor Lane: LoopActor {
    nonisolated let loop: EventLoop
    init(_ loop: EventLoop) { self.loop = loop }

    func facts(_ topic: String, _ kafka: KafkaFixture, _ read: @escaping @Sendable (RecordView) -> AuditFact?) async throws -> [AuditFact?]
    {
      let all = Facts()
      try await TopicReader(on: loop, kafka.configuration).read(try await kafka.admin.stretches(of: topic), "records") {
        all.facts.append(read($0))
      }
      return all.facts
    }
  }

  private final class Facts { var facts: [AuditFact?] = [] }

  private func request(_ headers: [String: String], _ value: String = #"{"aps":{"alert":"x"}}"#, key: String = "k") -> TestRecord {
    TestRecord(
      key: key, value, headers: headers.sorted { $0.key < $1.key }.map { .init($0.key, $0.value) }, partition: 0,
      timestamp: 1_700_000_000_000)
  }

  @Test func requests() async throws {
    try await KafkaFixture.with { kafka in
      var rules = RequestRules(topics: Topics(prefix: KafkaFixture.unique("facts") + "."))
      rules.cluster = "c"
      let topic = rules.topics.requests
      try kafka.embedded?.createTopic(topic, partitions: 1)
      try await kafka.admin.ensureTopics([TopicSpecification(topic, partitions: 1, settings: ["retention.ms": "-1"])])
      let origin = #"{"cluster":"c","topic":"\#(topic)","partition":0,"offset":1,"timestamp":1699999999000,"why":"redrive"}"#
      try await kafka.publish(
        [
          request([
            "target": "device:\(Self.token.uppercased())", "apns-topic": "com.example", "apns-id": Self.id, "apns-collapse-id": "order-7",
            "apns-expiration": "1700000060",
          ]),
          request(["target": "user:ada", "apns-topic": "com.example", "apns-expiration": "0"]),
          request(["target": "user:ada", "apns-topic": "com.example", "apns-priority": "7"]),
          request(["target": "user:ada", "apns-topic": "com.example", "operation": "remove", "apns-collapse-id": "order-7"], ""),
          request(["target": "user:ada", "apns-topic": "com.example", "apns-id": Self.id, "carillon-origin": origin]),
        ], to: topic)
      let reader = FactReader(rules)
      let facts = try await Lane(kafka.loop).facts(topic, kafka) { reader.request($0) }.compactMap(\.self)
      #expect(facts.map(\.offset) == [0, 1, 2, 3, 4])
      #expect(facts[0].id.description == Self.id && facts[0].device == StableHash.hash(Self.token))
      #expect(facts[0].identifier == StableHash.hash("order-7") && facts[0].number == 1_700_000_060_000)
      #expect(facts[0].time == 1_700_000_000_000 || kafka.embedded == nil)
      #expect(facts[1].flags.contains(.isForUser) && facts[1].device == 0 && facts[1].number == facts[1].time / 1000 * 1000 + 30_000)
      #expect(facts[1].identifier == StableHash.hash(facts[1].id.description))
      #expect(facts[2].flags.contains(.isBroken))
      #expect(facts[3].flags.contains(.isRemoval) && facts[3].identifier == facts[0].identifier)
      #expect(facts[4].flags.contains(.isRedrive) && facts[4].sourceOffset == 1 && facts[4].offset == 4)
      // Under another name the workers have rejected it.
      rules.cluster = "d"
      let other = FactReader(rules)
      let foreign = try await Lane(kafka.loop).facts(topic, kafka) { other.request($0) }.compactMap(\.self)
      #expect(foreign[4].flags.contains(.isBroken) && foreign[4].sourceOffset == 4)
    }
  }

  @Test func events() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("events")
      let rules = RequestRules()
      var records: [TestRecord] = []
      var writer = EventWriter(source: "/carillon/t", worker: "w", requestsTopic: rules.topics.requests)
      func write(_ facts: EventFacts) {
        writer.write(facts, at: 1_700_000_000_123)
        var record = TestRecord(key: "k", writer.withValue { String(decoding: $0, as: UTF8.self) }, partition: 0)
        writer.forEachHeader { record.headers.append(.init($0.rawValue, String(decoding: $1, as: UTF8.self))) }
        records.append(record)
      }
      var (token, identifier, response) = (Self.token, "örder \"7\"", "r-1")
      token.withUTF8 { token in
        identifier.withUTF8 { identifier in
          response.withUTF8 { response in
            var facts = EventFacts(.delivered)
            facts.id = NotificationID(Self.id)
            (facts.device, facts.identifier) = (UnsafeRawBufferPointer(token), UnsafeRawBufferPointer(identifier))
            facts.source = SourcePosition(partition: 3, offset: 42, timestamp: 1_700_000_000_000)
            facts.revision = Revision(timestamp: 1_700_000_000_007, partition: 3, offset: 42)
            write(facts)
            facts.details = .reason("known")
            write(facts)
            facts.type = .collapsed
            facts.details = .by(NotificationID(high: 1, low: 2))
            write(facts)
            facts.type = .response
            facts.details = .response(UnsafeRawBufferPointer(response), action: UnsafeRawBufferPointer(response), userText: nil, at: 5)
            write(facts)
            facts.device = .empty
            facts.type = .addressed
            facts.details = .addressed(devices: 12)
            write(facts)
            var device = EventFacts(.registered)
            device.device = UnsafeRawBufferPointer(token)
            write(device)
            // Zeros are an id like any other.
            facts.id = NotificationID(high: 0, low: 0)
            write(facts)
          }
        }
      }
      records.append(TestRecord("no event", partition: 0))
      records.append(TestRecord("{}", headers: [.init("ce_type", "carillon.evicted.v1"), .init("ce_id", "x")], partition: 0))
      try await kafka.publish(records, to: topic)
      let reader = FactReader(rules)
      let facts = try await Lane(kafka.loop).facts(topic, kafka) { if case .fact(let fact) = reader.event($0) { fact } else { nil } }
      let told: [Outcome?] = [.delivered, .delivered, .collapsed, .response, .addressed, .registered, .addressed, nil, nil]
      #expect(facts.map { $0?.outcome } == told)
      let all = facts.compactMap(\.self)
      #expect(all[0].id.description == Self.id && all[0].device == StableHash.hash(Self.token) && all[0].time == 1_700_000_000_123)
      #expect(all[0].identifier == StableHash.hash("örder \"7\"") && all[0].sourcePartition == 3 && all[0].sourceOffset == 42)
      #expect(all[0].order == Revision(timestamp: 1_700_000_000_007, partition: 3, offset: 42))
      #expect(all[0].flags == [.isOfTopic] && all[1].flags == [.isOfTopic, .isKnown] && all[2].flags == [.isOfTopic, .namesSuccessor])
      #expect(all[0].statement == all[1].statement && all[0].statement != all[2].statement && all[0].worker == all[2].worker)
      #expect(all[3].number == Int64(bitPattern: StableHash.hash("r-1")) && all[4].number == 12)
      #expect(all[5].device == all[0].device && all[6].id == NotificationID(high: 0, low: 0))
    }
  }
}
