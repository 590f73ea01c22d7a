/// The wait before the next connection attempt. It is exponential with full jitter, so that a fleet does not reconnect in step.
public struct Backoff: Sendable, Hashable {
  /// The longest first wait in milliseconds. Each further one may be twice as long. Default 50.
  var firstMilliseconds: Int
  /// The longest wait in milliseconds. Default 5,000.
  var longestMilliseconds: Int

  /// A back-off of its bounds, both at least 1.
  public init(firstMilliseconds: Int = 50, longestMilliseconds: Int = 5000) {
    self.firstMilliseconds = max(1, firstMilliseconds)
    self.longestMilliseconds = max(self.firstMilliseconds, longestMilliseconds)
  }

  /// The wait before an attempt.
  ///
  /// - Parameters:
  ///   - failures: the failed attempts in a row, from 0.
  ///   - isHopeless: whether waiting alone cannot help, as with a wrong password. Then the wait is of the longest kind at once.
  ///   - random: draws a number from a range, evenly.
  func wait(after failures: Int, isHopeless: Bool, random: (ClosedRange<Int>) -> Int) -> Int {
    if isHopeless { return random((longestMilliseconds / 2)...longestMilliseconds) }
    var bound = firstMilliseconds
    for _ in 0..<failures where bound < longestMilliseconds { bound *= 2 }
    return random(1...min(bound, longestMilliseconds))
  }
}
