import CRdKafka
import EventLoop

/// Back-pressure, and where a consumer stands.
///
/// A paused partition stays assigned and is not fetched. What librdkafka had fetched of it and not given yet is thrown away and fetched
/// again after `resume`, from the record after the last one that was given: nothing is lost and nothing is given twice. So a pause
/// costs a round trip and some traffic: it is for a partition that must wait while others flow; `hold` stops all of them at no cost.
extension Consumer {
  /// Stops the flow of these partitions; a batch that was given may still hold records of them.
  ///
  /// It waits for librdkafka's main thread, some microseconds. A new assignment of a partition begins unpaused.
  public func pause(_ indexes: some Sequence<Int>) {
    loop.preconditionOnLoop()
    let wanted = indexes.filter { partitions.all.indices.contains($0) && partitions[$0].state == .owned && !partitions[$0].isPaused }
    guard !wanted.isEmpty else { return }
    // Those that are searched are not fetched as it is.
    let list = PartitionList(wanted.filter { !partitions[$0].isSearched }.map { partitions[$0].topicPartition })
    rd_kafka_pause_partitions(client.pointer, list.pointer)
    for index in wanted { partitions[index].isPaused = true }
  }

  /// Lets the flow of these partitions go on.
  public func resume(_ indexes: some Sequence<Int>) {
    loop.preconditionOnLoop()
    // Resuming one that is not paused would make librdkafka fetch from an older position (its issue 4636).
    let wanted = indexes.filter { partitions.all.indices.contains($0) && partitions[$0].isPaused }
    guard !wanted.isEmpty else { return }
    let list = PartitionList(wanted.filter { !partitions[$0].isSearched }.map { partitions[$0].topicPartition })
    rd_kafka_resume_partitions(client.pointer, list.pointer)
    for index in wanted { partitions[index].isPaused = false }
  }

  /// Whether this partition is paused.
  public func isPaused(_ index: Int) -> Bool { partitions.all.indices.contains(index) && partitions[index].isPaused }

  /// The partitions that are assigned now, without those that are being revoked.
  public var assignment: [AssignedPartition] {
    loop.preconditionOnLoop()
    return partitions.ownedIndexes.map { partitions.assigned($0) }
  }

  /// The end of a partition's log as the last fetch has told it: no request is sent. Nil where none was answered yet.
  public func knownEnd(of index: Int) -> Int64? {
    loop.preconditionOnLoop()
    return partitions.all.indices.contains(index) ? end(of: index) : nil
  }

  /// Tells the same on any thread, also while the loop stands still; nil after the consumer's end.
  public func knownEndElsewhere(of index: Int) -> @Sendable () -> Int64? {
    loop.preconditionOnLoop()
    guard partitions.all.indices.contains(index) else { return { nil } }
    let name = partitions[index].topicPartition
    return { [client] in client.ifAlive { Self.end(of: name, $0) } ?? nil }
  }

  /// The timestamp of the last record that the handler was given, in milliseconds since 1970; nil before the first of the assignment, and
  /// where it has none.
  public func timestamp(of index: Int) -> Int64? {
    guard partitions.all.indices.contains(index), partitions[index].position.next >= 0 else { return nil }
    let timestamp = partitions[index].position.timestamp
    return timestamp >= 0 ? timestamp : nil
  }

  /// The offset after the last record that the handler was given; nil before the first of the assignment.
  public func position(of index: Int) -> Int64? {
    guard partitions.all.indices.contains(index), partitions[index].position.next >= 0 else { return nil }
    return partitions[index].position.next
  }
}
