/// The records of one partition that are being worked on: a value, begun in order, finished in any order.
///
/// It answers one question: up to where has everything been finished? A ring holds the offsets in flight by sequence and not by
/// offset, since offsets may have gaps (compaction, transaction markers). Each call takes constant time.
public struct OffsetWindow: Sendable {
  // A finished record's offset is kept as its complement, which is negative.
  private var ring: [Int64] = []
  private var stamps: [Int64] = []
  private var mask: UInt64 = 0
  private var head: UInt64 = 0
  private var tail: UInt64 = 0
  private var finishedOutOfOrder = 0

  /// The offset to commit, one past the highest of the contiguous finished records; nil before the first is finished.
  public private(set) var committable: Int64?
  /// The timestamp of the record below `committable`; -1 where it has none.
  public private(set) var committableTimestamp: Int64 = -1
  /// The offset of the newest record begun; nil before the first.
  public private(set) var newest: Int64?
  private var newestTimestamp: Int64 = -1

  /// An empty window.
  public init() {}

  /// Records begun and not finished.
  public var inFlight: Int { Int(tail &- head) - finishedOutOfOrder }
  /// Places taken: records in flight, and those finished behind one that is not.
  public var span: Int { Int(tail &- head) }
  /// The offset of the oldest record in flight; nil when there is none.
  public var oldest: Int64? { head == tail ? nil : ring[Int(head & mask)] }

  /// The timestamp of that record; nil when there is none, -1 where it has none.
  public var oldestTimestamp: Int64? { head == tail ? nil : stamps[Int(head & mask)] }

  /// Begins a record and returns its sequence; nil if it is not newer than the newest one, which is then being worked on already.
  public mutating func begin(offset: Int64, timestamp: Int64 = -1) -> UInt64? {
    precondition(offset >= 0, "a record's offset is never negative")
    if let newest, offset <= newest { return nil }
    if span == ring.count { grow() }
    (newest, newestTimestamp) = (offset, timestamp)
    ring[Int(tail & mask)] = offset
    stamps[Int(tail & mask)] = timestamp
    tail &+= 1
    return tail &- 1
  }

  /// Counts everything below an offset as begun: the log was read up to there, and the offsets behind its last record have none.
  ///
  /// - Parameter timestamp: of the record below, where none was begun.
  public mutating func reachEnd(_ offset: Int64, timestamp: Int64) {
    guard offset > 0, let sequence = begin(offset: offset - 1, timestamp: newest == nil ? timestamp : newestTimestamp) else { return }
    finish(sequence)
  }

  /// Finishes a record; false when it was finished before.
  @discardableResult
  public mutating func finish(_ sequence: UInt64) -> Bool {
    guard sequence >= head, sequence < tail else { return false }
    let index = Int(sequence & mask)
    guard ring[index] >= 0 else { return false }
    guard sequence == head else {
      ring[index] = ~ring[index]
      finishedOutOfOrder += 1
      return true
    }
    committable = ring[index] + 1
    head &+= 1
    while head < tail, ring[Int(head & mask)] < 0 {
      committable = ~ring[Int(head & mask)] + 1
      head &+= 1
      finishedOutOfOrder -= 1
    }
    committableTimestamp = stamps[Int((head &- 1) & mask)]
    if head == tail, ring.count > Self.keptPlaces { (ring, stamps, mask) = ([], [], 0) }
    return true
  }

  /// What grew beyond it behind an unfinished record is given back when all is finished.
  private static let keptPlaces = 1 << 16

  private mutating func grow() {
    var larger = [Int64](repeating: 0, count: max(64, ring.count * 2))
    let largerMask = UInt64(larger.count - 1)
    var largerStamps = larger
    var sequence = head
    while sequence < tail {
      larger[Int(sequence & largerMask)] = ring[Int(sequence & mask)]
      largerStamps[Int(sequence & largerMask)] = stamps[Int(sequence & mask)]
      sequence &+= 1
    }
    ring = larger
    stamps = largerStamps
    mask = largerMask
  }
}
