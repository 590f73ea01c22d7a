/// Whether a worker may judge expirations by its machine's clock: a value that is told offsets from Redis' clock.
///
/// Events, expirations and the time that devices are given are all read from that clock. Redis has the only other clock that all workers see.
/// An answer that took long says little: it changes the judgement only where both of its bounds agree.
public struct ClockTrust: Sendable {
  /// How a clock stands.
  public enum Judgement: Sendable, Comparable {
    /// It agrees with Redis' clock.
    case agrees
    /// It differs by more than clocks that NTP sets ever do; expirations come early or late by as much.
    case differs
    /// It differs so much that a request with one attempt may expire before it is tried: nothing is judged by it.
    case wrong
  }

  /// Clocks may differ by so many milliseconds. `carillon audit` allows for the same unless told otherwise (`--clock-slack`).
  public static let toleratedMilliseconds: Int64 = 5_000
  /// By a clock that differs by more milliseconds nothing is judged: so long a request with `apns-expiration: 0` may be tried.
  public static let wrongMilliseconds: Int64 = 30_000

  /// How the clock stands; nil before the first comparison.
  public private(set) var judgement: Judgement?

  /// Of a clock that was not compared yet.
  public init() {}

  /// Judges the clock by one offset.
  public mutating func judge(_ offset: ClockOffset) -> Judgement {
    let (least, greatest) = (Self.judgement(of: offset.minimum), Self.judgement(of: offset.maximum))
    let next = min(max(judgement ?? .agrees, least), greatest)
    judgement = next
    return next
  }

  private static func judgement(of difference: Int64) -> Judgement {
    difference > wrongMilliseconds ? .wrong : difference > toleratedMilliseconds ? .differs : .agrees
  }
}
