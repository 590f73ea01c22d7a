import EventLoop
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
  package private(set) var counts: RunCounts
  /// The time of the range's last record, in milliseconds since 1970; nil if unknown. If the topic is made again, another record lies
  /// there.
  var lastTimestamp: Int64?
  /// Records on their way to Kafka and skipped records after them.
  private var pending = Queue<(offset: Int64, kind: RunCount, effect: RunCount?)>()

  /// Makes the progress of a new replay, or that of a saved one.
  ///
  /// - Parameter end: the present end of the partition.
  init(_ partition: Int32, _ offsets: Range<Int64>, end: Int64, position: Int64? = nil, _ counts: RunCounts = RunCounts()) {
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
  /// - Parameters:
  ///   - kind: written, or why it is not.
  ///   - isAwaited: whether Kafka will report on it.
  mutating func read(_ offset: Int64, _ kind: RunCount, _ effect: RunCount? = nil, isAwaited: Bool) {
    position = max(position, offset + 1)
    if isAwaited || !pending.isEmpty { pending.append((offset, kind, effect)) } else { counts.add(kind, effect) }
  }

  /// Notes that the next written record is in Kafka.
  ///
  /// - Parameter place: its offset there; less than 0 if unknown.
  mutating func acknowledged(at place: Int64) {
    guard let record = pending.popFirst() else { preconditionFailure("Kafka answers for what was written") }
    written = max(written, place + 1)
    counts.add(record.kind, record.effect)
    finishSkipped()
  }

  /// Counts the skipped records at the front. No report comes for them.
  private mutating func finishSkipped() {
    while let next = pending.first, next.kind != .written {
      counts.add(next.kind)
      pending.popFirst()
    }
  }

  /// Skips deleted records.
  mutating func leaveOut(below offset: Int64) { position = max(position, min(offset, offsets.upperBound)) }

  /// Notes that the last record could not be written.
  mutating func refuse() {
    if let last = pending.popLast() { pending.append((last.offset, .tooLarge, nil)) }
    finishSkipped()
  }

  /// Notes that all records were read.
  mutating func end() { position = max(position, offsets.upperBound) }

  /// Notes a record that was written before an interruption but not saved.
  mutating func found(_ offset: Int64, at place: Int64) {
    position = max(position, min(offset + 1, offsets.upperBound))
    written = max(written, place + 1)
    counts.add(.written)
  }
}
