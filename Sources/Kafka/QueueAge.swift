/// For how long the oldest record of a producer has been in flight, at least: a value that is told once a second how many there were.
///
/// Nothing is kept of a single record. If fewer have been reported than had been given at a moment, one of those is still in flight. Where
/// later records overtake it, as those of another partition, it counts as younger than it is.
struct QueueAge {
  /// Moments, the oldest first, with how many records had been given by then.
  private var marks: [(time: Int64, given: Int64)] = []

  /// Records are given up after a minute: what is older need not be told apart.
  private static let maximum = 120

  /// Takes how many records were given so far, and reported; answers for how many milliseconds the oldest of the others has waited.
  mutating func observe(given: Int64, reported: Int64, at time: Int64) -> Int64 {
    marks.removeAll { $0.given <= reported }
    if given > reported, marks.count < Self.maximum { marks.append((time, given)) }
    return marks.first.map { time - $0.time } ?? 0
  }
}
