/// How far a partition was read in an assignment, and whether what comes is still the log that was read: a value.
struct ReadPosition {
  /// The offset after the last record that was given to the handler; -1 before the first.
  private(set) var next: Int64 = -1
  /// The time of that record, and whether it is when the broker appended it: only then later ones have a later time.
  private(set) var timestamp: Int64 = -1
  private var isAppendTime = false
  /// The last record after which the log seemed to be another one.
  private var suspected: (next: Int64, timestamp: Int64) = (-1, -1)

  /// Another assignment begins, of which nothing has been given yet.
  mutating func begin() {
    next = -1
    isAppendTime = false
  }

  /// A record is given to the handler.
  @inline(__always)
  mutating func give(_ offset: Int64, at timestamp: Int64, isAppendTime: Bool) {
    next = offset + 1
    self.timestamp = timestamp
    self.isAppendTime = isAppendTime
  }

  /// The time at which the last record was appended; nil where that is not known.
  var appendedAt: Int64? { next > 0 && isAppendTime ? timestamp : nil }

  /// Whether a record with an offset that was given before is of another log: that of a topic that was made again, or was cut.
  ///
  /// Such a log ends before this position, or has a record of another time where the last one lay. Else it is a record that is read again.
  ///
  /// - Parameter end: the log's end, where it is known.
  func isOfAnotherLog(_ offset: Int64, at timestamp: Int64, end: Int64?) -> Bool {
    if offset == next - 1 { return timestamp != self.timestamp }
    return end.map { $0 < next } ?? false
  }

  /// Whether the log is not the one that was read, if its first record after the time of the last one lies here.
  ///
  /// Brokers whose clocks differ may write such a record, too: the log is suspected once after each record.
  mutating func isReplaced(after milliseconds: Int64, firstLater offset: Int64) -> Bool {
    guard appendedAt == milliseconds, offset < next, suspected != (next, milliseconds) else { return false }
    suspected = (next, milliseconds)
    return true
  }
}
