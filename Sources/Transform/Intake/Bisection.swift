import Kafka
import Store

/// How the records are begun that follow a start after which workers ended again and again: in small groups, each noted in Redis before, so
/// that the record that ends its worker is found. A value.
struct Bisection {
  /// Records that are still to be begun in groups; nil where records are begun as usual.
  private(set) var left: Int?
  /// As in `CrashLoopDetector.Suspicion`.
  private var groups: [MarkedPartition: CrashLoopDetector.Group] = [:]
  private var deadly: [MarkedPartition: CrashLoopDetector.Deadly] = [:]

  /// Whether records are to be begun in groups.
  var isNeeded: Bool { left != nil }

  /// Whether all that were to be begun in groups have been: when the last group is finished, `end` it.
  var isOver: Bool { left == 0 }

  /// Partitions were begun, and this is known of them.
  mutating func note(_ suspicion: CrashLoopDetector.Suspicion) {
    deadly.merge(suspicion.deadly) { $1 }
    groups.merge(suspicion.groups) { $1 }
    if suspicion.isBisecting { left = CrashLoopDetector.bisectedRecords }
  }

  /// Where the group ends that begins with this record of the batch: at the partition's end in it, and before a deadly record, which is a
  /// group by itself.
  func groupEnd(_ batch: RecordBatch, from first: Int, _ partition: MarkedPartition) -> Int {
    let deadly = deadly[partition]?.offset
    if batch[first].offset == deadly { return first + 1 }
    let step = groups[partition]?.step(at: batch[first].offset) ?? CrashLoopDetector.groupRecords
    let end = min(batch.count, first + step)
    return (first..<end).first { batch[$0].partitionIndex != batch[first].partitionIndex || batch[$0].offset == deadly } ?? end
  }

  /// So many were begun.
  mutating func began(_ count: Int) { left = left.map { max(0, $0 - count) } }

  /// Records are begun as usual.
  mutating func end() {
    left = nil
    groups = [:]
  }

  /// What is done about the record at this offset; nil for one over which no process has ended, and a second time.
  mutating func takeDeadly(_ partition: MarkedPartition, _ offset: Int64) -> CrashLoopDetector.Remedy? {
    guard let known = deadly[partition], known.offset == offset else { return nil }
    deadly[partition] = nil
    return known.remedy
  }
}
