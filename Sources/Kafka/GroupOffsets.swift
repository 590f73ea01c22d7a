import CRdKafka

/// Reads a group's committed offsets repeatedly without joining the group, from any thread. Only `close` ends it.
///
/// It asks by a consumer of that group. librdkafka's admin request ends the process if the coordinator answers with an error, for example
/// while it loads (librdkafka issue 5040).
public final class GroupOffsets: Sendable {
  /// The group's name.
  let group: String
  private let client: ClientHandle
  private let timeoutMilliseconds: Int32
  private let ended = Latch()

  /// Makes a client. Its first question connects.
  ///
  /// - Throws: an error that names the property if the configuration is wrong.
  public init(_ configuration: KafkaConfiguration, group: String, timeoutMilliseconds: Int32) throws(KafkaError) {
    self.group = group
    self.timeoutMilliseconds = timeoutMilliseconds
    let object = try configuration.merging(["group.id": group]).object(defaults: [:], forConsumer: true)
    try object.leaveOutLog()
    client = try ClientHandle(RD_KAFKA_CONSUMER, object, findsRefusals: true)
  }

  /// Reads the offsets of these partitions with their notes; partitions without one are left out.
  public func committed(_ partitions: [TopicPartition]) async throws(KafkaError) -> [TopicPartition: (offset: Int64, note: String)] {
    guard !partitions.isEmpty else { return [:] }
    let operation = "ask for the offsets of group \(group)"
    return try await client.ask(operation, for: timeoutMilliseconds) { client, timeout throws(KafkaError) in
      try committedOffsets(of: partitions, client, operation, timeout)
    }
  }

  /// Closes the client after its running call. Call it once.
  public func close() async {
    client.end(leavingGroup: false) { [ended] _ in ended.open(true) }
    _ = await ended.wait()
  }
}
