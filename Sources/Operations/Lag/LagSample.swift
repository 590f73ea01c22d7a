public import Kafka
public import Store
import Worker

/// What a partition's log has, where no group says how far it is worked through.
public struct PartitionLog: Sendable, Hashable {
  /// The partition.
  public var partition: TopicPartition
  /// The oldest offset that is there, and the one that the next record will get.
  public var offsets: Range<Int64>
  /// The timestamp of the newest record, in milliseconds since 1970; nil where there is none, or none was read.
  public var newest: Int64?

  /// A log of its parts.
  public init(partition: TopicPartition, offsets: Range<Int64>, newest: Int64? = nil) {
    (self.partition, self.offsets, self.newest) = (partition, offsets, newest)
  }
}

/// A transaction that is open: its records and those behind it are given to no reader before its end.
public struct OpenTransaction: Sendable, Hashable {
  /// The partition.
  public var partition: TopicPartition
  /// The offset of its first record.
  public var offset: Int64
  /// How many offsets wait for its end.
  public var records: Int64
  /// When its first record was written, in milliseconds since 1970.
  public var since: Int64

  /// One of its parts.
  public init(partition: TopicPartition, offset: Int64, records: Int64, since: Int64) {
    (self.partition, self.offset, self.records, self.since) = (partition, offset, records, since)
  }
}

/// How things stand at one moment: what ``LagHistory`` judges.
public struct LagSample: Sendable {
  /// When it was taken, in milliseconds since 1970.
  public var time: Int64
  /// The same by a clock that is never set, for rates.
  public var moment: Int64
  /// The partitions that the group works through.
  public var lags: [PartitionLag]
  /// The others.
  public var logs: [PartitionLog]
  /// Who works through them; nil where that cannot be told.
  public var members: GroupMembers?
  /// The fan-out lanes; nil where that cannot be told.
  public var lanes: [Lanes.Listing]?
  /// How many partitions the journal has; nil where it is missing.
  public var journalPartitions: Int?
  /// How far those are behind whose workers tell.
  public var laneLags: [FanOutLag] = []
  /// Transactions that are open.
  public var openTransactions: [OpenTransaction] = []
  /// What could not be found out, and why.
  public var gaps: [LagGap] = []

  /// A sample of its parts.
  public init(
    time: Int64, moment: Int64, lags: [PartitionLag], logs: [PartitionLog], members: GroupMembers? = nil, lanes: [Lanes.Listing]? = nil
  ) {
    (self.time, self.moment, self.lags, self.logs) = (time, moment, lags, logs)
    (self.members, self.lanes) = (members, lanes)
  }
}

/// What a sample does not say, and why.
public enum LagGap: Sendable, Hashable {
  /// A topic is not there.
  case topicMissing(String)
  /// The broker is the embedded one, which tells no group's members.
  case ownersUntold
  /// The group is giving out its partitions, or its coordinator is not ready.
  case ownersUnknown(String)
  /// Which transactions are open cannot be found out.
  case transactionsUnknown(String)
  /// Nobody has said where Redis is.
  case redisNotGiven
  /// Redis does not answer.
  case redisAway(String)
  /// Redis is full, and may take no heartbeats of lanes that live.
  case redisFull
}

/// The topics that a sample tells of, in the order in which it does.
extension Topics {
  /// Those that the transform workers' group works through.
  var ofGroup: [String] { [requests, devices] }
  /// Those that no group works through and that grow with the work: the stops of applications do not.
  var ofNoGroup: [String] { [deliveries, events, journal, deadLetters] }
}
