/// The records in flight of one partition, begun in order and finished in any order. A value.
///
/// It answers one question: up to which offset is everything finished? A ring holds the offsets in flight by sequence, because offsets have
/// gaps (compaction, transaction markers). Each call takes constant time.
public struct OffsetWindow: Sendable {
  // A finished record's offset is kept as its complement, which is negative.
  private var ring: [Int64] = []
  private var stamps: [Int64] = []
  private var mask: UInt64 = 0
  private var head: UInt64 = 0
  private var tail: UInt64 = 0
  private var finishedOutOfOrder = 0

  /// The offset to commit, one past the last contiguous finished record; nil before the first is finished.
  private(set) var committable: Int64?
  /// The timestamp of the record below `committable`; -1 if it has none.
  private(set) var committableTimestamp: Int64 = -1
  /// The offset of the last begun record; nil before the first.
  private(set) var newest: Int64?
  private var newestTimestamp: Int64 = -1

  /// Records that have begun and are not finished.
  var inFlight: Int { Int(tail &- head) - finishedOutOfOrder }
  /// Used places: records in flight, and finished ones after the oldest of them.
  var span: Int { Int(tail &- head) }
  /// The offset of the oldest record in flight; nil if there is none.
  var oldest: Int64? { head == tail ? nil : ring[Int(head & mask)] }

  /// The timestamp of that record; nil if there is none, -1 if the record has none.
  var oldestTimestamp: Int64? { head == tail ? nil : stamps[Int(head & mask)] }

  /// Begins a record and returns its sequence; nil if it is not newer than the last one, so it has begun already.
  mutating func begin(offset: Int64, timestamp: Int64) -> UInt64? {
    precondition(offset >= 0, "a record's offset is never negative")
    if let newest, offset <= newest { return nil }
    if span == ring.count { grow() }
    (newest, newestTimestamp) = (offset, timestamp)
    ring[Int(tail & mask)] = offset
    stamps[Int(tail & mask)] = timestamp
    tail &+= 1
    return tail &- 1
  }

  /// Counts all offsets below this one as begun. The log was read up to there, and no further record lies below.
  ///
  /// - Parameter timestamp: of the record below, if none has begun.
  mutating func reachEnd(_ offset: Int64, timestamp: Int64) {
    guard offset > 0, let sequence = begin(offset: offset - 1, timestamp: newest == nil ? timestamp : newestTimestamp) else { return }
    finish(sequence)
  }

  /// Finishes a record; false if it was finished before.
  @discardableResult
  mutating func finish(_ sequence: UInt64) -> Bool {
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

  /// A larger ring, which an unfinished record had caused, is released when all records are finished.
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
