package import Kafka
package import Store
import Worker

/// The log of a partition that no group reads.
package struct PartitionLog: Sendable, Hashable {
  /// The partition.
  package var partition: TopicPartition
  /// The oldest existing offset, and the offset of the next record.
  package var offsets: Range<Int64>
  /// The timestamp of the newest record, in milliseconds since 1970; nil if none was read.
  package var newest: Int64?
}

/// An open transaction. Before its end no reader gets its records or the later ones.
package struct OpenTransaction: Sendable, Hashable {
  /// The partition.
  package var partition: TopicPartition
  /// The offset of its first record.
  package var offset: Int64
  /// The number of offsets that wait for its end.
  package var records: Int64
  /// When its first record was written, in milliseconds since 1970.
  package var since: Int64
}

/// The state of one moment, which ``LagHistory`` judges.
package struct LagSample: Sendable {
  /// When it was taken, in milliseconds since 1970.
  package var time: Int64
  /// The same time by a steady clock, for rates.
  package var moment: Int64
  /// The partitions that the group reads.
  package var lags: [PartitionLag]
  /// The other partitions.
  package var logs: [PartitionLog]
  /// The group's members; nil if unknown.
  package var members: GroupMembers?
  /// The fan-out lanes; nil if unknown.
  package var lanes: [Lanes.Listing]?
  /// The number of the journal's partitions; nil if it is missing.
  package var journalPartitions: Int?
  /// The lags of fan-out lanes, by their workers' reports.
  package var laneLags: [FanOutLag] = []
  /// Open transactions.
  package var openTransactions: [OpenTransaction] = []
  /// What is unknown, and why.
  package var gaps: [LagGap] = []
}

/// Something that a sample lacks, and why.
package enum LagGap: Sendable, Hashable {
  /// A topic is missing.
  case topicMissing(String)
  /// The embedded broker does not report a group's members.
  case ownersUntold
  /// The group is rebalancing, or its coordinator is not ready.
  case ownersUnknown(String)
  /// Open transactions cannot be found.
  case transactionsUnknown(String)
  /// Redis was not given.
  case redisNotGiven
  /// Redis does not answer.
  case redisAway(String)
  /// Redis is full, and may refuse heartbeats of living lanes.
  case redisFull
}

/// The topics of a sample, in its order.
extension Topics {
  /// The topics that the transform workers' group reads.
  var ofGroup: [String] { [requests, devices] }
  /// The topics without a group that grow with the load. The stops of applications do not.
  var ofNoGroup: [String] { [deliveries, events, journal, deadLetters] }
}
