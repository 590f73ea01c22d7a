import CRdKafka
import EventLoop

/// Partitions of the group that begin when and where the handler says (`Options.offersPartitions`).
extension Consumer {
  func offer(_ indexes: [Int]) { if !indexes.isEmpty { handler?.consumerOffered() } }

  /// The partitions that were offered to the handler and that it has not begun.
  public var offers: [AssignedPartition] {
    loop.preconditionOnLoop()
    return partitions.all.indices.filter { partitions[$0].state == .offered }.map { partitions.assigned($0) }
  }

  /// Reads an offered partition from an offset on, and calls the handler's `consumerAssigned`.
  ///
  /// - Parameter offset: where to begin; nil for the oldest record. If the log does not have the offset, `auto.offset.reset` decides.
  /// - Returns: false if the offer is over.
  @discardableResult
  public func begin(_ offer: AssignedPartition, at offset: Int64?) -> Bool {
    loop.preconditionOnLoop()
    guard state == .open, partitions.all.indices.contains(offer.index), partitions[offer.index].state == .offered,
      partitions[offer.index].generation == offer.generation
    else { return false }
    let list = PartitionList(capacity: 1)
    list.add(offer.topicPartition, offset: offset ?? Int64(RD_KAFKA_OFFSET_BEGINNING))
    let error = read([offer.topicPartition]) {
      .of(rd_kafka_incremental_assign(client.pointer, list.pointer), "begin \(offer.topicPartition)")
    }
    if let error {
      report(error)
      return false
    }
    _ = own([(offer.topicPartition, offset)])
    return true
  }

  /// Stops reading a partition of the group and offers it again. The handler is called as for a lost assignment: records of it do not count
  /// any more.
  public func startAgain(_ index: Int) {
    loop.preconditionOnLoop()
    guard state == .open, partitions.all.indices.contains(index), partitions[index].state == .owned else { return }
    let former = partitions.assigned(index)
    endSearches([index])
    resume([index])
    let list = PartitionList([former.topicPartition])
    report(.of(rd_kafka_incremental_unassign(client.pointer, list.pointer), "start \(former.topicPartition) again"))
    handler?.consumerRevoked([former], isLost: true, revocation: Revocation {})
    offer([partitions.offer(former.topicPartition, startsAgain: true, client: client.pointer)])
  }

  /// Restarts partitions whose topic was made again without another sign of it. The new log may be as long as the former one by then, so
  /// its end looks the same.
  ///
  /// It asks the brokers for the first record after the time of the last one that was given. If the log is the same, that record comes
  /// after the last one.
  public func startReplacedAgain() async throws(KafkaError) {
    let operation = "look for topics that were made again"
    try requireOpen(operation)
    let times = partitions.lastTimes
    guard !times.isEmpty, !isLookingForReplaced else { return }
    isLookingForReplaced = true
    defer { isLookingForReplaced = false }
    let asked = times.map { ($0.partition.topicPartition, $0.milliseconds + 1) }
    let found = try await client.ask(operation, for: 3_000) { client, timeout throws(KafkaError) in
      try firstOffsets(of: asked, client, timeout)
    }
    for (partition, milliseconds) in times {
      // During a revocation an unassignment counts as its consent.
      guard state == .open, revoking == nil, let offset = found[partition.topicPartition],
        partitions.isReplaced(partition, after: milliseconds, firstLater: offset)
      else { continue }
      handler?.consumerFailed(KafkaError(.logTruncated, "consume \(partition.topicPartition)"))
      startAgain(partition.index)
    }
  }
}
