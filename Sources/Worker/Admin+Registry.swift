public import Kafka

extension Admin {
  /// Reads the ends of the partitions of `devices` that have records.
  public func registryEnds(_ topics: Topics) async throws(KafkaError) -> [Int32: Int64] {
    let partitions = try await describe(topic: topics.devices).partitions.map { TopicPartition(topics.devices, $0.id) }
    var ends: [Int32: Int64] = [:]
    for (partition, range) in try await self.ends(of: partitions) where !range.isEmpty { ends[partition.partition] = range.upperBound }
    return ends
  }
}
