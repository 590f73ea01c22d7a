import Kafka

/// What a lane is careful with: how many records are still to be worked on in groups, where the groups are small, and which records no
/// worker survives.
struct CarefulWork {
  /// Records that are still to be worked on in groups.
  private(set) var left = 0
  /// By the field of the partition's marker, as in `CrashWatch.Suspicion`.
  private var groups: [String: CrashWatch.Group] = [:]
  private var condemned: [String: Int64] = [:]

  /// Whether records are to be worked on in groups.
  var isNeeded: Bool { left > 0 }

  /// Partitions were begun, and this is known of them.
  mutating func note(_ suspicion: CrashWatch.Suspicion) {
    condemned.merge(suspicion.condemned) { $1 }
    groups.merge(suspicion.groups) { $1 }
    if suspicion.isCareful { left = CrashWatch.carefulRecords }
  }

  /// Where the group ends that begins with this record of the batch: at the partition's end in it, and before a condemned record, which is a
  /// group by itself.
  func groupEnd(_ batch: RecordBatch, from first: Int, _ field: String) -> Int {
    let doomed = condemned[field]
    if batch[first].offset == doomed { return first + 1 }
    let step = groups[field]?.step(at: batch[first].offset) ?? CrashWatch.groupRecords
    let end = min(batch.count, first + step)
    return (first..<end).first { batch[$0].partitionIndex != batch[first].partitionIndex || batch[$0].offset == doomed } ?? end
  }

  /// So many were worked on: whether that was the end of it, and the lane goes on as usual.
  mutating func isOver(after count: Int) -> Bool {
    left = max(0, left - count)
    if left == 0 { groups = [:] }
    return left == 0
  }

  /// Whether the record at this offset is condemned; it is so only once.
  mutating func takeCondemned(_ field: String, _ offset: Int64) -> Bool {
    guard condemned[field] == offset else { return false }
    condemned[field] = nil
    return true
  }
}
