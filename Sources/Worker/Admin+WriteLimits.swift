public import Kafka

extension Topics {
  /// The least limit of a topic's batch in bytes. The largest records are an event with the longest texts, a delivery with the largest
  /// payload, and the verdicts on a page of a person's devices.
  static let neededBatchBytes = 32 << 10
}

extension Admin {
  /// Reads the brokers' limits for writes to these topics, and logs those that an operator should raise.
  public func writeLimits(of topics: [String], logger: Logger) async throws(KafkaError) -> WriteLimits {
    let limits = try await writeLimits(of: topics)
    for (topic, error) in limits.unknown.sorted(by: { $0.key < $1.key }) where error.code != .unknownTopicOrPartition {
      logger.warning(
        "max.message.bytes of a topic is unknown and assumed to be 1 MiB: allow this client to describe the topic's settings",
        ["topic": topic, "error": "\(error)"])
    }
    for (topic, bytes) in limits.batchBytes.sorted(by: { $0.key < $1.key }) where bytes < Topics.neededBatchBytes {
      logger.warning(
        "max.message.bytes of a topic is smaller than its largest record: raise it",
        ["topic": topic, "bytes": bytes, "neededBytes": Topics.neededBatchBytes])
    }
    return limits
  }
}
