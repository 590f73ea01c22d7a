/// Whether a worker may judge expirations by its machine's clock. A value.
///
/// Events, expirations and the time that devices get are read from that clock. Redis has the only other clock that all workers see. A slow
/// answer proves little: it changes the judgement only if both of its bounds agree.
public struct ClockTrust: Sendable {
  /// The judgement on a clock.
  public enum Judgement: Sendable, Comparable {
    /// It agrees with Redis' clock.
    case agrees
    /// It differs by more than clocks under NTP ever do. Expirations come early or late by the difference.
    case differs
    /// It differs so much that a request with one attempt may expire before it is tried. The worker judges nothing by it.
    case wrong
  }

  /// The difference that is tolerated, in milliseconds. `carillon audit` allows the same.
  public static let toleratedMilliseconds: Int64 = 5_000
  /// The difference from which on nothing is judged, in milliseconds. A request with `apns-expiration: 0` is tried for that long.
  static let wrongMilliseconds: Int64 = 30_000

  /// The judgement; nil before the first comparison.
  public private(set) var judgement: Judgement?

  /// A clock before its first comparison.
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
