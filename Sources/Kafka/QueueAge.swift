/// The least age of a producer's oldest record in flight, from the counts of each second. A value.
///
/// It keeps nothing for a single record. If fewer records are reported than had been produced at a moment, one of those is still in flight.
/// If later records overtake it, for example in another partition, it counts as younger than it is.
struct QueueAge {
  /// Moments, the oldest first, with the number of records produced by then.
  private var marks: [(time: Int64, given: Int64)] = []

  /// Sending ends after a minute, so older moments need no distinction.
  private static let maximum = 120

  /// Takes the number of produced and of reported records. Answers how long the oldest of the others has waited, in milliseconds.
  mutating func observe(given: Int64, reported: Int64, at time: Int64) -> Int64 {
    marks.removeAll { $0.given <= reported }
    if given > reported, marks.count < Self.maximum { marks.append((time, given)) }
    return marks.first.map { time - $0.time } ?? 0
  }
}
