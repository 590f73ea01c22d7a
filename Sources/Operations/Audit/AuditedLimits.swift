import Kafka
import Notifications
import Worker

/// Counts the requests again by the rate limits of their applications. A value.
///
/// The counts of a window are known only if reading began before it: see ``RateCounter``.
struct AuditedLimits {
  private struct Partition {
    var counter = RateCounter()
    /// Windows that begin at this time or later are known. Nil: those that begin after the first record.
    var completeSince: Int64?
  }

  private var partitions: [Int32: Partition] = [:]
  private var applications = StoppedApplications()

  /// How much earlier than the audited range reading must begin, in milliseconds.
  static let historyMilliseconds = RateCounter.historyMilliseconds

  /// Notes where reading of a partition begins.
  ///
  /// - Parameters:
  ///   - stretch: what is read of it.
  ///   - log: what there is of it.
  ///   - time: the time from which on all records are read; nil if reading begins with the oldest one.
  mutating func begin(_ stretch: TopicStretch, of log: Range<Int64>, from time: Int64?) {
    var partition = Partition()
    if stretch.offsets.lowerBound == 0 {
      partition.completeSince = .min
    } else if stretch.offsets.lowerBound > log.lowerBound {
      partition.completeSince = time
    }
    partitions[stretch.partition.partition] = partition
  }

  /// Takes a record of the applications. An unreadable one changes nothing, as in the workers.
  mutating func take(application record: RecordView) {
    if EndTombstone.matches(record) { return }
    _ = applications.take(key: record.key, value: record.value, timestamp: record.timestamp)
  }

  /// Whether any application has a limit, or had one.
  var isActive: Bool { applications.hasLimits }

  /// Counts the next request of its partition. Returns what its fact is to say of that.
  mutating func count(_ request: RequestRecord) -> AuditFact.Flags {
    let (number, time) = (request.position.partition, request.position.timestamp)
    let envelope = RequestEnvelope(request)
    // Taken out, so that its counts are changed in place.
    var partition = partitions.removeValue(forKey: number) ?? Partition()
    defer { partitions[number] = partition }
    let excess = partition.counter.count(envelope, at: time, applications)
    let since = partition.completeSince ?? (time + 1)
    partition.completeSince = since
    guard envelope.countsForLimits, let history = applications.limits(of: envelope.application) else { return [] }
    guard let period = history.period(at: time) else { return history.mayBeCut ? .isLimitUnknown : [] }
    guard let limit = period.limit else { return [] }
    guard partition.counter.windowStart(of: limit.window) >= since else { return .isLimitUnknown }
    return excess == nil ? [] : .isBeyondLimit
  }
}
