import EventLoop
package import Kafka
import Notifications
import Worker

/// How far a group is behind the end of a partition, or only the log of a partition that no group reads.
package struct PartitionLag: Sendable, Hashable {
  /// The partition.
  package var partition: TopicPartition
  /// The oldest existing offset, and the offset of the next record.
  package var log: Range<Int64>
  /// The committed offset, below which all is finished; nil if there is none.
  package var committed: Int64?
  /// The timestamp of the oldest unfinished record, in milliseconds since 1970; nil if there is none.
  package var oldest: Int64?
  /// The timestamp of the newest record; nil if there is none, or if it was not read, as in a topic of the group.
  package var newest: Int64?

  /// Unfinished records.
  package var records: Int64 { max(0, log.upperBound - max(committed ?? log.lowerBound, log.lowerBound)) }

  /// Records that were deleted before they were finished: the log begins after the committed offset.
  package var missed: Int64 { committed.map { max(0, log.lowerBound - $0) } ?? 0 }

  /// The age of the oldest unfinished record, in milliseconds; 0 at the end.
  package func behind(at now: Int64) -> Int64 { oldest.map { max(0, now - Timestamp.bounded($0)) } ?? 0 }
}

/// Reads how far a group is behind. Only `close` ends it.
final class GroupLag {
  private let admin: Admin
  private let offsets: GroupOffsets
  private let reader: TopicReader

  /// - Parameter admin: the caller keeps and closes it. Kafka may take as long for the group's offsets as for its answers.
  init(on loop: EventLoop, _ kafka: KafkaConfiguration, group: String, _ admin: Admin) throws(KafkaError) {
    self.admin = admin
    offsets = try GroupOffsets(kafka, group: group, timeoutMilliseconds: admin.timeoutMilliseconds)
    reader = .ofSingleRecords(on: loop, kafka)
  }

  /// Reads how far the group is behind in these partitions, in their order.
  ///
  /// It reads the first unfinished record of each partition, since Kafka tells no record's time otherwise.
  ///
  /// - Parameter moment: the deadline by the steady clock; a running call may exceed it.
  func read(_ partitions: [TopicPartition], by moment: Int64 = .max) async throws(KafkaError) -> [PartitionLag] {
    let committed = try await offsets.committed(partitions)
    // Read afterwards, so that the group is never ahead of the end.
    let ends = try await admin.ends(of: partitions)
    var lags = partitions.map { PartitionLag(partition: $0, log: ends[$0] ?? 0..<0, committed: committed[$0]?.offset) }
    let stretches = lags.filter { $0.records > 0 }.map { lag in
      // Offsets of a transaction may have no record.
      TopicStretch(lag.partition, max(lag.committed ?? 0, lag.log.lowerBound), lag.log.upperBound)
    }
    let oldest = try await reader.firstTimes(in: stretches, "the oldest records that are not finished", by: moment)
    for index in lags.indices { lags[index].oldest = oldest[lags[index].partition] }
    return lags
  }

  func close() async { await offsets.close() }
}

extension TopicReader {
  /// Reads the timestamp of the first record of each stretch that has one.
  ///
  /// - Parameter moment: the deadline by the steady clock.
  func firstTimes(in stretches: [TopicStretch], _ what: String, by moment: Int64) async throws(KafkaError) -> [TopicPartition: Int64] {
    var times: [TopicPartition: Int64] = [:]
    func isEnough() -> Bool { times.count == stretches.count || SteadyClock.milliseconds() >= moment }
    try await read(stretches, what, until: isEnough) { record in
      let partition = TopicPartition(record.topic, record.partition)
      if times[partition] == nil { times[partition] = record.timestamp }
    }
    if times.count < stretches.count, SteadyClock.milliseconds() >= moment { throw KafkaError(.timedOut, "read \(what)") }
    return times
  }
}
