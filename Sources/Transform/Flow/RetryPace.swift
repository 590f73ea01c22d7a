/// The pace of the retries: how many failed records are started again in a round, and when. A value without a clock.
///
/// While retries succeed, a round starts all failed records, soon. After a round in which none succeeded, the next round waits longer and
/// starts half as many. So a topic that refuses every record costs its broker and this lane a few records a second, and a dependency
/// that works again is found at the latest after `longestMilliseconds`.
struct RetryPace {
  /// Milliseconds before the first round, and before a round at the slowest pace.
  static let (shortestMilliseconds, longestMilliseconds) = (20, 2_000)
  /// How many records a round starts at the slowest pace.
  static let smallestRound = 256

  /// The rounds since a retry succeeded.
  private var fruitlessRounds = 0
  private var size = Int.max
  private var hasSucceeded = true

  /// A record that was started again has ended.
  mutating func succeeded() { hasSucceeded = true }

  /// A round begins.
  ///
  /// - Parameter waiting: how many failed records there are.
  /// - Returns: how many of them start again now.
  mutating func nextRound(of waiting: Int) -> Int {
    if hasSucceeded {
      fruitlessRounds = 0
      size = size > Int.max / 2 ? Int.max : size * 2
    } else {
      fruitlessRounds += 1
      size = max(Self.smallestRound, min(size, waiting) / 2)
    }
    hasSucceeded = false
    return min(size, waiting)
  }

  /// Milliseconds until the next round.
  var delay: Int { min(Self.longestMilliseconds, Self.shortestMilliseconds << min(fruitlessRounds, 7)) }
}
