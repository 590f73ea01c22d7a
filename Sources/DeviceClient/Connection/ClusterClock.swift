import EventLoop

/// The cluster's clock as the device knows it: what `welcome` said, carried on by the loop's monotonic one.
struct ClusterClock {
  private var offset: Int64?

  /// The cluster has said what time it is.
  mutating func set(_ now: Int64, loopMilliseconds: UInt64) { offset = now &- Int64(clamping: loopMilliseconds) }

  /// Milliseconds since 1970; before the first welcome those of the machine's clock, to the second.
  func now(loopMilliseconds: UInt64) -> Int64 {
    if let offset { return Int64(clamping: loopMilliseconds) &+ offset }
    return WallClock.milliseconds()
  }
}
