import Store

/// The groups in which records are begun as long as a partition is suspected: which partitions are, where the next group ends, and what has
/// become of the one that was begun last. A value that knows neither Kafka nor Redis.
///
/// A group is *begun* when its records have their tickets, *noted* when Redis has it, and *taken* to be worked on; until it is taken, or given
/// up, no other is begun. What ends the suspicion meanwhile changes nothing about it: its records have tickets, and somebody has to finish
/// them. Whether the work on the group before is done is the owner's to know.
///
/// `Records` is what the owner needs to work on a group.
struct RecordGroups<Records> {
  /// A group that is to be worked on.
  struct Group {
    let records: Records
    /// What is done about it where it is a record over which processes have ended; nil for all others.
    let remedy: CrashLoopDetector.Remedy?
  }

  /// Tells the answer that a group waits for from those of groups that were given up.
  struct Tag: Equatable {
    fileprivate let number: Int
  }

  private enum Step {
    /// No group waits.
    case none
    /// Redis is asked to note it.
    case marking(Tag, Group)
    /// It is noted.
    case marked(Group)
  }

  private var bisection = Bisection()
  private var step = Step.none
  private var begun = 0
  /// Partitions that were not suspected, of which groups were begun since others were.
  private var unsuspected: Set<MarkedPartition> = []

  // MARK: Partitions

  /// Whether some partition is suspected, so that records are to be begun in groups.
  var isNeeded: Bool { bisection.isNeeded }

  /// Whether a partition is suspected.
  func isSuspected(_ partition: MarkedPartition) -> Bool { bisection.isSuspected(partition) }

  /// A partition was begun, and this is known of it.
  mutating func suspect(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion) { bisection.note(partition, suspicion) }

  /// A partition that was lost was begun once more by this lane: whether it is suspected, as it was before.
  mutating func startedAgain(_ partition: MarkedPartition) -> Bool { bisection.takeUp(partition) }

  /// A partition was read up to its end, as it is now.
  mutating func reachedEnd(of partition: MarkedPartition, at offset: Int64) { bisection.reachedEnd(of: partition, at: offset) }

  /// Partitions are revoked: they stay suspected until they `leave`, though none of their records waits here any more.
  mutating func revoked(_ partitions: [MarkedPartition]) { bisection.revoked(partitions) }

  /// Partitions are going. A group of theirs that waits goes on waiting: its owner sees by the tickets what is still to be worked on.
  ///
  /// - Parameter isLost: they belong to somebody else already, or are begun once more by this lane.
  /// - Returns: those that were suspected until now, or of which the process may have left a note with somebody else.
  mutating func leave(_ going: [MarkedPartition], isLost: Bool) -> [MarkedPartition] {
    if isLost { bisection.setAside(going) }
    let left = bisection.forget(going) + (isLost ? unsuspected.intersection(going) : [])
    unsuspected.subtract(going)
    return left
  }

  /// Partitions have shown that they do no harm.
  ///
  /// - Returns: those of them that were suspected until now.
  mutating func forget(_ partitions: [MarkedPartition]) -> [MarkedPartition] { bisection.forget(partitions) }

  /// What was begun is finished: the partitions that are suspected no more.
  ///
  /// - Parameter isWaiting: whether some of what was read of a partition is not begun.
  mutating func takeThrough(_ isWaiting: (MarkedPartition) -> Bool) -> [MarkedPartition] { bisection.takeThrough(isWaiting) }

  /// Nothing is begun in groups any more: the partitions that were not suspected and of which groups were begun all the same.
  mutating func takeUnsuspected() -> [MarkedPartition] {
    guard !unsuspected.isEmpty else { return [] }
    defer { unsuspected = [] }
    return Array(unsuspected)
  }

  // MARK: The group

  /// Whether no group waits for its note, or to be taken.
  var isFree: Bool { if case .none = step { true } else { false } }

  /// The offset before which the group ends that begins at this one.
  func end(from offset: Int64, of partition: MarkedPartition) -> Int64 { bisection.end(from: offset, of: partition) }

  /// Records of a partition were begun, and Redis is asked to note them.
  ///
  /// - Parameters:
  ///   - count: how many records they are.
  ///   - offsets: from the first of them to behind the last; there may be offsets between that no record has.
  /// - Returns: what `noted` wants when Redis has answered.
  mutating func begin(_ records: Records, count: Int, offsets: Range<Int64>, of partition: MarkedPartition) -> Tag {
    precondition(isFree, "the records of the group before would never be worked on")
    bisection.began(count, of: partition, to: offsets.upperBound)
    if !bisection.isSuspected(partition) { unsuspected.insert(partition) }
    begun += 1
    let tag = Tag(number: begun)
    step = .marking(tag, Group(records: records, remedy: bisection.remedy(for: offsets.lowerBound, of: partition)))
    return tag
  }

  /// Redis has noted a group: whether it may be taken now; not one that was given up meanwhile.
  mutating func noted(_ tag: Tag) -> Bool {
    guard case .marking(tag, let group) = step else { return false }
    step = .marked(group)
    return true
  }

  /// Takes the group that is noted, to be worked on; nil where none is.
  mutating func take() -> Group? {
    guard case .marked(let group) = step else { return nil }
    step = .none
    return group
  }

  /// Nothing that was begun is worked on any more: who reads the records next begins them again.
  mutating func giveUp() { step = .none }
}
