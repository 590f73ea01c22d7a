/// How often a failed part may restart within a sliding span of time. A value without a clock.
public struct RestartLimit: Sendable {
  /// The most restarts within the span.
  public let maximum: Int
  /// The span, in milliseconds.
  public let spanMilliseconds: Int64
  /// The times of the restarts within the span before the last failure; oldest first.
  private var restarts: [Int64] = []

  /// Makes a limit.
  ///
  /// - Parameters:
  ///   - maximum: the most restarts within the span.
  ///   - milliseconds: the span. A restart exactly that long ago does not count any more.
  public init(maximum: Int = 3, withinMilliseconds milliseconds: Int64 = 300_000) {
    self.maximum = maximum
    spanMilliseconds = milliseconds
  }

  /// Decides about a failure: answers how many restarts there are within the span, this one included, or nil if it fails too often.
  ///
  /// - Parameter now: milliseconds of a monotonic clock.
  public mutating func failed(at now: Int64) -> Int? {
    restarts.removeAll { now - $0 >= spanMilliseconds }
    guard restarts.count < maximum else { return nil }
    restarts.append(now)
    return restarts.count
  }
}
