/// The progress of a replay in one partition, from records and Kafka's reports. A value.
public struct ReplayedPartition: Sendable {
  /// Its number.
  public let partition: Int32
  /// The offsets to replay. Their end was read at the start, so the replay's own records lie after it.
  public let offsets: Range<Int64>
  /// The offset after the last record that was read.
  public private(set) var position: Int64
  /// An offset of the same partition. Records that the replay wrote after its last save lie after it.
  public private(set) var written: Int64
  /// The counts of finished records.
  public private(set) var counts = ReplayCounts()
  /// The time of the range's last record, in milliseconds since 1970; nil if unknown. If the topic is made again, another record lies
  /// there.
  var lastTimestamp: Int64?
  /// Records on their way to Kafka and skipped records after them, from `first` on.
  private var pending: [(offset: Int64, fate: ReplayFate)] = []
  private var first = 0

  /// Makes the progress of a new replay.
  ///
  /// - Parameter end: the present end of the partition.
  public init(_ partition: Int32, _ offsets: Range<Int64>, end: Int64) {
    (self.partition, self.offsets, position, written) = (partition, offsets, offsets.lowerBound, end)
  }

  /// Makes the progress that was saved.
  init(_ partition: Int32, _ offsets: Range<Int64>, position: Int64, written: Int64, _ counts: ReplayCounts) {
    (self.partition, self.offsets, self.position, self.written) = (partition, offsets, position, written)
    self.counts = counts
  }

  /// All records below are in Kafka, or were skipped.
  public var done: Int64 { first < pending.count ? pending[first].offset : position }

  /// Records that were read and are not finished.
  var open: Int { pending.count - first }

  /// Whether all records are finished.
  public var isComplete: Bool { done >= offsets.upperBound }

  /// Notes a record that was read.
  ///
  /// - Parameter isAwaited: whether Kafka will report on it.
  mutating func read(_ offset: Int64, _ fate: ReplayFate, isAwaited: Bool) {
    position = max(position, offset + 1)
    if isAwaited || first < pending.count { pending.append((offset, fate)) } else { counts.add(fate) }
  }

  /// Notes that the next written record is in Kafka.
  ///
  /// - Parameter place: its offset there; less than 0 if unknown.
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

  /// Skips deleted records.
  mutating func leaveOut(below offset: Int64) { position = max(position, min(offset, offsets.upperBound)) }

  /// Notes that the last record could not be written.
  mutating func refuse() {
    if let last = pending.indices.last, last >= first { pending[last].fate = .tooLarge }
    // No report comes for skipped records.
    while first < pending.count, !pending[first].fate.isWritten {
      counts.add(pending[first].fate)
      first += 1
    }
  }

  /// Notes that all records were read.
  mutating func end() { position = max(position, offsets.upperBound) }

  /// Notes a record that was written before an interruption but not saved.
  ///
  /// - Parameter bytes: the size of its key and its value.
  mutating func found(_ offset: Int64, at place: Int64, bytes: Int, _ effect: ReplayEffect = .unknown) {
    position = max(position, min(offset + 1, offsets.upperBound))
    written = max(written, place + 1)
    counts.add(.written(bytes: bytes, effect))
  }
}

/// What happens with a record that was read.
enum ReplayFate: Sendable {
  /// It is written again.
  case written(bytes: Int, ReplayEffect = .unknown)
  /// It was not selected.
  case passedOver
  /// Another replay has written it.
  case ofReplay
  /// It has scheduled something or fires an occurrence, and the replay makes new requests.
  case ofSchedule
  /// The workers would reject its origin.
  case fromElsewhere
  /// With the headers of a replay it is larger than Kafka's limit.
  case tooLarge

  var isWritten: Bool { if case .written = self { true } else { false } }
}

/// The counts of the records that a replay has read.
public struct ReplayCounts: Sendable, Hashable {
  /// Records written again, or in a dry run to be written.
  public var written: Int64 = 0
  /// The bytes of their keys and values.
  public var bytes: Int64 = 0
  /// Records that were not selected.
  public var passedOver: Int64 = 0
  /// Records of other replays.
  public var ofReplays: Int64 = 0
  /// Requests that are due at a time and their occurrences, which do not become new requests.
  public var ofSchedules: Int64 = 0
  /// Records whose origin the workers would reject. It is invalid, or more than five minutes ahead.
  public var fromElsewhere: Int64 = 0

  /// Records that are larger than Kafka's limit with the headers of a replay.
  public var tooLarge: Int64 = 0

  /// Written records that had been applied when the replay began. They have no effect.
  public var applied: Int64 = 0
  /// Written records that have expired and are not shown.
  public var expired: Int64 = 0
  /// Written records that break a rule and are rejected again.
  public var rejected: Int64 = 0
  /// Written records that may or may not have been applied before.
  public var unknown: Int64 = 0

  /// The most records that have an effect. Only the workers know which are repeats.
  public var mayHaveEffect: Int64 { written - applied - expired - rejected }

  /// Makes counts of zero.
  public init() {}

  /// All records that were read.
  public var read: Int64 { written + passedOver + ofReplays + ofSchedules + fromElsewhere + tooLarge }

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
    case .ofSchedule: ofSchedules += 1
    case .fromElsewhere: fromElsewhere += 1
    case .tooLarge: tooLarge += 1
    }
  }

  private static let all: [any WritableKeyPath<ReplayCounts, Int64> & Sendable] = [
    \.written, \.bytes, \.passedOver, \.ofReplays, \.ofSchedules, \.fromElsewhere, \.tooLarge, \.applied, \.expired, \.rejected, \.unknown,
  ]

  static func + (one: ReplayCounts, other: ReplayCounts) -> ReplayCounts {
    var sum = one
    for path in all { sum[keyPath: path] += other[keyPath: path] }
    return sum
  }
}
