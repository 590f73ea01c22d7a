/// How far one partition of a lane is behind in one assignment. A value, which gets an observation now and then.
public struct PartitionBehind: Sendable {
  /// The facts of one moment; all times in milliseconds since 1970.
  public struct Observation: Sendable {
    /// The offset of the first unfinished record.
    var next: Int64
    /// The offset of the log's next record.
    var end: Int64
    /// When the first unfinished record was written; nil if it was not read yet.
    var oldest: Int64?
    /// When the record below it was written; nil if unknown.
    var finished: Int64?
    /// The present.
    var now: Int64

    /// An observation of its parts.
    public init(next: Int64, end: Int64, oldest: Int64? = nil, finished: Int64? = nil, now: Int64) {
      (self.next, self.end, self.oldest, self.finished, self.now) = (next, end, oldest, finished, now)
    }
  }

  /// The number of unfinished records.
  public private(set) var records: Int64 = 0
  /// The age of the oldest of them; 0 if there is none, nil if unknown.
  public private(set) var milliseconds: Int64? = 0
  /// The last time at which no record was unfinished.
  private var atEnd: Int64?
  /// Offsets that were deleted from the log before they were read. They count as missed when reading continues after them.
  private var gone: Range<Int64>?

  /// A partition without an observation.
  public init() {}

  /// Takes an observation.
  public mutating func observe(_ known: Observation) {
    records = max(0, known.end - known.next)
    guard records > 0 else {
      (milliseconds, atEnd) = (0, known.now)
      return
    }
    // An unread record is younger than the last finished one, and than the last moment without unfinished records.
    let bound = [known.finished, atEnd].compactMap { $0 }.max()
    milliseconds = (known.oldest ?? bound).map { max(0, known.now - $0) }
  }

  /// Takes the log's beginning and the next offset to read. Answers the offsets missed since the last call.
  public mutating func missed(reading next: Int64, logStart: Int64) -> Range<Int64>? {
    if let gone, next >= gone.upperBound {
      self.gone = nil
      return gone
    }
    // Some of these may have been fetched before their deletion.
    let end = max(gone?.upperBound ?? next, logStart)
    gone = end > next ? next..<end : nil
    return nil
  }
}
