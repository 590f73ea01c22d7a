import Store

/// Chooses the groups in which records of suspected partitions begin. A value.
///
/// Redis notes each group before it is processed, so the record that crashes its worker is found.
struct Bisection {
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

  private var suspects: [MarkedPartition: Suspect] = [:]
  /// The facts about partitions that were lost, which this lane may begin again.
  private var aside: [MarkedPartition: CrashLoopDetector.Suspicion] = [:]

  /// Whether records have to begin in groups.
  var isNeeded: Bool { !suspects.isEmpty }

  /// Whether a partition is suspected.
  func isSuspected(_ partition: MarkedPartition) -> Bool { suspects[partition] != nil }

  /// Notes a suspected partition that begins.
  mutating func note(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion) {
    suspects[partition] = Suspect(left: CrashLoopDetector.bisectedRecords, group: suspicion.group, remedies: suspicion.remedies)
  }

  /// Keeps the facts about lost partitions, in case this lane begins them again. Another lane would ask Redis.
  mutating func setAside(_ partitions: [MarkedPartition]) {
    for partition in partitions {
      aside[partition] = suspects[partition].map { CrashLoopDetector.Suspicion(group: $0.group, remedies: $0.remedies) }
    }
  }

  /// A lost partition has begun again in this lane, perhaps at a lower offset. Returns whether it is suspected.
  mutating func takeUp(_ partition: MarkedPartition) -> Bool {
    guard let suspicion = aside.removeValue(forKey: partition) else { return false }
    note(partition, suspicion)
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
}
