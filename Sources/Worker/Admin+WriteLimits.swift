public import Kafka

extension Topics {
  /// What a topic must take as one batch at least, in bytes: an event with the longest texts, a delivery with the largest payload, or the
  /// verdicts on a page of a person's devices.
  public static let neededBatchBytes = 32 << 10
}

extension Admin {
  /// Asks what the brokers take of those who write to these topics, and logs what an operator should know of that.
  public func writeLimits(of topics: [String], logger: Logger) async throws(KafkaError) -> WriteLimits {
    let limits = try await writeLimits(of: topics)
    for (topic, error) in limits.unknown.sorted(by: { $0.key < $1.key }) where error.code != .unknownTopicOrPartition {
      logger.warning(
        "max.message.bytes of a topic is not known; 1 MiB is assumed: allow this client to describe the topic's settings",
        ["topic": topic, "error": "\(error)"])
    }
    for (topic, bytes) in limits.batchBytes.sorted(by: { $0.key < $1.key }) where bytes < Topics.neededBatchBytes {
      logger.warning(
        "max.message.bytes of a topic is smaller than one record may be: raise it",
        ["topic": topic, "bytes": bytes, "neededBytes": Topics.neededBatchBytes])
    }
    return limits
  }
}
