import EventLoop

/// The cluster's clock as the device knows it: what `welcome` said, carried on by the loop's monotonic one.
///
/// It counts from when the hello left: however long the welcome was under way, the clock is never late, and nothing is shown after its time.
struct ClusterClock {
  private var offset: Int64?

  /// The cluster has said what time it is, in answer to a hello that left at this time of the loop.
  mutating func set(_ now: Int64, askedAt loopMilliseconds: UInt64) { offset = now &- Int64(clamping: loopMilliseconds) }

  /// Milliseconds since 1970; before the first welcome those of the machine's clock, to the second.
  func now(loopMilliseconds: UInt64) -> Int64 {
    if let offset { return Int64(clamping: loopMilliseconds) &+ offset }
    return WallClock.milliseconds()
  }
}
