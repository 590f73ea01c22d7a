/// Keeps the reading of several partitions in step, by the times of their records. A value.
///
/// It decides which partitions continue and which wait. So a mailbox fills and empties as it did before; otherwise it would get a whole
/// month's requests before the first deletion.
struct TimeStep {
  private struct Partition {
    var unread: Range<Int64>
    /// The greatest timestamp; `min` before the first record.
    var time = Int64.min

    var isDone: Bool { unread.isEmpty }
  }

  private var partitions: [Int: Partition] = [:]
  private let step: Int64
  /// How many offsets were read. Some have no record.
  private(set) var offsetsRead: Int64 = 0

  /// - Parameter milliseconds: how far a partition may be ahead of the last one.
  init(milliseconds: Int64) { step = milliseconds }

  /// Adds a partition. Nothing of it is read yet.
  mutating func add(_ index: Int, _ range: Range<Int64>) { partitions[index] = Partition(unread: range) }

  /// Takes a record. Returns whether it lies below its partition's end.
  mutating func take(_ index: Int, offset: Int64, timestamp: Int64) -> Bool {
    guard let partition = partitions[index], !partition.isDone else { return false }
    reached(index, timestamp)
    passed(index, below: offset + 1)
    return offset < partition.unread.upperBound
  }

  /// Notes the timestamp of a partition's next record, which is not taken yet.
  mutating func reached(_ index: Int, _ timestamp: Int64) {
    if let partition = partitions[index] { partitions[index]?.time = max(partition.time, timestamp) }
  }

  /// Everything below this offset is read.
  mutating func passed(_ index: Int, below offset: Int64) {
    guard let unread = partitions[index]?.unread else { return }
    let next = min(max(offset, unread.lowerBound), unread.upperBound)
    offsetsRead += next - unread.lowerBound
    partitions[index]?.unread = next..<unread.upperBound
  }

  /// The end of a partition; nil if it was read to its end.
  func end(of index: Int) -> Int64? { partitions[index].flatMap { $0.isDone ? nil : $0.unread.upperBound } }

  /// Whether everything has been read.
  var isDone: Bool { partitions.values.allSatisfy(\.isDone) }

  /// The time that the slowest of these partitions has reached; `max` if all are read.
  func earliest(of indexes: some Sequence<Int>) -> Int64 {
    indexes.compactMap { partitions[$0] }.filter { !$0.isDone }.map(\.time).min() ?? .max
  }

  /// The time that the slowest of all partitions has reached; `max` if all are read.
  var earliest: Int64 { earliest(of: partitions.keys) }

  /// The partition that all others wait for.
  var last: Int? { partitions.filter { !$0.value.isDone }.min { $0.value.time < $1.value.time }?.key }

  /// Decides which partitions wait, and which continue.
  func decide() -> (wait: [Int], goOn: [Int]) {
    let slowest = max(earliest, 0)
    var (wait, goOn): ([Int], [Int]) = ([], [])
    for (index, partition) in partitions {
      if !partition.isDone, max(partition.time, 0) - slowest <= step { goOn.append(index) } else { wait.append(index) }
    }
    return (wait, goOn)
  }
}
