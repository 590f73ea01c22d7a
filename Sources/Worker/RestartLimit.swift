/// How often a failed part may restart within a sliding span of time. A value without a clock.
public struct RestartLimit: Sendable {
  /// The decision after a failure.
  public enum Answer: Sendable, Equatable {
    /// Restart it. The number counts the restarts within the span, including this one.
    case restart(number: Int)
    /// It fails too often.
    case giveUp
  }

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

  /// Decides about a failure.
  ///
  /// - Parameter now: milliseconds of a monotonic clock.
  public mutating func failed(at now: Int64) -> Answer {
    restarts.removeAll { now - $0 >= spanMilliseconds }
    guard restarts.count < maximum else { return .giveUp }
    restarts.append(now)
    return .restart(number: restarts.count)
  }
}
