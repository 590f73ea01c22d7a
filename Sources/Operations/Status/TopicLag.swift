import Kafka
package import Notifications
package import Store

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

  /// Younger records are in progress: offsets are committed once a second.
  private static let steadyMilliseconds: Int64 = 3_000

  /// The estimate for a partition, whose oldest unfinished record is this old.
  init(_ lag: PartitionLag, behind: Int64, _ rates: LagRates?) {
    self =
      if lag.records == 0 || lag.oldest == nil { .atEnd } else if behind < Self.steadyMilliseconds { .keepsUp } else if let rates {
        rates.out > rates.in
          ? .after(milliseconds: Int64(saturating: (Double(lag.records) / (rates.out - rates.in) * 1000).rounded(.up))) : .never
      } else { .unknown }
  }
}

/// How far a partition or a topic is read.
package struct ReadState: Sendable, Hashable {
  /// The records in the log.
  package var logged: Int64 = 0
  /// The newest record's timestamp, in milliseconds since 1970; nil if there is none, or if it was not read.
  package var newest: Int64?
  /// Records that the group has not finished, or that a fan-out lane has not taken; nil if unknown, or if nobody reads the topic.
  package var records: Int64?
  /// The age of the oldest of them, in milliseconds; 0 if there is none, nil if unknown.
  package var behind: Int64?
  /// Records written in a second; nil before a second sample.
  package var `in`: Double?
  /// Records finished in a second; nil before a second sample, and in topics without a group.
  package var out: Double?
  /// When the group will have caught up; nil in topics without a group.
  package var catchUp: CatchUp?
  /// Records that were deleted before they were finished.
  package var missed: Int64 = 0

  /// Greater means further behind. An unknown age is the greatest.
  package var rank: (Int64, Int64) { records ?? 0 == 0 ? (0, 0) : (behind ?? .max, records ?? 0) }

  /// The state of all partitions together: sums, and the worst of ages and estimates. A sum is unknown if a part of it is.
  init(_ parts: [ReadState]) {
    func sum(_ part: KeyPath<ReadState, Double?>) -> Double? {
      parts.reduce(0) { sum, each in sum.flatMap { sum in each[keyPath: part].map { sum + $0 } } }
    }
    (logged, missed) = (parts.reduce(0) { $0 + $1.logged }, parts.reduce(0) { $0 + $1.missed })
    newest = parts.compactMap(\.newest).max()
    let read = parts.filter { $0.records != nil }
    records = read.isEmpty ? nil : read.reduce(0) { $0 + ($1.records ?? 0) }
    behind = read.max { $0.rank < $1.rank }?.behind
    (self.in, out) = (sum(\.in), sum(\.out))
    catchUp = parts.compactMap(\.catchUp).max { $0.rank < $1.rank }
  }

  /// The state of a partition that the group reads.
  init(_ lag: PartitionLag, _ rates: LagRates?, at now: Int64) {
    // After a transaction the remaining offsets may have no record.
    (records, behind, missed) = (lag.oldest == nil ? 0 : lag.records, lag.behind(at: now), lag.missed)
    (logged, newest, self.in, out) = (Int64(lag.log.count), lag.newest, rates?.in, rates?.out)
    catchUp = CatchUp(lag, behind: lag.behind(at: now), rates)
  }

  /// The state of a partition without a group, of which a fan-out lane may have told how far it is.
  init(_ lag: PartitionLag, _ rates: LagRates?, _ lane: FanOutLag?) {
    (logged, newest, self.in) = (Int64(lag.log.count), lag.newest, rates?.in)
    (records, behind) = (lane?.records, lane?.records == 0 ? 0 : lane?.behind)
  }
}

/// The state of a partition.
package struct PartitionState: Sendable, Hashable {
  /// Its offsets.
  package var lag: PartitionLag
  /// How far it is read.
  package var state: ReadState
  /// Who reads it: the group's member, or lanes. Nil if unknown, or if nobody has to read the topic.
  package var readers: [String]?
}

/// The state of a topic.
package struct TopicLag: Sendable, Hashable {
  /// The topic.
  package var topic: String
  /// Its partitions by number.
  package var partitions: [PartitionState]

  /// How far all of them are read.
  package var state: ReadState { ReadState(partitions.map(\.state)) }
  /// The partition that is furthest behind, by time and then by records; nil if all are at their ends.
  package var worst: PartitionState? { partitions.filter { $0.state.records ?? 0 > 0 }.max { $0.state.rank < $1.state.rank } }
  /// The partitions that nobody reads, though somebody should.
  package var withoutReader: [Int32] { partitions.filter { $0.readers?.isEmpty == true }.map(\.lag.partition.partition) }
}

/// How far a fan-out lane is behind in `deliveries`, by its worker's last report.
package struct FanOutLag: Sendable, Hashable {
  /// The worker's name.
  package var worker: Name
  /// The lane's name in the worker.
  package var lane: String
  /// The partition.
  package var partition: Int32
  /// Records that the lane has not taken yet.
  package var records: Int64
  /// The age of the oldest of them in milliseconds; 0 if there is none, nil if unknown.
  package var behind: Int64?

  /// The lags in a worker's report; empty if the worker is silent, since its report is old then.
  package static func of(_ worker: Workers.Listing) -> [FanOutLag] {
    guard !worker.isSilent, let report = worker.report else { return [] }
    return report.laneLags.map {
      FanOutLag(worker: worker.name, lane: $0.lane, partition: $0.partition, records: $0.records, behind: $0.milliseconds)
    }
  }

  /// Greater means further behind. An unknown age is the greatest.
  var rank: (Int64, Int64) { (records == 0 ? 0 : behind ?? .max, records) }
}
