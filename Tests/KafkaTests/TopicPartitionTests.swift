import Kafka
import TestSupport
import Testing

@Suite struct TopicPartitionTests {
  @Test func theWorkersProducersPutAKeyWhereItIsSaidToLie() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("keys", partitions: 7)
      let keys = (0..<40).map { "user:\(String(repeating: "x", count: $0))é\($0)" }
      try await kafka.publish(keys.map { TestRecord(key: $0, "") }, to: topic)
      for record in try await kafka.records(of: topic, count: keys.count) {
        let key = String(decoding: record.key ?? [], as: UTF8.self)
        #expect(record.partition == TopicPartition.number(ofKey: key, of: 7), "\(key)")
      }
    }
  }
}
