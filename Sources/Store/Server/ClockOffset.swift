import Notifications
import Redis

/// How far the machine's clock is ahead of Redis' clock. Two bounds, because the answer took time.
public struct ClockOffset: Sendable, Hashable {
  /// The offset lies between these, in milliseconds. Below zero the machine's clock is behind.
  public let bounds: ClosedRange<Int64>
  /// The machine's time when Redis' answer arrived, in milliseconds since 1970.
  public let machine: Int64
  /// Redis' time, in milliseconds since 1970.
  public let server: Int64

  /// Computes the offset from one answer; all times are milliseconds since 1970.
  ///
  /// - Parameters:
  ///   - before: the machine's time when the question was sent.
  ///   - server: Redis' time.
  ///   - after: the machine's time when the answer arrived.
  public init(before: Int64, server: Int64, after: Int64) {
    let (before, server, after) = (Timestamp.bounded(before), Timestamp.bounded(server), Timestamp.bounded(after))
    // If the clock was set back meanwhile, the second bound is the lower one.
    bounds = min(before, after) - server...max(before, after) - server
    (machine, self.server) = (after, server)
  }

  /// The middle of the bounds, in milliseconds.
  public var milliseconds: Int64 { bounds.lowerBound + (bounds.upperBound - bounds.lowerBound) / 2 }
  /// The smallest difference that the bounds allow, in milliseconds.
  var minimum: Int64 { bounds.contains(0) ? 0 : min(abs(bounds.lowerBound), abs(bounds.upperBound)) }
  /// The largest difference that the bounds allow, in milliseconds.
  var maximum: Int64 { max(abs(bounds.lowerBound), abs(bounds.upperBound)) }
}

extension Shards {
  /// Compares the machine's clock with that of Redis. It asks a few times and takes the fastest answer.
  ///
  /// - Returns: nil if Redis does not tell its time; a `SelfCheck` finds the reason.
  public func clockOffset() async throws(StoreError) -> ClockOffset? {
    var best: ClockOffset?
    for _ in 0..<3 where best.map({ $0.bounds.upperBound - $0.bounds.lowerBound > Self.exactMilliseconds }) ?? true {
      let before = wallClock()
      let answer: RedisValue
      do throws(StoreError) {
        answer = try await common.answer("TIME")
      } catch {
        if error.code == .unavailable || error.code == .overloaded { throw error }
        return best
      }
      let after = wallClock()
      guard let parts = answer.array, parts.count == 2, let seconds = parts[0].integer, let microseconds = parts[1].integer,
        (0...Timestamp.latest / 1000).contains(seconds), (0..<1_000_000).contains(microseconds)
      else { return best }
      let found = ClockOffset(before: before, server: seconds * 1000 + microseconds / 1000, after: after)
      if let best, best.bounds.upperBound - best.bounds.lowerBound <= found.bounds.upperBound - found.bounds.lowerBound { continue }
      best = found
    }
    return best
  }

  /// A faster answer needs no repetition, in milliseconds.
  private static let exactMilliseconds: Int64 = 100
}
