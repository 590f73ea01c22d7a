import CRdKafka
import EventLoop

/// Batches that librdkafka cannot read. Their partition stops until their end is known, then continues there.
extension Consumer {
  /// A search, and where it began.
  struct Search {
    let search: UnreadableSearch
    let generation: UInt32
    /// When reading continues after a failed search, by the loop's milliseconds.
    var goesOnAt: UInt64?
  }

  private static let lookMilliseconds = 20
  private static let retryMilliseconds = 1_000

  /// Handles a batch at this offset that librdkafka cannot read and would try again for ever.
  func foundUnreadable(_ index: Int, batch: Int64) {
    guard searches[index] == nil else { return }
    let partition = partitions[index]
    if !partition.isPaused { pauseFetching(index) }
    partitions[index].isSearched = true
    let known = [partition.position.next, partition.startOffset ?? -1].filter { $0 >= 0 }.max()
    searches[index] = Search(
      search: UnreadableSearch(partition.topicPartition, from: known ?? batch, configuration), generation: partition.generation)
    let timer = searchTimer ?? Timer(on: loop) { [unowned self] in takeFindings() }
    searchTimer = timer
    timer.start(after: Self.lookMilliseconds, repeating: Self.lookMilliseconds)
  }

  private func takeFindings() {
    for (index, each) in searches {
      guard let finding = each.search.finding else { continue }
      guard state == .open, partitions[index].state == .owned, partitions[index].generation == each.generation else {
        searches[index] = nil
        continue
      }
      if let moment = each.goesOnAt {
        guard loop.milliseconds() >= moment else { continue }
        searches[index] = nil
        // If librdkafka still cannot read the batch, it reports it again.
        goOn(index)
        continue
      }
      switch finding {
      case .readable, .failed:
        if case .failed(let error) = finding { handler?.consumerFailed(error) }
        searches[index]?.goesOnAt = loop.milliseconds() + UInt64(Self.retryMilliseconds)
      case .unreadable(let offsets, let error):
        searches[index] = nil
        let stretch = UnreadableStretch(partition: partitions.assigned(index), offsets: offsets, error: error)
        if handler?.consumerFoundUnreadable(stretch) != false { skip(stretch) }
      }
    }
    if searches.isEmpty { searchTimer?.stop() }
  }

  /// Continues reading after an unreadable stretch. It does nothing if the assignment is over.
  public func skip(_ stretch: UnreadableStretch) {
    loop.preconditionOnLoop()
    let index = stretch.partition.index
    guard state == .open, partitions.all.indices.contains(index), partitions[index].state == .owned, partitions[index].isSearched,
      partitions[index].generation == stretch.partition.generation
    else { return }
    partitions[index].position.give(stretch.offsets.upperBound - 1, at: -1, isAppendTime: false)
    if options.group == nil {
      goOn(index)
    } else {
      partitions.seek(index, to: stretch.offsets.upperBound)
      endSearch(index)
    }
  }

  /// Continues reading at the first offset that was not given.
  ///
  /// - Note: After a wrong checksum librdkafka 2.0.2 may look for the next batch at a wrong offset, which the log does not have. It stops
  ///   there if `auto.offset.reset` is `error`. A seek does not restart a stopped partition, an assignment does.
  private func goOn(_ index: Int) {
    guard options.group == nil else { return endSearch(index) }
    partitions[index].isSearched = false
    resumeFetching(index)
    let partition = partitions[index]
    let offset = [partition.position.next, partition.startOffset ?? -1].filter { $0 >= 0 }.max()
    let list = PartitionList(capacity: 1)
    list.add(partition.topicPartition, offset: offset ?? Int64(RD_KAFKA_OFFSET_BEGINNING))
    report(.of(rd_kafka_incremental_unassign(client.pointer, list.pointer), "stop \(partition.topicPartition)"))
    report(
      read([partition.topicPartition]) {
        .of(rd_kafka_incremental_assign(client.pointer, list.pointer), "go on with \(partition.topicPartition)")
      })
    if partition.isPaused { pauseFetching(index) }
  }

  private func endSearch(_ index: Int) {
    partitions[index].isSearched = false
    if !partitions[index].isPaused { resumeFetching(index) }
  }

  /// Stops the searches of revoked partitions.
  func endSearches(_ indexes: [Int]) {
    for index in indexes where partitions[index].isSearched {
      searches.removeValue(forKey: index)?.search.stop()
      endSearch(index)
    }
  }

  private func pauseFetching(_ index: Int) {
    let list = PartitionList([partitions[index].topicPartition])
    rd_kafka_pause_partitions(client.pointer, list.pointer)
  }

  private func resumeFetching(_ index: Int) {
    let list = PartitionList([partitions[index].topicPartition])
    rd_kafka_resume_partitions(client.pointer, list.pointer)
  }
}
