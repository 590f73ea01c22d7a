/// How far an assignment has read a partition, and whether its log has changed. A value.
struct ReadPosition {
  /// The offset after the last record that the handler got; -1 before the first.
  private(set) var next: Int64 = -1
  /// The time of that record, and whether the broker set it when it appended the record. Only then do later records have later times.
  private(set) var timestamp: Int64 = -1
  private var isAppendTime = false
  /// The last record after which the log looked like another one.
  private var suspected: (next: Int64, timestamp: Int64) = (-1, -1)

  /// Begins another assignment.
  mutating func begin() {
    next = -1
    isAppendTime = false
  }

  /// Notes a record that the handler gets.
  @inline(__always)
  mutating func give(_ offset: Int64, at timestamp: Int64, isAppendTime: Bool) {
    next = offset + 1
    self.timestamp = timestamp
    self.isAppendTime = isAppendTime
  }

  /// When the last record was appended; nil if unknown.
  var appendedAt: Int64? { next > 0 && isAppendTime ? timestamp : nil }

  /// Whether a record at an earlier offset belongs to another log. Of a topic that was made again or truncated.
  ///
  /// Such a log ends before this position, or has a record of another time at the last offset. Otherwise the record is only read again.
  ///
  /// - Parameter end: the log's end, if known.
  func isOfAnotherLog(_ offset: Int64, at timestamp: Int64, end: Int64?) -> Bool {
    if offset == next - 1 { return timestamp != self.timestamp }
    return end.map { $0 < next } ?? false
  }

  /// Whether the log is another one, given its first record after the time of the last one.
  ///
  /// Brokers with different clocks may write such a record too, so a log is suspected only once after each record.
  mutating func isReplaced(after milliseconds: Int64, firstLater offset: Int64) -> Bool {
    guard appendedAt == milliseconds, offset < next, suspected != (next, milliseconds) else { return false }
    suspected = (next, milliseconds)
    return true
  }
}
