import CRdKafka

/// Reading partitions without a group, and the group's committed offsets.
extension Consumer {
  /// Adds partitions outside of any group, and calls the handler.
  ///
  /// A position `.latest` becomes the partition's end at the time of the call, so every later record is read.
  ///
  /// - Parameter timeoutMilliseconds: for each partition whose end is read.
  /// - Returns: the partitions with the offsets where reading begins (nil for `.earliest`).
  @discardableResult
  public func assign(_ positions: [(TopicPartition, StartPosition)], timeoutMilliseconds: Int32 = 10_000) async throws(KafkaError)
    -> [AssignedPartition]
  {
    try requireOpen("assign")
    let ends = try await partitionEnds(positions.filter { $0.1 == .latest }.map(\.0), timeoutMilliseconds)
    try requireOpen("assign")
    let list = PartitionList(capacity: positions.count)
    var starts: [(TopicPartition, Int64?)] = []
    for (partition, position) in positions {
      let start: Int64? =
        switch position {
        case .earliest: nil
        case .offset(let offset): offset
        case .latest: ends[partition]
        }
      list.add(partition, offset: start ?? Int64(RD_KAFKA_OFFSET_BEGINNING))
      starts.append((partition, start))
    }
    let names = positions.map(\.0.description).joined(separator: ", ")
    if let error = read(positions.map(\.0), { .of(rd_kafka_incremental_assign(client.pointer, list.pointer), "assign \(names)") }) {
      throw error
    }
    return own(starts)
  }

  private func partitionEnds(_ wanted: [TopicPartition], _ timeout: Int32) async throws(KafkaError) -> [TopicPartition: Int64] {
    guard !wanted.isEmpty else { return [:] }
    return try await client.ask("ask for the ends of partitions", for: timeout) { client, timeout throws(KafkaError) in
      try watermarks(of: wanted, client, timeout).mapValues(\.upperBound)
    }
  }
}
