/// The progress of a replay in one partition, from records and Kafka's reports. A value.
package struct ReplayedPartition: Sendable {
  /// Its number.
  package let partition: Int32
  /// The offsets to replay. Their end was read at the start, so the replay's own records lie after it.
  package let offsets: Range<Int64>
  /// The offset after the last record that was read.
  package private(set) var position: Int64
  /// An offset of the same partition. Records that the replay wrote after its last save lie after it.
  package private(set) var written: Int64
  /// The counts of finished records.
  package private(set) var counts: ReplayCounts
  /// The time of the range's last record, in milliseconds since 1970; nil if unknown. If the topic is made again, another record lies
  /// there.
  var lastTimestamp: Int64?
  /// Records on their way to Kafka and skipped records after them.
  private var pending = Queue<(offset: Int64, fate: ReplayFate)>()

  /// Makes the progress of a new replay, or that of a saved one.
  ///
  /// - Parameter end: the present end of the partition.
  init(_ partition: Int32, _ offsets: Range<Int64>, end: Int64, position: Int64? = nil, _ counts: ReplayCounts = ReplayCounts()) {
    (self.partition, self.offsets, written, self.counts) = (partition, offsets, end, counts)
    self.position = position ?? offsets.lowerBound
  }

  /// All records below are in Kafka, or were skipped.
  package var done: Int64 { pending.first?.offset ?? position }

  /// Records that were read and are not finished.
  var open: Int { pending.count }

  /// Whether all records are finished.
  package var isComplete: Bool { done >= offsets.upperBound }

  /// Notes a record that was read.
  ///
  /// - Parameter isAwaited: whether Kafka will report on it.
  mutating func read(_ offset: Int64, _ fate: ReplayFate, isAwaited: Bool) {
    position = max(position, offset + 1)
    if isAwaited || !pending.isEmpty { pending.append((offset, fate)) } else { counts.add(fate) }
  }

  /// Notes that the next written record is in Kafka.
  ///
  /// - Parameter place: its offset there; less than 0 if unknown.
  mutating func acknowledged(at place: Int64) {
    guard let record = pending.popFirst() else { preconditionFailure("Kafka answers for what was written") }
    written = max(written, place + 1)
    counts.add(record.fate)
    finishSkipped()
  }

  /// Counts the skipped records at the front. No report comes for them.
  private mutating func finishSkipped() {
    while let next = pending.first, !next.fate.isWritten {
      counts.add(next.fate)
      pending.popFirst()
    }
  }

  /// Skips deleted records.
  mutating func leaveOut(below offset: Int64) { position = max(position, min(offset, offsets.upperBound)) }

  /// Notes that the last record could not be written.
  mutating func refuse() {
    if let last = pending.popLast() { pending.append((last.offset, .skipped(.tooLarge))) }
    finishSkipped()
  }

  /// Notes that all records were read.
  mutating func end() { position = max(position, offsets.upperBound) }

  /// Notes a record that was written before an interruption but not saved.
  ///
  /// - Parameter bytes: the size of its key and its value.
  mutating func found(_ offset: Int64, at place: Int64, bytes: Int, _ effect: ReplayCount? = .unknown) {
    position = max(position, min(offset + 1, offsets.upperBound))
    written = max(written, place + 1)
    counts.add(.written(bytes: bytes, effect))
  }
}

/// What happens with a record that was read.
enum ReplayFate: Sendable {
  /// It is written again, and counts for its effect, too; nil if only the workers know that.
  case written(bytes: Int, ReplayCount? = .unknown)
  /// It is not written, for this reason.
  case skipped(ReplayCount)

  var isWritten: Bool { if case .written = self { true } else { false } }
}

/// The counts of the records that a replay has read.
package enum ReplayCount: String, Sendable, CaseIterable {
  /// Records written again, or in a dry run to be written.
  case written
  /// The bytes of their keys and values.
  case bytes

  /// Records that were not selected.
  case passedOver
  /// Records that another replay has written.
  case ofReplays
  /// Requests that are due at a time and their occurrences, which do not become new requests.
  case ofSchedules
  /// Records whose origin the workers would reject. It is invalid, or more than five minutes ahead.
  case fromElsewhere
  /// Records that are larger than Kafka's limit with the headers of a replay.
  case tooLarge

  /// Written records that had been applied when the replay began. They have no effect.
  case applied
  /// Written records that have expired and are not shown.
  case expired
  /// Written records that break a rule and are rejected again.
  case rejected
  /// Written records that may or may not have been applied before, since Redis did not answer.
  case unknown
}

/// The counts of a replay.
package typealias ReplayCounts = Tally<ReplayCount>

extension ReplayCounts {
  /// The most records that have an effect. Only the workers know which are repeats.
  package var mayHaveEffect: Int { self[.written] - self[.applied] - self[.expired] - self[.rejected] }

  /// All records that were read.
  package var read: Int {
    ([.written, .passedOver, .ofReplays, .ofSchedules, .fromElsewhere, .tooLarge] as [ReplayCount]).reduce(0) { $0 + self[$1] }
  }

  mutating func add(_ fate: ReplayFate) {
    switch fate {
    case .written(let bytes, let effect):
      self[.written] += 1
      self[.bytes] += bytes
      if let effect { self[effect] += 1 }
    case .skipped(let reason): self[reason] += 1
    }
  }
}
