import Kafka

/// Keeps the reading of several partitions in step, by the times of their records. A value.
///
/// It decides which partitions continue and which wait. So a mailbox fills and empties as it did before; otherwise it would get a whole
/// month's requests before the first deletion.
struct TimeStep {
  private struct Progress {
    /// Reading ends below this offset.
    let end: Int64
    var time: Int64
    var isDone = false
  }

  private var partitions: [Int: Progress] = [:]
  private let step: Int64

  /// - Parameter milliseconds: how far a partition may be ahead of the last one.
  init(milliseconds: Int64) { step = milliseconds }

  /// Adds a partition, of which no record has come yet.
  mutating func add(_ index: Int, end: Int64) { partitions[index] = Progress(end: end, time: .min) }

  /// Takes a record. Returns whether it lies below its partition's end.
  mutating func take(_ index: Int, offset: Int64, timestamp: Int64) -> Bool {
    guard let progress = partitions[index], !progress.isDone else { return false }
    partitions[index]?.time = max(progress.time, timestamp)
    if offset >= progress.end - 1 { partitions[index]?.isDone = true }
    return offset < progress.end
  }

  /// Notes the timestamp of a partition's next record, which is not taken yet.
  mutating func reached(_ index: Int, _ timestamp: Int64) {
    if let progress = partitions[index] { partitions[index]?.time = max(progress.time, timestamp) }
  }

  /// The partition has no more records below this offset, so it is done if that is at least its noted end.
  mutating func ended(_ index: Int, at offset: Int64) {
    if let end = partitions[index]?.end, offset >= end { partitions[index]?.isDone = true }
  }

  /// The end of a partition; nil if it was read to its end.
  func end(of index: Int) -> Int64? { partitions[index].flatMap { $0.isDone ? nil : $0.end } }

  /// Whether everything has been read.
  var isDone: Bool { partitions.values.allSatisfy(\.isDone) }

  /// The time that the slowest of these partitions has reached; `max` if all are read.
  func earliest(of indexes: some Sequence<Int>) -> Int64 {
    indexes.compactMap { partitions[$0] }.filter { !$0.isDone }.map(\.time).min() ?? .max
  }

  /// The partition that all others wait for.
  var last: Int? { partitions.filter { !$0.value.isDone }.min { $0.value.time < $1.value.time }?.key }

  /// Decides which partitions wait, and which continue.
  func decide() -> (wait: [Int], goOn: [Int]) {
    let slowest = earliest(of: partitions.keys)
    var (wait, goOn): ([Int], [Int]) = ([], [])
    for (index, progress) in partitions {
      let isAhead = slowest != .max && progress.time > (slowest == .min ? .min : slowest) && progress.time - max(slowest, 0) > step
      if progress.isDone || isAhead { wait.append(index) } else { goOn.append(index) }
    }
    return (wait, goOn)
  }
}
