/// How often something that has failed may start again: so many times within a span of time that slides. A value, which knows no clock.
public struct RestartLimit: Sendable {
  /// What is to be done about a failure.
  public enum Answer: Sendable, Equatable {
    /// Start it again; the number counts the restarts within the span, this one included.
    case restart(number: Int)
    /// It fails too often.
    case giveUp
  }

  /// Restarts within the span at most.
  public let maximum: Int
  /// The span, in milliseconds.
  public let spanMilliseconds: Int64
  /// When it was started again, within the span before the last failure; oldest first.
  private var restarts: [Int64] = []

  /// A limit that has seen no failure yet.
  ///
  /// - Parameters:
  ///   - maximum: restarts within the span at most.
  ///   - milliseconds: the span; a restart that lies exactly so far back counts no more.
  public init(maximum: Int = 3, withinMilliseconds milliseconds: Int64 = 300_000) {
    self.maximum = maximum
    spanMilliseconds = milliseconds
  }

  /// It has failed.
  ///
  /// - Parameter now: milliseconds by a clock that only goes forward.
  public mutating func failed(at now: Int64) -> Answer {
    restarts.removeAll { now - $0 >= spanMilliseconds }
    guard restarts.count < maximum else { return .giveUp }
    restarts.append(now)
    return .restart(number: restarts.count)
  }
}
