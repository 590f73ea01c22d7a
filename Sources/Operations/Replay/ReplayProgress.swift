/// How far a replay has come in a partition. A value: records in their order and Kafka's answers in, the offset from which it may go on out.
public struct ReplayedPartition: Sendable {
  /// Its number.
  public let partition: Int32
  /// What is replayed of it; its end was found at the start, so what the replay writes lies behind it.
  public let offsets: Range<Int64>
  /// Behind the last record that was read.
  public private(set) var position: Int64
  /// Behind this lies what was written and was not saved: an offset of the same partition.
  public private(set) var written: Int64
  /// What became of the records that are done.
  public private(set) var counts = ReplayCounts()
  /// When the last record of the range was published, in milliseconds since 1970: another one lies there when the topic was made again. Nil where
  /// nobody knows it.
  var lastTimestamp: Int64?
  /// Records that are on their way to Kafka, and those behind them that were not meant, from `first` on.
  private var pending: [(offset: Int64, fate: ReplayFate)] = []
  private var first = 0

  /// Nothing is replayed yet.
  ///
  /// - Parameter end: where the partition ends now.
  public init(_ partition: Int32, _ offsets: Range<Int64>, end: Int64) {
    (self.partition, self.offsets, position, written) = (partition, offsets, offsets.lowerBound, end)
  }

  /// So far it was saved.
  init(_ partition: Int32, _ offsets: Range<Int64>, position: Int64, written: Int64, _ counts: ReplayCounts) {
    (self.partition, self.offsets, self.position, self.written) = (partition, offsets, position, written)
    self.counts = counts
  }

  /// All below is in Kafka, or was not meant.
  public var done: Int64 { first < pending.count ? pending[first].offset : position }

  /// Records that are read, and not done.
  var open: Int { pending.count - first }

  /// Whether all of it is done.
  public var isComplete: Bool { done >= offsets.upperBound }

  /// A record was read.
  ///
  /// - Parameter isAwaited: Kafka is to answer for it.
  mutating func read(_ offset: Int64, _ fate: ReplayFate, isAwaited: Bool) {
    position = max(position, offset + 1)
    if isAwaited || first < pending.count { pending.append((offset, fate)) } else { counts.add(fate) }
  }

  /// The next of those that were written is in Kafka.
  ///
  /// - Parameter place: where it lies there; less than 0 where Kafka has not said so.
  mutating func acknowledged(at place: Int64) {
    precondition(first < pending.count, "Kafka answers for what was written")
    written = max(written, place + 1)
    repeat {
      counts.add(pending[first].fate)
      first += 1
    } while first < pending.count && !pending[first].fate.isWritten
    if first > 64, first > pending.count / 2 {
      pending.removeFirst(first)
      first = 0
    }
  }

  /// What lies below is gone.
  mutating func leaveOut(below offset: Int64) { position = max(position, min(offset, offsets.upperBound)) }

  /// The record that was read last could not be written.
  mutating func refuse() {
    if let last = pending.indices.last, last >= first { pending[last].fate = .tooLarge }
    // Nobody answers for it.
    while first < pending.count, !pending[first].fate.isWritten {
      counts.add(pending[first].fate)
      first += 1
    }
  }

  /// There is nothing more to read.
  mutating func end() { position = max(position, offsets.upperBound) }

  /// After an interruption a record was found that had been written and not saved.
  ///
  /// - Parameter bytes: of its key and its value.
  mutating func found(_ offset: Int64, at place: Int64, bytes: Int, _ effect: ReplayEffect = .unknown) {
    position = max(position, min(offset + 1, offsets.upperBound))
    written = max(written, place + 1)
    counts.add(.written(bytes: bytes, effect))
  }
}

/// What becomes of a record that is read.
enum ReplayFate: Sendable {
  /// It is written again.
  case written(bytes: Int, ReplayEffect = .unknown)
  /// It is not meant.
  case passedOver
  /// Another replay has written it.
  case ofReplay
  /// The workers would reject its origin.
  case fromElsewhere
  /// With the headers of a replay it is larger than Kafka takes.
  case tooLarge

  var isWritten: Bool { if case .written = self { true } else { false } }
}

/// What became of the records that a replay has read.
public struct ReplayCounts: Sendable, Hashable {
  /// Written again, or to be written where nothing is.
  public var written: Int64 = 0
  /// Their keys and values, in bytes.
  public var bytes: Int64 = 0
  /// Not meant by the filter, or published outside the time.
  public var passedOver: Int64 = 0
  /// Written by another replay.
  public var ofReplays: Int64 = 0
  /// With an origin that does not count, or dated more than five minutes ahead: the workers would reject the replay.
  public var fromElsewhere: Int64 = 0

  /// Larger than Kafka takes, with the headers of a replay.
  public var tooLarge: Int64 = 0

  /// Of the written ones: applied before, by what the workers had applied when the replay began. Nothing happens with them.
  public var applied: Int64 = 0
  /// Of the written ones: their end has passed, so they are not shown.
  public var expired: Int64 = 0
  /// Of the written ones: they break a rule, and are rejected again.
  public var rejected: Int64 = 0
  /// Of the written ones: nobody knows whether they were applied before.
  public var unknown: Int64 = 0

  /// Those that have an effect at most: what is a repeat for its devices is found out by the workers alone.
  public var mayHaveEffect: Int64 { written - applied - expired - rejected }

  /// Nothing was read.
  public init() {}

  /// Those that were read.
  public var read: Int64 { written + passedOver + ofReplays + fromElsewhere + tooLarge }

  mutating func add(_ fate: ReplayFate) {
    switch fate {
    case .written(let count, let effect):
      written += 1
      bytes += Int64(count)
      switch effect {
      case .applied: applied += 1
      case .expired: expired += 1
      case .rejected: rejected += 1
      case .unknown: unknown += 1
      case .possible: break
      }
    case .passedOver: passedOver += 1
    case .ofReplay: ofReplays += 1
    case .fromElsewhere: fromElsewhere += 1
    case .tooLarge: tooLarge += 1
    }
  }

  static func + (one: ReplayCounts, other: ReplayCounts) -> ReplayCounts {
    var sum = one
    sum.written += other.written
    sum.bytes += other.bytes
    sum.passedOver += other.passedOver
    sum.ofReplays += other.ofReplays
    sum.fromElsewhere += other.fromElsewhere
    sum.tooLarge += other.tooLarge
    sum.applied += other.applied
    sum.expired += other.expired
    sum.rejected += other.rejected
    sum.unknown += other.unknown
    return sum
  }
}
