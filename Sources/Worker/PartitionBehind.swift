/// How far one partition of a lane is behind, in one assignment: a value that is told now and then what is known.
public struct PartitionBehind: Sendable {
  /// What is known at a moment; all times in milliseconds since 1970.
  public struct Observation: Sendable {
    /// The offset of the first record that is not finished.
    public var next: Int64
    /// The offset that the log's next record will get.
    public var end: Int64
    /// When the first unfinished record was written; nil where it was not read yet.
    public var oldest: Int64?
    /// When the record below it was written; nil where that is not known.
    public var finished: Int64?
    /// The present.
    public var now: Int64

    /// An observation of its parts.
    public init(next: Int64, end: Int64, oldest: Int64? = nil, finished: Int64? = nil, now: Int64) {
      (self.next, self.end, self.oldest, self.finished, self.now) = (next, end, oldest, finished, now)
    }
  }

  /// Unfinished records.
  public private(set) var records: Int64 = 0
  /// How old the oldest of them is, 0 where there is none; nil where that is not known.
  public private(set) var milliseconds: Int64? = 0
  /// When nothing was unfinished last.
  private var atEnd: Int64?
  /// Offsets that are gone from the log though they were not read: missed, as soon as reading goes on behind them.
  private var gone: Range<Int64>?

  /// Of a partition of which nothing is known yet.
  public init() {}

  /// Takes what is known now.
  public mutating func observe(_ known: Observation) {
    records = max(0, known.end - known.next)
    guard records > 0 else {
      (milliseconds, atEnd) = (0, known.now)
      return
    }
    // What was not read yet is no older than what was finished before it, and than the last moment at which nothing was left.
    let bound = [known.finished, atEnd].compactMap { $0 }.max()
    milliseconds = (known.oldest ?? bound).map { max(0, known.now - $0) }
  }

  /// Takes where the log begins now, and the offset that is read next; answers with what was missed since the last call.
  public mutating func missed(reading next: Int64, logStart: Int64) -> Range<Int64>? {
    if let gone, next >= gone.upperBound {
      self.gone = nil
      return gone
    }
    // Some of it may have been fetched before it went.
    let end = max(gone?.upperBound ?? next, logStart)
    gone = end > next ? next..<end : nil
    return nil
  }
}
