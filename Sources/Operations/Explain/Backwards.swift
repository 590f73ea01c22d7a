import Kafka

/// Stretches of partitions cut into rounds that go back in time: the newest records first, and in each round more than in the one before.
///
/// People ask for what has just happened, so most searches end in the first round; one that does not reads nothing twice.
struct Backwards {
  private var left: [TopicStretch]
  private var count: Int64

  /// - Parameter first: records of each partition in the first round.
  init(_ stretches: [TopicStretch], first: Int64 = 20_000) {
    left = stretches.filter { !$0.offsets.isEmpty }
    count = first
  }

  /// Leaves partitions out that are of no interest from now on.
  mutating func leaveOut(_ isDone: (TopicPartition) -> Bool) { left.removeAll { isDone($0.partition) } }

  /// Whether all was handed out.
  var isEmpty: Bool { left.isEmpty }

  /// The next round; nil when all was handed out.
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
