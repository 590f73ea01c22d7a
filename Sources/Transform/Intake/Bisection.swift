import Store

/// How the records of suspected partitions are begun: in small groups, each noted in Redis before, so that the record that ends its worker is
/// found. A value.
struct Bisection {
  /// A partition that is suspected.
  private struct Suspect {
    /// Records that are still to be begun in groups.
    var left: Int
    var group: CrashLoopDetector.Group?
    var remedies: [Int64: CrashLoopDetector.Remedy]
    /// The offset behind what was begun.
    var reached: Int64 = 0
    /// Its end, when it was read up to there.
    var end: Int64?

    /// Whether all was read that is suspected.
    var isRead: Bool { end.map { end in remedies.keys.allSatisfy { $0 < end } } ?? false }

    /// Whether more was begun than is suspected.
    var isThrough: Bool {
      left == 0 && reached >= group.map { $0.first + $0.width } ?? 0 && remedies.keys.allSatisfy { $0 < reached }
    }
  }

  private var suspects: [MarkedPartition: Suspect] = [:]
  /// Those that were lost, and may be begun again by this lane.
  private var aside: [MarkedPartition: CrashLoopDetector.Suspicion] = [:]

  /// Whether records are to be begun in groups.
  var isNeeded: Bool { !suspects.isEmpty }

  /// Whether a partition is one.
  func isSuspected(_ partition: MarkedPartition) -> Bool { suspects[partition] != nil }

  /// A partition was begun, and this is known of it.
  mutating func note(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion) {
    suspects[partition] = Suspect(left: CrashLoopDetector.bisectedRecords, group: suspicion.group, remedies: suspicion.remedies)
  }

  /// Partitions were lost: nobody but this lane may begin them again, or another, which asks for what is known.
  mutating func setAside(_ partitions: [MarkedPartition]) {
    for partition in partitions {
      aside[partition] = suspects[partition].map { CrashLoopDetector.Suspicion(group: $0.group, remedies: $0.remedies) }
    }
  }

  /// A partition that was lost has begun again in this lane, perhaps before what was begun of it: whether it was suspected.
  mutating func takeUp(_ partition: MarkedPartition) -> Bool {
    guard let suspicion = aside.removeValue(forKey: partition) else { return false }
    note(partition, suspicion)
    return true
  }

  /// The offset before which the group ends that begins at this one. A record over which processes have ended is a group by itself.
  func end(from offset: Int64, of partition: MarkedPartition) -> Int64 {
    guard let suspect = suspects[partition] else { return offset + CrashLoopDetector.groupWidth }
    if suspect.remedies[offset] != nil { return offset + 1 }
    let end = suspect.group?.end(from: offset) ?? offset + CrashLoopDetector.groupWidth
    return suspect.remedies.keys.filter { (offset..<end).contains($0) }.min() ?? end
  }

  /// So many were begun of a partition, up to this offset.
  mutating func began(_ count: Int, of partition: MarkedPartition, to reached: Int64) {
    guard var suspect = suspects[partition] else { return }
    suspect.left = max(0, suspect.left - count)
    suspect.reached = max(suspect.reached, reached)
    suspects[partition] = suspect
  }

  /// What is done about the record at this offset; nil for one over which no process has ended.
  func remedy(for offset: Int64, of partition: MarkedPartition) -> CrashLoopDetector.Remedy? { suspects[partition]?.remedies[offset] }

  /// A partition was read up to its end, as it is now.
  mutating func reachedEnd(of partition: MarkedPartition, at offset: Int64) { suspects[partition]?.end = offset }

  /// Partitions are revoked: their records that were read and not begun are the next owner's.
  mutating func revoked(_ partitions: [MarkedPartition]) { for partition in partitions { suspects[partition]?.end = nil } }

  /// What was begun is finished: the partitions that are suspected no more.
  ///
  /// - Parameter isWaiting: whether some of what was read of a partition is not begun.
  mutating func takeThrough(_ isWaiting: (MarkedPartition) -> Bool) -> [MarkedPartition] {
    forget(suspects.filter { $0.value.isThrough || $0.value.isRead && !isWaiting($0.key) }.map(\.key))
  }

  /// Partitions have shown that they do no harm, or are going: those of them that were suspected until now.
  @discardableResult mutating func forget(_ partitions: [MarkedPartition]) -> [MarkedPartition] {
    partitions.filter { suspects.removeValue(forKey: $0) != nil }
  }
}
