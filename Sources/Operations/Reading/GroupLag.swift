import EventLoop
public import Kafka
import Notifications

/// How far a group is behind the end of a partition.
public struct PartitionLag: Sendable, Hashable {
  /// The partition.
  public var partition: TopicPartition
  /// The oldest offset that is there, and the one that the next record will get.
  public var log: Range<Int64>
  /// The offset that the group has committed: all below is finished. Nil: it has committed none.
  public var committed: Int64?
  /// The timestamp of the oldest record that is not finished, in milliseconds since 1970; nil where there is none.
  public var oldest: Int64?

  /// Records that are not finished.
  public var records: Int64 { max(0, log.upperBound - max(committed ?? log.lowerBound, log.lowerBound)) }

  /// Records that are gone, and were not finished: the log begins behind what was committed.
  public var missed: Int64 { committed.map { max(0, log.lowerBound - $0) } ?? 0 }

  /// How old the oldest record is that is not finished, in milliseconds; 0 at the end.
  public func behind(at now: Int64) -> Int64 { oldest.map { max(0, now - Timestamp.bounded($0)) } ?? 0 }
}

/// Finds out how far a group is behind, as often as it is asked. Loop-confined; it is ended by `close`.
final class GroupLag {
  private let admin: Admin
  private let offsets: GroupOffsets
  private let reader: TopicReader

  /// - Parameter admin: stays the caller's.
  init(on loop: EventLoop, _ kafka: KafkaConfiguration, group: String, _ admin: Admin) throws(KafkaError) {
    self.admin = admin
    offsets = try GroupOffsets(kafka, group: group)
    reader = .ofSingleRecords(on: loop, kafka)
  }

  /// How far the group is behind in each of these partitions of one topic, in their order.
  ///
  /// Of a partition with records that are not finished, the first of them is read: Kafka tells no record's time otherwise.
  ///
  /// - Parameter moment: when it fails at the latest, give or take the call that is under way; by the steady clock.
  func read(_ partitions: [TopicPartition], by moment: Int64 = .max) async throws(KafkaError) -> [PartitionLag] {
    let committed = try await offsets.committed(partitions)
    // Asked afterwards: a group is never ahead of the end.
    let ends = try await admin.ends(of: partitions)
    var lags = partitions.map { PartitionLag(partition: $0, log: ends[$0] ?? 0..<0, committed: committed[$0]?.offset) }
    var oldest: [TopicPartition: Int64] = [:]
    let stretches = lags.filter { $0.records > 0 }.map { lag in
      // Of a transaction there may be offsets without a record.
      TopicStretch(lag.partition, max(lag.committed ?? 0, lag.log.lowerBound), lag.log.upperBound)
    }
    let names = Dictionary(stretches.map { ($0.partition.partition, $0.partition) }) { first, _ in first }
    let what = "the oldest records that are not finished"
    func isOver() -> Bool { SteadyClock.milliseconds() >= moment }
    try await reader.read(stretches, what, in: nil, until: { oldest.count == stretches.count || isOver() }) {
      guard let partition = names[$0.partition], oldest[partition] == nil else { return }
      oldest[partition] = $0.timestamp
    }
    if oldest.count < stretches.count, isOver() { throw KafkaError(.timedOut, "read \(what)") }
    for index in lags.indices { lags[index].oldest = oldest[lags[index].partition] }
    return lags
  }

  func close() async { await offsets.close() }
}
