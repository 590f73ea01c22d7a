public import Kafka
public import Notifications
public import Store
import Worker

/// How far a cluster is behind, as one or more samples show it.
public struct LagReport: Sendable {
  /// When the newest sample was taken, in milliseconds since 1970.
  public var time: Int64
  /// The group that works through the requests.
  public var group: String
  /// Its state and members; nil where that cannot be told.
  public var members: GroupMembers?
  /// The topics that it works through.
  public var topics: [TopicLag]
  /// The topics that no group works through: deliveries first.
  public var logs: [TopicLog]
  /// The living fan-out lanes; nil where that cannot be told.
  public var lanes: [Lanes.Listing]?
  /// What is wrong.
  public var problems: [LagProblem]
  /// What could not be found out, and why.
  public var gaps: [LagGap]
}

/// Records a second.
public struct LagRates: Sendable, Hashable {
  /// Written.
  public var `in`: Double
  /// Finished.
  public var out: Double

  /// Rates of both ways.
  public init(in rateIn: Double, out: Double) { (self.in, self.out) = (rateIn, out) }
}

/// When a group will have finished what there is.
public enum CatchUp: Sendable, Hashable {
  /// Nothing is unfinished.
  case atEnd
  /// The oldest unfinished record is so young that it is just being worked on.
  case keepsUp
  /// After so many milliseconds, if all goes on as it does.
  case after(milliseconds: Int64)
  /// Not at this rate: no more is finished than written.
  case never
  /// No rate is known.
  case unknown
}

/// Who works through a partition.
public enum PartitionOwner: Sendable, Hashable {
  /// A member of the group.
  case member(GroupMembers.Member)
  /// Nobody.
  case nobody
  /// That cannot be told.
  case unknown
}

/// How far the group is behind in one partition.
public struct PartitionState: Sendable, Hashable {
  /// Offsets and the oldest record's time.
  public var lag: PartitionLag
  /// Unfinished records: none where offsets follow that no record has, as behind a transaction.
  public var records: Int64 { lag.oldest == nil ? 0 : lag.records }
  /// How old the oldest unfinished record is, in milliseconds; 0 at the end.
  public var behind: Int64
  /// Nil before a second sample.
  public var rates: LagRates?
  /// When it will have caught up.
  public var catchUp: CatchUp
  /// Who works through it.
  public var owner: PartitionOwner

  /// The offsets of records that are gone and were not finished; nil where there are none.
  public var missed: Range<Int64>? {
    guard let committed = lag.committed, lag.missed > 0 else { return nil }
    return committed..<lag.log.lowerBound
  }
}

/// How far the group is behind in one topic.
public struct TopicLag: Sendable {
  /// The topic.
  public var topic: String
  /// Its partitions by number.
  public var partitions: [PartitionState]

  /// Unfinished records.
  public var records: Int64 { partitions.reduce(0) { $0 + $1.records } }
  /// Records that are gone and were not finished.
  public var missed: Int64 { partitions.reduce(0) { $0 + $1.lag.missed } }
  /// The partition that is the furthest behind, in time and then in records; nil where all are at their ends.
  public var worst: PartitionState? {
    partitions.filter { $0.records > 0 }.max { ($0.behind, $0.records) < ($1.behind, $1.records) }
  }
  /// How old the oldest unfinished record is, in milliseconds.
  public var behind: Int64 { worst?.behind ?? 0 }
  /// Of all partitions together; nil where one of them is not known.
  public var rates: LagRates? {
    partitions.reduce(LagRates(in: 0, out: 0)) { sum, each in
      sum.flatMap { sum in each.rates.map { LagRates(in: sum.in + $0.in, out: sum.out + $0.out) } }
    }
  }
  /// The slowest partition's.
  public var catchUp: CatchUp { partitions.map(\.catchUp).max { $0.rank < $1.rank } ?? .atEnd }
  /// The partitions that nobody works through.
  public var ownerless: [Int32] { partitions.filter { $0.owner == .nobody }.map(\.lag.partition.partition) }
}

extension CatchUp {
  /// Later is higher.
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

/// What one topic has that no group works through.
public struct TopicLog: Sendable {
  /// One of its partitions.
  public struct Partition: Sendable, Hashable {
    /// Offsets and the newest record's time.
    public var log: PartitionLog
    /// Records written in a second; nil before a second sample.
    public var rate: Double?
    /// The names of the living lanes that read it; nil where that cannot be told, or where lanes do not read this topic.
    public var readers: [Name]?
    /// How far lanes are behind in it; none where no worker tells, or where lanes do not read this topic.
    public var lags: [FanOutLag] = []

    /// The lane that is the furthest behind.
    public var worst: FanOutLag? { lags.max { $0.rank < $1.rank } }
  }

  /// The topic.
  public var topic: String
  /// Its partitions by number.
  public var partitions: [Partition]

  /// Records that are there.
  public var records: Int64 { partitions.reduce(0) { $0 + Int64($1.log.offsets.count) } }
  /// The newest record's timestamp, in milliseconds since 1970; nil where there is none.
  public var newest: Int64? { partitions.compactMap(\.log.newest).max() }
  /// Records written in a second; nil where it is not known of a partition.
  public var rate: Double? { partitions.reduce(0) { sum, each in sum.flatMap { sum in each.rate.map { sum + $0 } } } }
  /// Records that lanes have not taken; nil where no worker tells.
  public var unread: Int64? {
    let lags = partitions.compactMap(\.worst)
    return lags.isEmpty ? nil : lags.reduce(0) { $0 + $1.records }
  }
  /// The lane that is the furthest behind; nil where no worker tells.
  public var worst: FanOutLag? { partitions.compactMap(\.worst).max { $0.rank < $1.rank } }
}

/// What is wrong: each makes the answer no.
public enum LagProblem: Sendable, Hashable {
  /// Nobody works through these partitions.
  case ownerless(topic: String, partitions: [Int32])
  /// The log of a partition begins behind what the group wants next: these offsets are gone, and were not finished.
  case missed(TopicPartition, Range<Int64>)
  /// The group has committed more than the log has: the topic was made again, or has lost its end.
  case beyondEnd(TopicPartition, committed: Int64, end: Int64)
  /// A transaction is open for long: nobody is given its records, or those behind it.
  case openTransaction(OpenTransaction)
  /// No fan-out lane lives: no device can be connected.
  case noLane
  /// A fan-out lane takes nothing of its partition of this topic any more, though its process runs.
  case laneStands(topic: String, FanOutLag)
  /// Partitions of the requests wait, since the journal has no partition of their number.
  case unjournaled(topic: String, partitions: [Int32], journal: String, count: Int)
  /// Records come to partitions of deliveries that no lane reads.
  case unread(topic: String, partitions: [Int32])
}

extension LagProblem {
  /// That the journal is too small for the requests; nil where it is not, or is missing.
  ///
  /// - Parameters:
  ///   - requests: the partitions of the requests.
  ///   - journal: how many partitions the journal has.
  init?(_ topics: Topics, requests: [Int32], journal: Int?) {
    guard let journal else { return nil }
    let waiting = requests.filter { Int($0) >= journal }.sorted()
    guard !waiting.isEmpty else { return nil }
    self = .unjournaled(topic: topics.requests, partitions: waiting, journal: topics.journal, count: journal)
  }
}
