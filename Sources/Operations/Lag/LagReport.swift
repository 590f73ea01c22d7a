package import Kafka
package import Notifications
package import Store
import Worker

/// How far a cluster is behind, by one or more samples.
package struct LagReport: Sendable {
  /// When the newest sample was taken, in milliseconds since 1970.
  package var time: Int64
  /// The consumer group of the transform workers.
  package var group: String
  /// Its state and members; nil if unknown.
  package var members: GroupMembers?
  /// The topics that the group reads.
  package var topics: [TopicLag]
  /// The topics without a group: deliveries first.
  package var logs: [TopicLog]
  /// The living fan-out lanes; nil if unknown.
  package var lanes: [Lanes.Listing]?
  /// The problems.
  package var problems: [LagProblem]
  /// What is unknown, and why.
  package var gaps: [LagGap]
}

/// Records a second.
package struct LagRates: Sendable, Hashable {
  /// Written.
  package var `in`: Double
  /// Finished.
  package var out: Double
}

/// When a group will have finished all records.
package enum CatchUp: Sendable, Hashable {
  /// All records are finished.
  case atEnd
  /// The oldest unfinished record is so young that it is in progress.
  case keepsUp
  /// After this time, at the present rates.
  case after(milliseconds: Int64)
  /// Never at the present rates: not more is finished than written.
  case never
  /// The rates are unknown.
  case unknown
}

/// The owner of a partition.
package enum PartitionOwner: Sendable, Hashable {
  /// A member of the group.
  case member(GroupMembers.Member)
  /// It has no owner.
  case nobody
  /// The owner is unknown.
  case unknown
}

/// How far the group is behind in one partition.
package struct PartitionState: Sendable, Hashable {
  /// Offsets and the oldest record's time.
  package var lag: PartitionLag
  /// Unfinished records; none if the remaining offsets have no record, for example after a transaction.
  package var records: Int64 { lag.oldest == nil ? 0 : lag.records }
  /// The age of the oldest unfinished record, in milliseconds; 0 at the end.
  package var behind: Int64
  /// Nil before a second sample.
  package var rates: LagRates?
  /// When the group will have caught up.
  package var catchUp: CatchUp
  /// The partition's owner.
  package var owner: PartitionOwner

  /// The offsets that were deleted before they were finished; nil if there are none.
  package var missed: Range<Int64>? {
    guard let committed = lag.committed, lag.missed > 0 else { return nil }
    return committed..<lag.log.lowerBound
  }
}

/// How far the group is behind in one topic.
package struct TopicLag: Sendable {
  /// The topic.
  package var topic: String
  /// Its partitions by number.
  package var partitions: [PartitionState]

  /// Unfinished records.
  package var records: Int64 { partitions.reduce(0) { $0 + $1.records } }
  /// Records that were deleted before they were finished.
  package var missed: Int64 { partitions.reduce(0) { $0 + $1.lag.missed } }
  /// The partition that is furthest behind, by time and then by records; nil if all are at their ends.
  package var worst: PartitionState? {
    partitions.filter { $0.records > 0 }.max { ($0.behind, $0.records) < ($1.behind, $1.records) }
  }
  /// The age of the oldest unfinished record, in milliseconds.
  package var behind: Int64 { worst?.behind ?? 0 }
  /// The rates of all partitions together; nil if one is unknown.
  package var rates: LagRates? {
    partitions.reduce(LagRates(in: 0, out: 0)) { sum, each in
      sum.flatMap { sum in each.rates.map { LagRates(in: sum.in + $0.in, out: sum.out + $0.out) } }
    }
  }
  /// The estimate for the slowest partition.
  package var catchUp: CatchUp { partitions.map(\.catchUp).max { $0.rank < $1.rank } ?? .atEnd }
  /// The partitions without an owner.
  package var ownerless: [Int32] { partitions.filter { $0.owner == .nobody }.map(\.lag.partition.partition) }
}

extension CatchUp {
  /// Greater means later.
  fileprivate var rank: (Int, Int64) {
    switch self {
    case .atEnd: (0, 0)
    case .keepsUp: (1, 0)
    case .after(let milliseconds): (2, milliseconds)
    case .unknown: (3, 0)
    case .never: (4, 0)
    }
  }
}

/// A topic that no group reads.
package struct TopicLog: Sendable {
  /// One of its partitions.
  package struct Partition: Sendable, Hashable {
    /// Offsets and the newest record's time.
    package var log: PartitionLog
    /// Records written per second; nil before a second sample.
    package var rate: Double?
    /// The names of the living lanes that read it; nil if unknown, or if lanes do not read this topic.
    package var readers: [Name]?
    /// The lags of lanes in it; empty if no worker reports one, or if lanes do not read this topic.
    package var lags: [FanOutLag] = []

    /// The lane that is furthest behind.
    package var worst: FanOutLag? { lags.max { $0.rank < $1.rank } }
  }

  /// The topic.
  package var topic: String
  /// Its partitions by number.
  package var partitions: [Partition]

  /// The records in the log.
  package var records: Int64 { partitions.reduce(0) { $0 + Int64($1.log.offsets.count) } }
  /// The newest record's timestamp, in milliseconds since 1970; nil if there is none.
  package var newest: Int64? { partitions.compactMap(\.log.newest).max() }
  /// Records written per second; nil if one partition's rate is unknown.
  package var rate: Double? { partitions.reduce(0) { sum, each in sum.flatMap { sum in each.rate.map { sum + $0 } } } }
  /// Records that lanes have not taken yet; nil if no worker reports it.
  package var unread: Int64? {
    let lags = partitions.compactMap(\.worst)
    return lags.isEmpty ? nil : lags.reduce(0) { $0 + $1.records }
  }
  /// The lane that is furthest behind; nil if no worker reports one.
  package var worst: FanOutLag? { partitions.compactMap(\.worst).max { $0.rank < $1.rank } }
}

/// A problem. Any of them sets the exit code 1.
package enum LagProblem: Sendable, Hashable {
  /// These partitions have no owner.
  case ownerless(topic: String, partitions: [Int32])
  /// A partition's log begins after the committed offset. These offsets were deleted before they were finished.
  case missed(TopicPartition, Range<Int64>)
  /// The committed offset is beyond the log's end. The topic was made again, or was truncated.
  case beyondEnd(TopicPartition, committed: Int64, end: Int64)
  /// A transaction has been open for long. No reader gets its records or the later ones.
  case openTransaction(OpenTransaction)
  /// No fan-out lane is alive, so no device can be connected.
  case noLane
  /// A fan-out lane has stopped reading its partition, though its process runs.
  case laneStands(topic: String, FanOutLag)
  /// Partitions of the requests wait, because the journal has no partition of their number.
  case unjournaled(topic: String, partitions: [Int32], journal: String, count: Int)
  /// Partitions of deliveries get records, but no lane reads them.
  case unread(topic: String, partitions: [Int32])
}

extension LagProblem {
  /// Makes the problem that the journal has too few partitions; nil if it has enough, or is missing.
  ///
  /// - Parameters:
  ///   - requests: the partitions of the requests.
  ///   - journal: the number of the journal's partitions.
  init?(_ topics: Topics, requests: [Int32], journal: Int?) {
    guard let journal else { return nil }
    let waiting = requests.filter { Int($0) >= journal }.sorted()
    guard !waiting.isEmpty else { return nil }
    self = .unjournaled(topic: topics.requests, partitions: waiting, journal: topics.journal, count: journal)
  }
}
