import TestSupport
import Testing

@testable import Kafka

/// Which topics take no record, by what a producer is told of each.
@Suite struct TopicRefusalsTests {
  private static let invalid = KafkaError.Code(rawValue: 32)

  @Test(arguments: 0..<(isComplete ? 200 : 40)) func `a topic counts while it has refused every record for seconds`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var refusals = TopicRefusals()
    // Of each topic the times of the refusals since it took a record last, or since it was silent for so long that it is forgotten.
    var model: [String: [Int64]] = [:]
    var now: Int64 = 0
    for _ in 0..<400 {
      now += Int64.random(in: 0...(Int.random(in: 0..<20, using: &random) == 0 ? 100_000 : 3_000), using: &random)
      let topic = ["events", "deliveries"].randomElement(using: &random) ?? ""
      if Int.random(in: 0..<5, using: &random) == 0 {
        refusals.took(topic)
        model[topic] = nil
      } else {
        refusals.refused(topic, Self.invalid, at: now)
        if let last = model[topic]?.last, now - last > 90_000 { model[topic] = [] }
        model[topic, default: []].append(now)
      }
      let expected = model.filter { ($0.value.last ?? 0) - ($0.value.first ?? 0) >= 5_000 && now - ($0.value.last ?? 0) <= 90_000 }
      model = model.filter { now - ($0.value.last ?? 0) <= 90_000 }
      #expect(refusals.lasting(at: now).map(\.topic) == expected.keys.sorted())
      #expect(refusals.isEmpty == model.isEmpty)
    }
  }

  @Test func `what is refused for its own sake says nothing of its topic`() {
    var refusals = TopicRefusals()
    for now in [0, 10_000] as [Int64] {
      for code in [.messageTooLarge, .purged, .purgedInFlight, .unconfirmed, .closed, .unknownPartition] as [KafkaError.Code] {
        refusals.refused("events", code, at: now)
      }
    }
    #expect(refusals.isEmpty)
  }

  @Test(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
  func `a topic that refuses every record at once is known to`() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(settings: ["message.timestamp.type": "CreateTime", "message.timestamp.before.max.ms": "1000"])
      let lane = ProducerLane()
      try await lane.open(kafka.configuration)
      await eventually("the topic counts as one that takes nothing") {
        _ = try? await lane.produce(topic, "refused", timestamp: 1_000, opaque: 1)
        return await lane.refusingTopics == [topic]
      }
      await lane.end()
    }
  }
}
