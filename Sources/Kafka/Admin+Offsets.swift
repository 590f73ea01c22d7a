import CRdKafka
import EventLoop

/// A consumer group as the cluster lists it.
public struct GroupDescription: Sendable, Hashable {
  /// Its name.
  public var name: String
  /// `Stable`, `Empty`, `PreparingRebalance` and so on.
  var state: String
}

extension Admin {
  /// Reads the ends of partitions: the oldest existing offset, and the offset of the next record.
  public func ends(of partitions: [TopicPartition]) async throws(KafkaError) -> [TopicPartition: Range<Int64>] {
    try await ask("ask for the ends of partitions") { client, timeout throws(KafkaError) in
      try watermarks(of: partitions, client, timeout)
    }
  }

  /// Finds the first offset at or after a time; if there is none, the partition's end. Not on the embedded broker.
  ///
  /// - Parameter milliseconds: since 1970.
  public func offsets(of partitions: [TopicPartition], at milliseconds: Int64) async throws(KafkaError) -> [TopicPartition: Int64] {
    try await offsets(at: Dictionary(partitions.map { ($0, milliseconds) }) { first, _ in first })
  }

  /// Finds the first offset of each partition at or after its own time. Not on the embedded broker.
  ///
  /// Without such a record it is the partition's end.
  ///
  /// - Parameter times: in milliseconds since 1970.
  public func offsets(at times: [TopicPartition: Int64]) async throws(KafkaError) -> [TopicPartition: Int64] {
    guard !times.isEmpty else { return [:] }
    var found = try await ask("ask for offsets by time") { client, timeout throws(KafkaError) -> [TopicPartition: Int64] in
      try firstOffsets(of: times.map { ($0.key, $0.value) }, client, timeout)
    }
    let missing = times.keys.filter { found[$0] == nil }
    for (partition, ends) in try await ends(of: missing) { found[partition] = ends.upperBound }
    return found
  }

  /// Reads the offsets that a group has committed; partitions without one are left out.
  ///
  /// - Parameter partitions: the partitions to ask for; nil for all of the cluster.
  public func committed(group: String, of partitions: [TopicPartition]? = nil) async throws(KafkaError) -> [TopicPartition: Int64] {
    try await committedWithNotes(group: group, of: partitions).mapValues(\.offset)
  }

  /// Reads the committed offsets with their notes (`Consumer.commitNote`); a missing note is empty.
  public func committedWithNotes(
    group: String, of partitions: [TopicPartition]? = nil
  ) async throws(KafkaError) -> [TopicPartition: (offset: Int64, note: String)] {
    let wanted =
      if let partitions { partitions } else {
        try await describeCluster().topics.values.flatMap { topic in topic.partitions.map { TopicPartition(topic.name, $0.id) } }
      }
    guard !wanted.isEmpty else { return [:] }
    let group = try GroupOffsets(configuration, group: group, timeoutMilliseconds: timeoutMilliseconds)
    let answer: Result<[TopicPartition: (offset: Int64, note: String)], KafkaError>
    do throws(KafkaError) { answer = .success(try await group.committed(wanted)) } catch { answer = .failure(error) }
    await group.close()
    return try answer.get()
  }

  /// Lists the consumer groups of the cluster. Not on the embedded broker.
  public func groups() async throws(KafkaError) -> [GroupDescription] { try await groups(ofAllBrokers: false) }

  /// Lists the consumer groups. If `isComplete`, a broker without an answer is an error even if others answer.
  func groups(ofAllBrokers isComplete: Bool) async throws(KafkaError) -> [GroupDescription] {
    try await ask("list groups") { client, timeout throws(KafkaError) in
      try Self.request(
        client, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS, "list groups", timeout,
        send: { queue, options in rd_kafka_ListConsumerGroups(client, options, queue) },
        take: { event throws(KafkaError) in
          var count = 0
          let result = rd_kafka_event_ListConsumerGroups_result(event)
          let listings = rd_kafka_ListConsumerGroups_result_valid(result, &count)
          var groups: [GroupDescription] = []
          for place in 0..<count {
            guard let name = rd_kafka_ConsumerGroupListing_group_id(listings?[place]) else { continue }
            let state = rd_kafka_consumer_group_state_name(rd_kafka_ConsumerGroupListing_state(listings?[place]))
            groups.append(GroupDescription(name: String(cString: name), state: state.map { String(cString: $0) } ?? "Unknown"))
          }
          rd_kafka_ListConsumerGroups_result_errors(result, &count)
          if count > 0, groups.isEmpty || isComplete, let error = rd_kafka_ListConsumerGroups_result_errors(result, &count)?[0] {
            throw KafkaError(rd_kafka_error_code(error), "list groups", message: String(cString: rd_kafka_error_string(error)))
          }
          return groups
        })
    }
  }
}

/// Reads the oldest existing offset and the offset of the next record. It blocks for at most the timeout.
///
/// - Note: librdkafka 2.0.2's `rd_kafka_query_watermark_offsets` looks for the leader that long, then waits for its request's own timeout,
///   a minute by default.
///   It also asks for one partition at a time. The request for offsets by time asks each leader once.
///   In Kafka's protocol (ListOffsets) the times -2 and -1 stand for the beginning and the end.
func watermarks(
  of partitions: [TopicPartition], _ client: OpaquePointer, _ timeout: Int32
) throws(KafkaError) -> [TopicPartition: Range<Int64>] {
  guard !partitions.isEmpty else { return [:] }
  let end = SteadyClock.milliseconds() + Int64(timeout)
  let lows = try logOffsets(RD_KAFKA_OFFSET_BEGINNING, of: partitions, client, timeout)
  let highs = try logOffsets(RD_KAFKA_OFFSET_END, of: partitions, client, Int32(clamping: max(1, end - SteadyClock.milliseconds())))
  var ends: [TopicPartition: Range<Int64>] = [:]
  for (partition, low) in lows { ends[partition] = low..<max(low, highs[partition] ?? low) }
  return ends
}

/// Reads where each partition begins or ends.
private func logOffsets(
  _ place: Int32, of partitions: [TopicPartition], _ client: OpaquePointer, _ timeout: Int32
) throws(KafkaError) -> [TopicPartition: Int64] {
  let list = PartitionList(capacity: partitions.count)
  for partition in partitions { list.add(partition, offset: Int64(place)) }
  let others = partitions.count > 1 ? " and \(partitions.count - 1) more" : ""
  try check(rd_kafka_offsets_for_times(client, list.pointer, timeout), "ask for the ends of \(partitions[0])\(others)")
  var offsets: [TopicPartition: Int64] = [:]
  for element in list.elements {
    let operation = "ask for the ends of \(element.topicPartition)"
    try check(element.err, operation)
    // librdkafka did not ask for partitions without a known leader.
    guard element.offset >= 0 else {
      throw KafkaError(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, operation)
    }
    offsets[element.topicPartition] = element.offset
  }
  return offsets
}

/// Reads the offsets that a consumer's group has committed, and their notes. It blocks.
func committedOffsets(
  of wanted: [TopicPartition], _ consumer: OpaquePointer, _ operation: String, _ timeoutMilliseconds: Int32
) throws(KafkaError) -> [TopicPartition: (offset: Int64, note: String)] {
  let list = PartitionList(wanted)
  try check(rd_kafka_committed(consumer, list.pointer, timeoutMilliseconds), operation)
  var offsets: [TopicPartition: (offset: Int64, note: String)] = [:]
  for element in list.elements {
    try check(element.err, operation)
    if element.offset >= 0 { offsets[element.topicPartition] = (element.offset, element.note) }
  }
  return offsets
}

/// Finds the first offset of each partition at or after its own time, in milliseconds since 1970. It leaves out partitions without one, and
/// those whose leader is unknown now.
func firstOffsets(
  of partitions: [(TopicPartition, milliseconds: Int64)], _ client: OpaquePointer, _ timeout: Int32
) throws(KafkaError) -> [TopicPartition: Int64] {
  let list = PartitionList(capacity: partitions.count)
  for (partition, milliseconds) in partitions { list.add(partition, offset: milliseconds) }
  try check(rd_kafka_offsets_for_times(client, list.pointer, timeout), "ask for offsets by time")
  var offsets: [TopicPartition: Int64] = [:]
  for element in list.elements where element.err == RD_KAFKA_RESP_ERR_NO_ERROR && element.offset >= 0 {
    offsets[element.topicPartition] = element.offset
  }
  return offsets
}
