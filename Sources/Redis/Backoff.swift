/// How long to wait before connecting again: exponential, with full jitter, so that a fleet does not come back in step.
public struct Backoff: Sendable, Hashable {
  /// The longest first wait in milliseconds; each further one may be twice as long. Default 50.
  public var firstMilliseconds: Int
  /// What no wait exceeds, in milliseconds. Default 5,000.
  public var longestMilliseconds: Int

  /// Makes a back-off from its bounds, both at least 1.
  public init(firstMilliseconds: Int = 50, longestMilliseconds: Int = 5000) {
    self.firstMilliseconds = max(1, firstMilliseconds)
    self.longestMilliseconds = max(self.firstMilliseconds, longestMilliseconds)
  }

  /// The wait before an attempt.
  ///
  /// - Parameters:
  ///   - failures: how many attempts have failed in a row, from 0.
  ///   - isHopeless: waiting alone will not help, as with a wrong password: the wait is of the longest kind at once.
  ///   - random: a number drawn evenly from a range.
  func wait(after failures: Int, isHopeless: Bool, random: (ClosedRange<Int>) -> Int) -> Int {
    if isHopeless { return random((longestMilliseconds / 2)...longestMilliseconds) }
    var bound = firstMilliseconds
    for _ in 0..<failures where bound < longestMilliseconds { bound *= 2 }
    return random(1...min(bound, longestMilliseconds))
  }
}
