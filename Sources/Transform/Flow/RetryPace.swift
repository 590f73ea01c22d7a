/// The pace at which records are started again that have failed more than once. A value without a clock.
///
/// A record that has failed for the first time starts again soon, in any case. The other failed records start in rounds. While none of them
/// succeeds, each round is half as large as the round before, and comes twice as late. So a topic that refuses every record costs its
/// broker and this lane at most 128 records a second. One success makes the rounds frequent again, and lets them grow.
struct RetryPace {
  /// Milliseconds before the first round, and before a round at the slowest pace.
  static let (shortestMilliseconds, longestMilliseconds) = (20, 2_000)
  /// How many records a round starts at the slowest pace.
  static let smallestRound = 256

  /// The rounds that have failed since a retry succeeded.
  private var failedRounds = 0
  /// The largest number of records in the next round.
  private var size = Int.max
  /// How many records the last round has started.
  private var started = 0
  private var hasSucceeded = false
  private var hasFailed = false
  /// When the next round is due, in the loop's milliseconds.
  private var due: UInt64 = 0

  /// A record that was started again has ended.
  mutating func succeeded() { (hasSucceeded, failedRounds, due) = (true, 0, 0) }

  /// A record that was started again has failed again.
  mutating func failedAgain() { hasFailed = true }

  /// Begins a round if it is due.
  ///
  /// - Parameter waiting: how many records wait for a round.
  /// - Returns: how many of them start again now.
  mutating func nextRound(of waiting: Int, at now: UInt64) -> Int {
    guard waiting > 0, now >= due else { return 0 }
    if hasSucceeded {
      size = size > Int.max / 2 ? Int.max : size * 2
    } else if hasFailed {
      failedRounds += 1
      if started > Self.smallestRound { size = max(Self.smallestRound, started / 2) }
    }
    (hasSucceeded, hasFailed) = (false, false)
    started = min(size, waiting)
    due = now + UInt64(min(Self.longestMilliseconds, Self.shortestMilliseconds << min(failedRounds, 7)))
    return started
  }

  /// Milliseconds until the next round.
  func delay(at now: UInt64) -> Int {
    guard due > now else { return Self.shortestMilliseconds }
    return max(Self.shortestMilliseconds, Int(min(due - now, UInt64(Self.longestMilliseconds))))
  }
}
