import Synchronization

/// The proof that a record has begun. It is handed back when the record is finished.
public struct RecordTicket: Sendable, Hashable {
  /// The partition's index, as its assignment gave it.
  let partition: Int32
  /// The assignment's generation.
  let generation: UInt32
  /// The number of the tracker that made it, unique in the process.
  let tracker: UInt32
  /// The record's number within its partition and generation.
  let sequence: UInt64
}

/// The begun and finished records of all partitions of a consumer. A value, without clock or Kafka.
///
/// Each assignment of a partition is a generation. A finish after the revocation changes nothing, even if the partition was assigned again,
/// here or to another consumer with its own tracker.
public struct PartitionTracker: Sendable {
  /// The answer to `begin`.
  public enum Beginning: Sendable, Hashable {
    /// The caller processes the record, and hands the ticket back.
    case begun(RecordTicket)
    /// A limit is reached: keep the record, pause its partition, and begin it later.
    case full
    /// Ignore the record. It has begun already, its partition is not assigned, or an earlier assignment has read it.
    case ignored
  }

  /// A partition that was never assigned has generation 0, which no assignment has.
  private struct Partition {
    var generation: UInt32 = 0
    var isAssigned = false
    var window = OffsetWindow()
    /// The records that were set aside and are not finished, by their sequences.
    var setAside: Set<UInt64> = []
    /// While there are any: the same window, in which they count as finished.
    var beyond: OffsetWindow?
    /// The highest offset of a requested commit, and the highest of a confirmed one.
    var requested: Int64 = -1
    var committed: Int64 = -1
  }

  /// The most records in flight over all partitions. The records themselves are their cost.
  let limit: Int
  /// The most used places. Records in flight, and finished ones after an unfinished one, at sixteen bytes each.
  let spanLimit: Int
  private let number = Self.numbers.add(1, ordering: .relaxed).newValue
  private static let numbers = Atomic<UInt32>(0)
  private var partitions: [Partition] = []
  /// Records in flight in all assigned partitions.
  public private(set) var inFlight = 0
  /// Used places in all assigned partitions.
  private(set) var span = 0

  /// Makes a tracker. A slow record stops others only when those after it fill `spanLimit`: ten seconds of the fastest flow.
  public init(limit: Int, spanLimit: Int = 1_000_000) {
    precondition(limit > 0 && spanLimit > 0, "a tracker needs places for records")
    self.limit = limit
    self.spanLimit = spanLimit
  }

  /// Notes a partition's assignment, with a generation that is new for it.
  public mutating func assign(_ index: Int, generation: UInt32) {
    precondition(index >= 0 && index < 1 << 20, "indexes of partitions are dense")
    while partitions.count <= index { partitions.append(Partition()) }
    if partitions[index].isAssigned { revoke(index) }
    partitions[index] = Partition(generation: generation, isAssigned: true)
  }

  /// Notes a partition's revocation. Its records in flight do not count any more.
  mutating func revoke(_ index: Int) {
    guard isAssigned(index) else { return }
    inFlight -= partitions[index].window.inFlight
    span -= partitions[index].window.span
    partitions[index] = Partition(generation: partitions[index].generation)
  }

  /// Begins a record of an assigned partition.
  ///
  /// A record of an earlier assignment does not begin. The current one may have rewound to before it, and counts from its first record.
  ///
  /// - Parameters:
  ///   - generation: of the assignment in which the record was read.
  ///   - timestamp: committed with the offset if this is the last record below it.
  public mutating func begin(_ index: Int, generation: UInt32, offset: Int64, timestamp: Int64 = -1) -> Beginning {
    guard isAssigned(index), partitions[index].generation == generation else { return .ignored }
    guard hasRoom else { return .full }
    guard let sequence = partitions[index].window.begin(offset: offset, timestamp: timestamp) else { return .ignored }
    _ = partitions[index].beyond?.begin(offset: offset, timestamp: timestamp)
    inFlight += 1
    span += 1
    return .begun(
      RecordTicket(partition: Int32(truncatingIfNeeded: index), generation: generation, tracker: number, sequence: sequence))
  }

  /// Notes that a log was read up to this offset and all its records have begun. Offsets without a record finish with them.
  ///
  /// A transaction ends with an offset without a record. An aborted transaction has only such offsets.
  ///
  /// - Parameters:
  ///   - generation: of the assignment in which it was read.
  ///   - timestamp: of the last record below the offset, if this assignment has begun none.
  mutating func reachEnd(_ index: Int, generation: UInt32, offset: Int64, timestamp: Int64 = -1) {
    guard isAssigned(index), partitions[index].generation == generation else { return }
    let before = partitions[index].window.span
    partitions[index].window.reachEnd(offset, timestamp: timestamp)
    partitions[index].beyond?.reachEnd(offset, timestamp: timestamp)
    span += partitions[index].window.span - before
  }

  /// Finishes a record; false if its assignment is over or it was finished before.
  @discardableResult
  public mutating func finish(_ ticket: RecordTicket) -> Bool {
    guard isCurrent(ticket) else { return false }
    let index = Int(ticket.partition)
    let before = partitions[index].window.span
    guard partitions[index].window.finish(ticket.sequence) else { return false }
    inFlight -= 1
    span -= before - partitions[index].window.span
    if partitions[index].beyond != nil {
      partitions[index].beyond?.finish(ticket.sequence)
      partitions[index].setAside.remove(ticket.sequence)
      if partitions[index].setAside.isEmpty { partitions[index].beyond = nil }
    }
    return true
  }

  /// Sets a record aside that this process may never finish. It stays in flight, and holds back the committable offset.
  mutating func setAside(_ ticket: RecordTicket) {
    guard isCurrent(ticket) else { return }
    let index = Int(ticket.partition)
    if partitions[index].beyond == nil { partitions[index].beyond = partitions[index].window }
    guard partitions[index].beyond?.finish(ticket.sequence) == true else { return }
    partitions[index].setAside.insert(ticket.sequence)
  }

  /// Of each partition with records that are set aside: the offset below which all others are finished.
  var beyondSetAside: [CommitOffset] {
    partitions.enumerated().compactMap { index, partition in
      guard let beyond = partition.beyond, let offset = beyond.committable else { return nil }
      return CommitOffset(partition: index, generation: partition.generation, offset: offset, timestamp: beyond.committableTimestamp)
    }
  }

  /// Whether the record's assignment still holds.
  func isCurrent(_ ticket: RecordTicket) -> Bool {
    let index = Int(ticket.partition)
    return ticket.tracker == number && isAssigned(index) && partitions[index].generation == ticket.generation
  }

  private func isAssigned(_ index: Int) -> Bool { index < partitions.count && partitions[index].isAssigned }

  /// Whether a record could begin.
  var hasRoom: Bool { inFlight < limit && span < spanLimit }

  /// Records in flight of one partition.
  func inFlight(of index: Int) -> Int {
    isAssigned(index) ? partitions[index].window.inFlight : 0
  }

  /// The progress of one partition in this assignment; nil if it is not assigned.
  func progress(of index: Int) -> PartitionProgress? {
    guard isAssigned(index) else { return nil }
    let window = partitions[index].window
    return PartitionProgress(
      generation: partitions[index].generation, oldest: window.oldest, oldestTimestamp: window.oldestTimestamp, newest: window.newest,
      committable: window.committable, committableTimestamp: window.committableTimestamp)
  }

  /// Takes the offsets that have advanced since the last call, of all or of some assigned partitions. They count as requested.
  mutating func takeAdvanced(of indexes: [Int]? = nil) -> [CommitOffset] {
    var advanced: [CommitOffset] = []
    for index in indexes ?? Array(partitions.indices) where isAssigned(index) {
      let partition = partitions[index]
      guard let offset = partition.window.committable, offset > max(partition.requested, partition.committed) else { continue }
      partitions[index].requested = offset
      advanced.append(
        CommitOffset(
          partition: index, generation: partition.generation, offset: offset, timestamp: partition.window.committableTimestamp))
    }
    return advanced
  }

  /// Notes how a commit ended. After a dropped one, a later and higher offset is requested all the same.
  mutating func committed(_ commit: CommitOffset, as outcome: CommitOutcome) {
    let index = commit.partition
    guard index < partitions.count, partitions[index].generation == commit.generation else { return }
    switch outcome {
    case .confirmed: partitions[index].committed = max(partitions[index].committed, commit.offset)
    case .again: partitions[index].requested = partitions[index].committed
    case .givenUp: break
    }
  }
}

/// The progress of a partition in one of its assignments.
public struct PartitionProgress: Sendable, Hashable {
  /// The assignment's generation.
  var generation: UInt32
  /// The offset of the oldest record in flight; nil if there is none.
  public var oldest: Int64?
  /// That record's timestamp; -1 if it has none.
  public var oldestTimestamp: Int64?
  /// The offset of the last begun record; nil before the first.
  public var newest: Int64?
  /// Below this offset all records are finished; nil before the first.
  public var committable: Int64?
  /// The timestamp of the record below it; -1 if unknown.
  public var committableTimestamp: Int64
}

/// An offset to commit, of a partition in one of its assignments.
public struct CommitOffset: Sendable, Hashable {
  /// The partition's index, as its assignment gave it.
  public var partition: Int
  /// The assignment's generation. A commit of an older one is dropped.
  public var generation: UInt32
  /// The offset where reading continues.
  public var offset: Int64
  /// The timestamp of the record below the offset; -1 if unknown.
  public var timestamp: Int64 = -1
}

/// How the commit of an offset ended.
public enum CommitOutcome: Sendable, Hashable {
  /// The group has it.
  case confirmed
  /// The commit may succeed next time.
  case again
  /// The group considers the assignment over.
  case givenUp
}
