import Store

/// The groups in which records begin while a partition is suspected. A value.
///
/// It knows the suspected partitions, the end of the next group, and the state of the last group. Redis notes each group before it is
/// processed, so the record that crashes its worker is found.
///
/// A group is *begun* when its records have their tickets, *noted* when Redis has noted it, and *taken* when it is processed. Until it is
/// taken or given up, no other begins, even if the suspicion ends: its records have tickets, which must be finished. The owner knows whether
/// the former group is finished.
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

  /// A suspected partition.
  private struct Suspect {
    /// How many more records begin in groups.
    var left: Int
    var group: CrashLoopDetector.Group?
    var remedies: [Int64: CrashLoopDetector.Remedy]
    /// The offset after the last record that has begun.
    var reached: Int64 = 0
    /// The partition's end, if it was read up to there.
    var end: Int64?

    /// Whether all suspected records were read.
    var isRead: Bool { end.map { end in remedies.keys.allSatisfy { $0 < end } } ?? false }

    /// Whether records beyond the suspected ones have begun.
    var isThrough: Bool {
      left == 0 && reached >= group.map { $0.first + $0.width } ?? 0 && remedies.keys.allSatisfy { $0 < reached }
    }
  }

  private enum Step {
    /// No group waits.
    case none
    /// Redis was asked to note the group.
    case noting(Tag, Group)
    /// Redis has noted the group.
    case noted(Group)
  }

  private var suspects: [MarkedPartition: Suspect] = [:]
  /// The facts about partitions that were lost, which this lane may begin again.
  private var aside: [MarkedPartition: CrashLoopDetector.Suspicion] = [:]
  private var step = Step.none
  private var begun = 0
  /// Partitions that are not suspected, but whose records began in groups because of others.
  private var unsuspected: Set<MarkedPartition> = []

  // MARK: Partitions

  /// Whether some partition is suspected, so that records begin in groups.
  var isNeeded: Bool { !suspects.isEmpty }

  /// Whether a partition is suspected.
  func isSuspected(_ partition: MarkedPartition) -> Bool { suspects[partition] != nil }

  /// Notes a suspected partition that begins.
  mutating func suspect(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion) {
    suspects[partition] = Suspect(left: CrashLoopDetector.bisectedRecords, group: suspicion.group, remedies: suspicion.remedies)
  }

  /// A lost partition has begun again in this lane, perhaps at a lower offset. Returns whether it is suspected.
  mutating func startedAgain(_ partition: MarkedPartition) -> Bool {
    guard let suspicion = aside.removeValue(forKey: partition) else { return false }
    suspect(partition, suspicion)
    return true
  }

  /// The end of the group that begins at this offset. A record that crashed processes is a group by itself.
  func end(from offset: Int64, of partition: MarkedPartition) -> Int64 {
    guard let suspect = suspects[partition] else { return offset + CrashLoopDetector.groupWidth }
    if suspect.remedies[offset] != nil { return offset + 1 }
    let end = suspect.group?.end(from: offset) ?? offset + CrashLoopDetector.groupWidth
    return suspect.remedies.keys.filter { (offset..<end).contains($0) }.min() ?? end
  }

  /// Notes that so many records of a partition have begun, up to this offset.
  mutating func began(_ count: Int, of partition: MarkedPartition, to reached: Int64) {
    guard var suspect = suspects[partition] else { return }
    suspect.left = max(0, suspect.left - count)
    suspect.reached = max(suspect.reached, reached)
    suspects[partition] = suspect
  }

  /// The treatment of the record at this offset; nil if it crashed no process.
  func remedy(for offset: Int64, of partition: MarkedPartition) -> CrashLoopDetector.Remedy? { suspects[partition]?.remedies[offset] }

  /// Notes that a partition was read up to its present end.
  mutating func reachedEnd(of partition: MarkedPartition, at offset: Int64) { suspects[partition]?.end = offset }

  /// Partitions are revoked. The next owner reads their waiting records again, so they do not count as read.
  mutating func revoked(_ partitions: [MarkedPartition]) { for partition in partitions { suspects[partition]?.end = nil } }

  /// Forgets partitions whose suspected records are all finished, and returns them. Call it when no record is in flight.
  ///
  /// - Parameter isWaiting: whether a partition has records that were read and have not begun.
  mutating func takeThrough(_ isWaiting: (MarkedPartition) -> Bool) -> [MarkedPartition] {
    forget(suspects.filter { $0.value.isThrough || $0.value.isRead && !isWaiting($0.key) }.map(\.key))
  }

  /// Forgets partitions that are harmless or leave. Returns those that were suspected.
  @discardableResult mutating func forget(_ partitions: [MarkedPartition]) -> [MarkedPartition] {
    partitions.filter { suspects.removeValue(forKey: $0) != nil }
  }

  /// Partitions leave. A waiting group of theirs stays: the owner sees by the tickets which of its records to process.
  ///
  /// - Parameter isLost: whether they already have another owner, or begin again in this lane.
  /// - Returns: those that were suspected, or for which Redis may have a note of this process.
  mutating func leave(_ going: [MarkedPartition], isLost: Bool) -> [MarkedPartition] {
    // In case this lane begins lost ones again. Another lane would ask Redis.
    for partition in going where isLost {
      aside[partition] = suspects[partition].map { CrashLoopDetector.Suspicion(group: $0.group, remedies: $0.remedies) }
    }
    let left = forget(going) + (isLost ? unsuspected.intersection(going) : [])
    unsuspected.subtract(going)
    return left
  }

  /// Groups are over. Returns the unsuspected partitions whose records began in groups.
  mutating func takeUnsuspected() -> [MarkedPartition] {
    guard !unsuspected.isEmpty else { return [] }
    defer { unsuspected = [] }
    return Array(unsuspected)
  }

  // MARK: The group

  /// Whether no group waits to be noted or taken.
  var isFree: Bool { if case .none = step { true } else { false } }

  /// Begins a group of a partition's records, which Redis is asked to note.
  ///
  /// - Parameters:
  ///   - count: the number of records.
  ///   - offsets: from the first record to after the last one; some may have no record.
  /// - Returns: the tag for `noted`, when Redis has answered.
  mutating func begin(_ records: Records, count: Int, offsets: Range<Int64>, of partition: MarkedPartition) -> Tag {
    precondition(isFree, "the records of the group before would never be worked on")
    began(count, of: partition, to: offsets.upperBound)
    if !isSuspected(partition) { unsuspected.insert(partition) }
    begun += 1
    let tag = Tag(number: begun)
    step = .noting(tag, Group(records: records, remedy: remedy(for: offsets.lowerBound, of: partition)))
    return tag
  }

  /// Redis has noted a group. Returns whether it may be taken; one that was given up meanwhile may not.
  mutating func noted(_ tag: Tag) -> Bool {
    guard case .noting(tag, let group) = step else { return false }
    step = .noted(group)
    return true
  }

  /// Takes the noted group, if there is one, to process it.
  mutating func take() -> Group? {
    guard case .noted(let group) = step else { return nil }
    step = .none
    return group
  }

  /// Gives up the waiting group. The next reader of its records begins them again.
  mutating func giveUp() { step = .none }
}
