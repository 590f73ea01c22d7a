import Notifications

/// Finds the incarnation of the requests topic if the group has no note of it. A value.
///
/// Kafka forgets the committed offsets of a deleted topic, with the notes. The end of the journal has the incarnation in which each
/// partition's last requests were read. If the last of them is still in the topic, or lies below its beginning, the incarnation is the
/// same; otherwise the topic was made again since. A revision would not show that, since it may have been raised.
struct TopicIncarnations {
  /// The last request of each partition in the journal: in the greatest incarnation the one with the greatest offset.
  private(set) var lastRequests: [Int32: Request] = [:]

  /// A request that was judged.
  struct Request: Equatable {
    let incarnation: UInt32
    let offset: Int64
    let timestamp: Int64
  }

  /// How many records at the end of each partition of the journal are read: a stalled worker may have written late.
  static let recordsRead: Int64 = 64

  /// Takes a record from the end of the journal. Other records are ignored.
  mutating func take(_ partition: Int32, headers: [(name: String, value: String)], _ value: UnsafeRawBufferPointer) {
    guard let journal = try? JournalRecord(headers: headers, value: value) else { return }
    try? journal.forEachEntry(in: value, partition: partition) { entry in
      // The entry has no timestamp of a record.
      if case .unreadable = entry.content { return }
      let known = lastRequests[partition]
      guard known.map({ ($0.incarnation, $0.offset) < (journal.incarnation, entry.offset) }) ?? true else { return }
      lastRequests[partition] = Request(incarnation: journal.incarnation, offset: entry.offset, timestamp: entry.timestamp)
    }
  }

  /// The incarnation of a partition; nil if the journal has no request of it.
  ///
  /// - Parameters:
  ///   - there: the timestamp of the record that is now at the last request's offset.
  ///   - offsets: the partition's present offsets.
  func incarnation(of partition: Int32, there: Int64?, offsets: Range<Int64>) -> UInt32? {
    guard let last = lastRequests[partition] else { return nil }
    return there == last.timestamp || offsets.lowerBound > last.offset ? last.incarnation : last.incarnation &+ 1
  }
}
