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
  public func pause(_ indexes: some Sequence<Int>) {
    loop.preconditionOnLoop()
    let wanted = indexes.filter { partitions.all.indices.contains($0) && partitions[$0].state == .owned && !partitions[$0].isPaused }
    guard !wanted.isEmpty else { return }
    // Partitions under a search are not fetched in any case.
    let list = PartitionList(wanted.filter { !partitions[$0].isSearched }.map { partitions[$0].topicPartition })
    rd_kafka_pause_partitions(client.pointer, list.pointer)
    for index in wanted { partitions[index].isPaused = true }
  }

  /// Continues the flow of these partitions.
  public func resume(_ indexes: some Sequence<Int>) {
    loop.preconditionOnLoop()
    // Resuming a partition that is not paused would make librdkafka fetch from an older position (its issue 4636).
    let wanted = indexes.filter { partitions.all.indices.contains($0) && partitions[$0].isPaused }
    guard !wanted.isEmpty else { return }
    let list = PartitionList(wanted.filter { !partitions[$0].isSearched }.map { partitions[$0].topicPartition })
    rd_kafka_resume_partitions(client.pointer, list.pointer)
    for index in wanted { partitions[index].isPaused = false }
  }

  /// Whether this partition is paused.
  public func isPaused(_ index: Int) -> Bool { partitions.all.indices.contains(index) && partitions[index].isPaused }

  /// The assigned partitions, without those that are being revoked.
  public var assignment: [AssignedPartition] {
    loop.preconditionOnLoop()
    return partitions.ownedIndexes.map { partitions.assigned($0) }
  }

  /// The end of a partition's log by its last fetch; nil before the first. It sends no request.
  public func knownEnd(of index: Int) -> Int64? {
    loop.preconditionOnLoop()
    return partitions.all.indices.contains(index) ? end(of: index) : nil
  }

  /// Makes a function that answers `knownEnd` on any thread, even while the loop stands still; nil after the consumer's end.
  public func knownEndElsewhere(of index: Int) -> @Sendable () -> Int64? {
    loop.preconditionOnLoop()
    guard partitions.all.indices.contains(index) else { return { nil } }
    let name = partitions[index].topicPartition
    return { [client] in client.ifAlive { Self.end(of: name, $0) } ?? nil }
  }

  /// The timestamp of the last record that the handler got, in milliseconds since 1970. Nil before the first of the assignment, and if the
  /// record has none.
  public func timestamp(of index: Int) -> Int64? {
    guard partitions.all.indices.contains(index), partitions[index].position.next >= 0 else { return nil }
    let timestamp = partitions[index].position.timestamp
    return timestamp >= 0 ? timestamp : nil
  }

  /// The offset after the last record that the handler got; nil before the first of the assignment.
  public func position(of index: Int) -> Int64? {
    guard partitions.all.indices.contains(index), partitions[index].position.next >= 0 else { return nil }
    return partitions[index].position.next
  }
}
