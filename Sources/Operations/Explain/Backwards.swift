import Kafka
import Worker

/// Cuts stretches of partitions into rounds that go back in time. Each round is larger than the one before.
///
/// People ask for recent events, so most searches end in the first round. No record is read twice.
struct Backwards {
  private var left: [TopicStretch]
  private var count: Int64

  /// - Parameter first: the records of each partition in the first round.
  init(_ stretches: [TopicStretch], first: Int64 = 20_000) {
    left = stretches.filter { !$0.offsets.isEmpty }
    count = first
  }

  /// Drops partitions that the search does not need any more.
  mutating func leaveOut(_ isDone: (TopicPartition) -> Bool) { left.removeAll { isDone($0.partition) } }

  /// Whether no round is left.
  var isEmpty: Bool { left.isEmpty }

  /// The next round; nil if none is left.
  mutating func next() -> [TopicStretch]? {
    guard !left.isEmpty else { return nil }
    var round: [TopicStretch] = []
    for index in left.indices {
      let all = left[index].offsets
      let from = all.count <= count ? all.lowerBound : all.upperBound - count
      round.append(TopicStretch(left[index].partition, from, all.upperBound))
      left[index].offsets = all.lowerBound..<from
    }
    left.removeAll { $0.offsets.isEmpty }
    count *= 4
    return round
  }
}
