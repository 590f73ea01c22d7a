import CRdKafka

/// Asks again and again for the offsets that a group has committed, without joining it: from any thread. It is ended by `close` and only by it.
///
/// A consumer of that group asks: librdkafka's request of the admin interface ends the process when the coordinator answers with an error,
/// such as while it loads (librdkafka issue 5040).
public final class GroupOffsets: Sendable {
  /// The group's name.
  public let group: String
  private let client: ClientHandle
  private let timeoutMilliseconds: Int32
  private let ended = Latch()

  /// Makes a client; it connects when it asks.
  ///
  /// - Throws: an error that names the property when the configuration is wrong.
  public init(_ configuration: KafkaConfiguration, group: String, timeoutMilliseconds: Int32 = 10_000) throws(KafkaError) {
    self.group = group
    self.timeoutMilliseconds = timeoutMilliseconds
    var configuration = configuration.merging(["group.id": group])
    configuration.statisticsIntervalMilliseconds = 0
    let object = try configuration.object(defaults: [:], forConsumer: true)
    try object.set("log.queue", "false")
    rd_kafka_conf_set_log_cb(object.pointer, nil)
    client = try ClientHandle(RD_KAFKA_CONSUMER, object)
  }

  /// The offsets of these partitions, and what the group keeps beside them; partitions without one are left out.
  public func committed(_ partitions: [TopicPartition]) async throws(KafkaError) -> [TopicPartition: (offset: Int64, note: String)] {
    guard !partitions.isEmpty else { return [:] }
    let operation = "ask for the offsets of group \(group)"
    return try await client.ask(operation, for: timeoutMilliseconds) { client, timeout throws(KafkaError) in
      try committedOffsets(of: partitions, client, operation, timeout)
    }
  }

  /// Ends the client after the call that is under way; once.
  public func close() async {
    client.end(leavingGroup: false) { [ended] in ended.open(true) }
    _ = await ended.wait()
  }
}
