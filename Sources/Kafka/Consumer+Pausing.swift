import CRdKafka
import EventLoop

/// Back-pressure, and the consumer's positions.
///
/// A paused partition stays assigned and is not fetched. librdkafka drops its prefetched records, and after `resume` fetches them again
/// from the next record on. So nothing is lost or repeated.
/// A pause costs a round trip and traffic: use it for a partition that must wait while others flow. `hold` stops all partitions at no cost.
extension Consumer {
  /// Stops the flow of these partitions. A batch that was given may still contain their records.
  ///
  /// It waits for librdkafka's main thread, some microseconds. A new assignment of a partition begins unpaused.
  public func pause(_ indexes: some Sequence<Int>) { setPaused(true, indexes.filter { partitions.known($0)?.state == .owned }) }

  /// Continues the flow of these partitions.
  public func resume(_ indexes: some Sequence<Int>) { setPaused(false, Array(indexes)) }

  private func setPaused(_ isPaused: Bool, _ indexes: [Int]) {
    loop.preconditionOnLoop()
    // Resuming a partition that is not paused would make librdkafka fetch from an older position (its issue 4636).
    let wanted = indexes.filter { partitions.known($0)?.isPaused == !isPaused }
    guard !wanted.isEmpty else { return }
    // Partitions under a search are not fetched in any case.
    let list = PartitionList(wanted.filter { !partitions[$0].isSearched }.map { partitions[$0].topicPartition })
    if isPaused {
      rd_kafka_pause_partitions(client.pointer, list.pointer)
    } else {
      rd_kafka_resume_partitions(client.pointer, list.pointer)
    }
    for index in wanted { partitions[index].isPaused = isPaused }
  }

  /// Whether this partition is paused.
  public func isPaused(_ index: Int) -> Bool { partitions.known(index)?.isPaused == true }

  /// The assigned partitions, without those that are being revoked.
  public var assignment: [AssignedPartition] {
    loop.preconditionOnLoop()
    return partitions.ownedIndexes.map { partitions.assigned($0) }
  }

  /// The end of a partition's log by its last fetch; nil before the first. It sends no request.
  public func knownEnd(of index: Int) -> Int64? {
    loop.preconditionOnLoop()
    return partitions.known(index).flatMap { Self.end(of: $0.topicPartition, client.pointer) }
  }

  /// Makes a function that answers `knownEnd` on any thread, even while the loop stands still; nil after the consumer's end.
  public func knownEndElsewhere(of index: Int) -> @Sendable () -> Int64? {
    loop.preconditionOnLoop()
    guard let name = partitions.known(index)?.topicPartition else { return { nil } }
    return { [client] in client.ifAlive { Self.end(of: name, $0) } ?? nil }
  }

  /// The timestamp of the last record that the handler got, in milliseconds since 1970. Nil before the first of the assignment, and if the
  /// record has none.
  public func timestamp(of index: Int) -> Int64? {
    partitions.known(index).flatMap { $0.position.next >= 0 && $0.position.timestamp >= 0 ? $0.position.timestamp : nil }
  }

  /// The offset after the last record that the handler got; nil before the first of the assignment.
  public func position(of index: Int) -> Int64? { partitions.known(index).flatMap { $0.position.next >= 0 ? $0.position.next : nil } }
}
