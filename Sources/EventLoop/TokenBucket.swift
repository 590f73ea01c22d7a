/// A rate with a burst. A value: its clock is handed in, as milliseconds of a monotonic clock.
public struct TokenBucket: Sendable {
  private let perSecond: Double
  private let burst: Double
  private var tokens: Double
  private var filledAt: UInt64 = 0

  /// Makes a full bucket.
  ///
  /// - Parameter burstMilliseconds: the share of the rate that may come at once after a pause; at least one.
  public init(perSecond: Int, burstMilliseconds: Int) {
    self.perSecond = Double(max(1, perSecond))
    burst = max(1, self.perSecond * Double(burstMilliseconds) / 1000)
    tokens = burst
  }

  /// Whether there is one at this time.
  public mutating func hasOne(at now: UInt64) -> Bool {
    tokens = min(burst, tokens + Double(now - min(now, filledAt)) * perSecond / 1000)
    filledAt = max(now, filledAt)
    return tokens >= 1
  }

  /// Takes one, if there is one at this time.
  public mutating func take(at now: UInt64) -> Bool {
    guard hasOne(at: now) else { return false }
    tokens -= 1
    return true
  }

  /// Takes one, also if there is none: what is missing comes first.
  public mutating func spend() { tokens -= 1 }
}
