import EventLoop

/// The cluster's clock for the device: the time of `welcome`, continued by the loop's monotonic clock.
///
/// It counts from the sending of the hello. So the clock is never late, however long the welcome took, and nothing is shown after its time.
/// It may be ahead by the duration of the answer, which a slow network or a stopped worker makes seconds.
struct ClusterClock {
  /// A lead of this many milliseconds does not matter, since expirations are in whole seconds.
  static let precision: Int64 = 1_000

  private var offset: Int64?
  /// The most milliseconds that it may be ahead.
  private var uncertainty: Int64 = 0

  /// Sets the cluster's time in an answer, with the loop's times of the hello and of the answer.
  mutating func set(_ now: Int64, askedAt asked: UInt64, answeredAt answered: UInt64) {
    offset = now &- Int64(clamping: asked)
    uncertainty = Int64(clamping: answered - min(asked, answered))
    if uncertainty <= Self.precision { uncertainty = 0 }
  }

  /// The latest possible time in milliseconds since 1970. Before the first welcome it is the machine's time, to the second.
  func now(loopMilliseconds: UInt64) -> Int64 {
    if let offset { return Int64(clamping: loopMilliseconds) &+ offset }
    return WallClock.milliseconds()
  }

  /// The earliest possible time in milliseconds since 1970.
  func earliest(loopMilliseconds: UInt64) -> Int64 { now(loopMilliseconds: loopMilliseconds) &- uncertainty }
}
