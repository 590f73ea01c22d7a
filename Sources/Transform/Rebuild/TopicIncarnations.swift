import Kafka
import Notifications

/// Finds out how often the requests topic was deleted and made again, where the group does not know it: Kafka forgets what was committed
/// when a topic is deleted. A value.
///
/// The end of the journal says of each partition in which incarnation its last requests were read. Where the last of them still lies in the
/// topic, or before all that does, this is that incarnation; else it was made again since. A revision would not do: it may have been raised.
struct TopicIncarnations {
  /// The last request of each partition that the journal tells of: of the greatest incarnation the one of the greatest offset.
  private(set) var lastRequests: [Int32: Request] = [:]

  /// A request that was judged.
  struct Request: Equatable {
    let incarnation: UInt32
    let offset: Int64
    let timestamp: Int64
  }

  /// Records at the end of each partition of the journal that are read: a worker that had stood still may have written late.
  static let recordsRead: Int64 = 64

  /// Takes a record from the end of the journal; what is none says nothing.
  mutating func take(_ partition: Int32, headers: [(name: String, value: String)], _ value: UnsafeRawBufferPointer) {
    guard let journal = try? JournalRecord(headers: headers, value: value) else { return }
    try? journal.forEachEntry(in: value, partition: partition) { entry in
      // No record there has its timestamp.
      if case .unreadable = entry.content { return }
      let known = lastRequests[partition]
      guard known.map({ ($0.incarnation, $0.offset) < (journal.incarnation, entry.offset) }) ?? true else { return }
      lastRequests[partition] = Request(incarnation: journal.incarnation, offset: entry.offset, timestamp: entry.timestamp)
    }
  }

  /// The incarnation of a partition; nil when the journal tells nothing of it.
  ///
  /// - Parameters:
  ///   - there: the timestamp of the record that lies where the last request lay.
  ///   - offsets: what lies in the partition.
  func incarnation(of partition: Int32, there: Int64?, offsets: Range<Int64>) -> UInt32? {
    guard let last = lastRequests[partition] else { return nil }
    return there == last.timestamp || offsets.lowerBound > last.offset ? last.incarnation : last.incarnation &+ 1
  }
}
