import Store

/// The groups in which records begin while a partition is suspected. A value.
///
/// It knows the suspected partitions, the end of the next group, and the state of the last group. A group is *begun* when its records have
/// their tickets, *noted* when Redis has noted it, and *taken* when it is processed. Until it is taken or given up, no other begins, even
/// if the suspicion ends: its records have tickets, which must be finished. The owner knows whether the former group is finished.
///
/// `Records` is what the owner needs to process a group.
struct RecordGroups<Records> {
  /// A group that will be processed.
  struct Group {
    let records: Records
    /// The treatment, if the group is a record that crashed processes.
    let remedy: CrashLoopDetector.Remedy?
  }

  /// Distinguishes the answer for a group from answers for groups that were given up.
  struct Tag: Equatable {
    fileprivate let number: Int
  }

  private enum Step {
    /// No group waits.
    case none
    /// Redis was asked to note the group.
    case marking(Tag, Group)
    /// Redis has noted the group.
    case marked(Group)
  }

  private var bisection = Bisection()
  private var step = Step.none
  private var begun = 0
  /// Partitions that are not suspected, but whose records began in groups because of others.
  private var unsuspected: Set<MarkedPartition> = []

  // MARK: Partitions

  /// Whether some partition is suspected, so that records begin in groups.
  var isNeeded: Bool { bisection.isNeeded }

  /// Whether a partition is suspected.
  func isSuspected(_ partition: MarkedPartition) -> Bool { bisection.isSuspected(partition) }

  /// Notes a suspected partition that begins.
  mutating func suspect(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion) { bisection.note(partition, suspicion) }

  /// This lane has begun a lost partition again. Returns whether it is suspected, as before.
  mutating func startedAgain(_ partition: MarkedPartition) -> Bool { bisection.takeUp(partition) }

  /// Notes that a partition was read up to its present end.
  mutating func reachedEnd(of partition: MarkedPartition, at offset: Int64) { bisection.reachedEnd(of: partition, at: offset) }

  /// Partitions are revoked. They stay suspected until they `leave`, but none of their records waits here.
  mutating func revoked(_ partitions: [MarkedPartition]) { bisection.revoked(partitions) }

  /// Partitions leave. A waiting group of theirs stays: the owner sees by the tickets which of its records to process.
  ///
  /// - Parameter isLost: whether they already have another owner, or begin again in this lane.
  /// - Returns: those that were suspected, or for which Redis may have a note of this process.
  mutating func leave(_ going: [MarkedPartition], isLost: Bool) -> [MarkedPartition] {
    if isLost { bisection.setAside(going) }
    let left = bisection.forget(going) + (isLost ? unsuspected.intersection(going) : [])
    unsuspected.subtract(going)
    return left
  }

  /// Forgets harmless partitions.
  ///
  /// - Returns: those that were suspected.
  mutating func forget(_ partitions: [MarkedPartition]) -> [MarkedPartition] { bisection.forget(partitions) }

  /// Forgets partitions whose suspected records are all finished, and returns them. Call it when no record is in flight.
  ///
  /// - Parameter isWaiting: whether a partition has records that were read and have not begun.
  mutating func takeThrough(_ isWaiting: (MarkedPartition) -> Bool) -> [MarkedPartition] { bisection.takeThrough(isWaiting) }

  /// Groups are over. Returns the unsuspected partitions whose records began in groups.
  mutating func takeUnsuspected() -> [MarkedPartition] {
    guard !unsuspected.isEmpty else { return [] }
    defer { unsuspected = [] }
    return Array(unsuspected)
  }

  // MARK: The group

  /// Whether no group waits to be noted or taken.
  var isFree: Bool { if case .none = step { true } else { false } }

  /// The end of the group that begins at this offset.
  func end(from offset: Int64, of partition: MarkedPartition) -> Int64 { bisection.end(from: offset, of: partition) }

  /// Begins a group of a partition's records, which Redis is asked to note.
  ///
  /// - Parameters:
  ///   - count: the number of records.
  ///   - offsets: from the first record to after the last one; some may have no record.
  /// - Returns: the tag for `noted`, when Redis has answered.
  mutating func begin(_ records: Records, count: Int, offsets: Range<Int64>, of partition: MarkedPartition) -> Tag {
    precondition(isFree, "the records of the group before would never be worked on")
    bisection.began(count, of: partition, to: offsets.upperBound)
    if !bisection.isSuspected(partition) { unsuspected.insert(partition) }
    begun += 1
    let tag = Tag(number: begun)
    step = .marking(tag, Group(records: records, remedy: bisection.remedy(for: offsets.lowerBound, of: partition)))
    return tag
  }

  /// Redis has noted a group. Returns whether it may be taken; one that was given up meanwhile may not.
  mutating func noted(_ tag: Tag) -> Bool {
    guard case .marking(tag, let group) = step else { return false }
    step = .marked(group)
    return true
  }

  /// Takes the noted group, if there is one, to process it.
  mutating func take() -> Group? {
    guard case .marked(let group) = step else { return nil }
    step = .none
    return group
  }

  /// Gives up the waiting group. The next reader of its records begins them again.
  mutating func giveUp() { step = .none }
}
