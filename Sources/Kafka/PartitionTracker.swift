import Synchronization

/// A record that is being worked on, to be handed back when it is finished.
public struct RecordTicket: Sendable, Hashable {
  /// The partition's index, as its assignment gave it.
  public let partition: Int32
  /// The assignment's generation.
  public let generation: UInt32
  /// The tracker that gave it, as no other in the process is numbered.
  let tracker: UInt32
  /// The record's number within its partition and generation.
  public let sequence: UInt64
}

/// What has been begun and finished of all partitions of a consumer: a value that knows no clock and no Kafka.
///
/// Each assignment of a partition is a generation: what is finished after its revocation changes nothing any more, also when the
/// partition has come back meanwhile, be it to another consumer with a tracker of its own.
public struct PartitionTracker: Sendable {
  /// The answer to `begin`.
  public enum Beginning: Sendable, Hashable {
    /// Work on it, and hand the ticket back.
    case begun(RecordTicket)
    /// One of the limits is reached: keep it, pause its partition, and begin it later.
    case full
    /// Nothing to do: it is not newer than one that was begun, its partition is not assigned, or it was read in an earlier assignment.
    case ignored
  }

  /// A partition that was never assigned has generation 0, which no assignment has.
  private struct Partition {
    var generation: UInt32 = 0
    var isAssigned = false
    var window = OffsetWindow()
    /// The highest offset that a commit was asked for, and the highest that one has confirmed.
    var requested: Int64 = -1
    var committed: Int64 = -1
  }

  /// How many records may be in flight, over all partitions: what they cost are the records themselves.
  public let limit: Int
  /// How many may take places: those in flight, and those that are finished behind one that is not, which cost sixteen bytes each.
  public let spanLimit: Int
  private let number = Self.numbers.add(1, ordering: .relaxed).newValue
  private static let numbers = Atomic<UInt32>(0)
  private var partitions: [Partition] = []
  /// Records in flight in all assigned partitions.
  public private(set) var inFlight = 0
  /// Places taken in all assigned partitions.
  public private(set) var span = 0

  /// Makes a tracker. A record that takes seconds stops nobody until those behind it fill `spanLimit`, ten seconds of the fastest flow.
  public init(limit: Int, spanLimit: Int = 1_000_000) {
    precondition(limit > 0 && spanLimit > 0, "a tracker without places could begin nothing")
    self.limit = limit
    self.spanLimit = spanLimit
  }

  /// A partition has been assigned, with a generation that is new for it.
  public mutating func assign(_ index: Int, generation: UInt32) {
    precondition(index >= 0 && index < 1 << 20, "indexes of partitions are dense")
    while partitions.count <= index { partitions.append(Partition()) }
    if partitions[index].isAssigned { revoke(index) }
    partitions[index] = Partition(generation: generation, isAssigned: true)
  }

  /// A partition has been taken away; what is in flight of it counts no more.
  public mutating func revoke(_ index: Int) {
    guard isAssigned(index) else { return }
    inFlight -= partitions[index].window.inFlight
    span -= partitions[index].window.span
    partitions[index].isAssigned = false
    partitions[index].window = OffsetWindow()
  }

  /// Begins a record of an assigned partition.
  ///
  /// What was read in an earlier assignment is not begun: the present one may have rewound behind it, and counts from its first record.
  ///
  /// - Parameters:
  ///   - generation: of the assignment that the record was read in.
  ///   - timestamp: goes with the offset that is committed when this is the last record below it.
  public mutating func begin(_ index: Int, generation: UInt32, offset: Int64, timestamp: Int64 = -1) -> Beginning {
    guard isAssigned(index), partitions[index].generation == generation else { return .ignored }
    guard hasRoom else { return .full }
    guard let sequence = partitions[index].window.begin(offset: offset, timestamp: timestamp) else { return .ignored }
    inFlight += 1
    span += 1
    return .begun(
      RecordTicket(partition: Int32(truncatingIfNeeded: index), generation: generation, tracker: number, sequence: sequence))
  }

  /// The log of a partition was read up to this offset, and all its records below were begun: what has no record there is finished with them.
  ///
  /// A transaction ends with an offset without a record, and an aborted one has nothing else.
  ///
  /// - Parameters:
  ///   - generation: of the assignment in which it was read.
  ///   - timestamp: of the last record below the offset, where this assignment has begun none.
  public mutating func reachEnd(_ index: Int, generation: UInt32, offset: Int64, timestamp: Int64 = -1) {
    guard isAssigned(index), partitions[index].generation == generation else { return }
    let before = partitions[index].window.span
    partitions[index].window.reachEnd(offset, timestamp: timestamp)
    span += partitions[index].window.span - before
  }

  /// Finishes a record; false when its assignment is over or it was finished before.
  @discardableResult
  public mutating func finish(_ ticket: RecordTicket) -> Bool {
    guard isCurrent(ticket) else { return false }
    let index = Int(ticket.partition)
    let before = partitions[index].window.span
    guard partitions[index].window.finish(ticket.sequence) else { return false }
    inFlight -= 1
    span -= before - partitions[index].window.span
    return true
  }

  /// Whether the assignment that the record was begun in still holds.
  public func isCurrent(_ ticket: RecordTicket) -> Bool {
    let index = Int(ticket.partition)
    return ticket.tracker == number && isAssigned(index) && partitions[index].generation == ticket.generation
  }

  private func isAssigned(_ index: Int) -> Bool { index < partitions.count && partitions[index].isAssigned }

  /// Whether a record would find a place.
  public var hasRoom: Bool { inFlight < limit && span < spanLimit }

  /// Records in flight of one partition.
  public func inFlight(of index: Int) -> Int {
    isAssigned(index) ? partitions[index].window.inFlight : 0
  }

  /// The offset of the oldest record in flight of one partition; nil when there is none.
  public func oldest(of index: Int) -> Int64? {
    isAssigned(index) ? partitions[index].window.oldest : nil
  }

  /// Below this offset everything of the partition is finished in this assignment; nil while nothing is.
  public func committable(of index: Int) -> Int64? {
    isAssigned(index) ? partitions[index].window.committable : nil
  }

  /// How far one partition is worked through in this assignment; nil when it is not assigned.
  public func progress(of index: Int) -> PartitionProgress? {
    guard isAssigned(index) else { return nil }
    let window = partitions[index].window
    return PartitionProgress(
      generation: partitions[index].generation, oldest: window.oldest, oldestTimestamp: window.oldestTimestamp, newest: window.newest,
      committable: window.committable, committableTimestamp: window.committableTimestamp)
  }

  /// The offsets that have advanced since the last call, of all assigned partitions or of some; they count as asked for from now on.
  public mutating func takeAdvanced(of indexes: [Int]? = nil) -> [CommitOffset] {
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

  /// How a commit ended: confirmed, or to be asked for again, or given up (a later, higher offset is asked for all the same).
  public mutating func committed(_ commit: CommitOffset, as outcome: CommitOutcome) {
    let index = commit.partition
    guard index < partitions.count, partitions[index].generation == commit.generation else { return }
    switch outcome {
    case .confirmed: partitions[index].committed = max(partitions[index].committed, commit.offset)
    case .again: partitions[index].requested = partitions[index].committed
    case .givenUp: break
    }
  }
}

/// How far a partition is worked through in one of its assignments.
public struct PartitionProgress: Sendable, Hashable {
  /// The assignment's generation.
  public var generation: UInt32
  /// The offset of the oldest record in flight; nil when there is none.
  public var oldest: Int64?
  /// That record's timestamp; -1 where it has none.
  public var oldestTimestamp: Int64?
  /// The offset of the newest record that was begun; nil before the first.
  public var newest: Int64?
  /// Below this offset everything is finished; nil while nothing is.
  public var committable: Int64?
  /// The timestamp of the record below it; -1 where it is not known.
  public var committableTimestamp: Int64
}

/// An offset to commit: of a partition in one of its assignments.
public struct CommitOffset: Sendable, Hashable {
  /// The partition's index, as its assignment gave it.
  public var partition: Int
  /// The assignment's generation; a commit for an older one goes nowhere.
  public var generation: UInt32
  /// The offset at which reading goes on.
  public var offset: Int64
  /// The timestamp of the record below the offset; -1 where it is not known.
  public var timestamp: Int64

  /// Makes one from its parts.
  public init(partition: Int, generation: UInt32, offset: Int64, timestamp: Int64 = -1) {
    self.partition = partition
    self.generation = generation
    self.offset = offset
    self.timestamp = timestamp
  }
}

/// How the commit of an offset ended.
public enum CommitOutcome: Sendable, Hashable {
  /// The group has it.
  case confirmed
  /// It may succeed next time.
  case again
  /// The assignment is over for the group.
  case givenUp
}
