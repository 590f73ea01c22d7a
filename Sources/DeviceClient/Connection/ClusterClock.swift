import EventLoop

/// The cluster's clock as the device knows it: what `welcome` said, carried on by the loop's monotonic one.
///
/// It counts from when the hello left: however long the welcome was under way, the clock is never late, and nothing is shown after its
/// time. It may be ahead by as long as the answer took, which a slow way or a worker that stood still makes seconds.
struct ClusterClock {
  /// So many milliseconds ahead do not matter: expirations are in whole seconds.
  static let precision: Int64 = 1_000

  private var offset: Int64?
  /// How far it may be ahead, in milliseconds.
  private var uncertainty: Int64 = 0

  /// The cluster has said what time it is, at a time of the loop, in answer to a hello that left at another.
  mutating func set(_ now: Int64, askedAt asked: UInt64, answeredAt answered: UInt64) {
    offset = now &- Int64(clamping: asked)
    uncertainty = Int64(clamping: answered - min(asked, answered))
    if uncertainty <= Self.precision { uncertainty = 0 }
  }

  /// Milliseconds since 1970, at the latest; before the first welcome those of the machine's clock, to the second.
  func now(loopMilliseconds: UInt64) -> Int64 {
    if let offset { return Int64(clamping: loopMilliseconds) &+ offset }
    return WallClock.milliseconds()
  }

  /// Milliseconds since 1970, at the earliest.
  func earliest(loopMilliseconds: UInt64) -> Int64 { now(loopMilliseconds: loopMilliseconds) &- uncertainty }
}
