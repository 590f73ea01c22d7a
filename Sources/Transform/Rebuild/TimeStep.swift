import Kafka

/// Reads several partitions in step by the time of their records: which of them may go on, and which wait for the others. A value.
///
/// So a mailbox is filled and emptied as it once was, and not with everything of a month before the first of it is taken out.
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

  /// A partition is read from now on; nothing of it has come.
  mutating func add(_ index: Int, end: Int64) { partitions[index] = Progress(end: end, time: .min) }

  /// Whether a record is to be read, and not beyond its partition's end.
  mutating func take(_ index: Int, offset: Int64, timestamp: Int64) -> Bool {
    guard let progress = partitions[index], !progress.isDone else { return false }
    partitions[index]?.time = max(progress.time, timestamp)
    if offset >= progress.end - 1 { partitions[index]?.isDone = true }
    return offset < progress.end
  }

  /// The next record of a partition has this timestamp; it is not taken yet.
  mutating func reached(_ index: Int, _ timestamp: Int64) {
    if let progress = partitions[index] { partitions[index]?.time = max(progress.time, timestamp) }
  }

  /// There is nothing more in a partition for now, which is its end if it comes after the one that was noted.
  mutating func ended(_ index: Int, at offset: Int64) {
    if let end = partitions[index]?.end, offset >= end { partitions[index]?.isDone = true }
  }

  /// Where a partition ends that is not read to its end yet.
  func end(of index: Int) -> Int64? { partitions[index].flatMap { $0.isDone ? nil : $0.end } }

  /// Whether everything has been read.
  var isDone: Bool { partitions.values.allSatisfy(\.isDone) }

  /// How far the last of these partitions has come; the end of all time when all are read.
  func earliest(of indexes: some Sequence<Int>) -> Int64 {
    indexes.compactMap { partitions[$0] }.filter { !$0.isDone }.map(\.time).min() ?? .max
  }

  /// The partition that all others wait for.
  var last: Int? { partitions.filter { !$0.value.isDone }.min { $0.value.time < $1.value.time }?.key }

  /// Which partitions wait, and which go on.
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
