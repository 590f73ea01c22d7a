internal import FoundationEssentials
// This module contains the time zone database. Without it no zone is found.
internal import FoundationInternationalization
public import Notifications

/// Computes whether quiet hours hold at a moment, and how long that answer is valid.
///
/// The wall clock decides. An hour that the zone repeats is quiet twice, and an hour that it skips never. Foundation gives the zone's
/// offset from UTC and its next change, in less than a microsecond. Between two changes the rest is arithmetic.
public struct QuietCalendar {
  /// Whether quiet hours hold, until a moment.
  public struct Answer: Equatable, Sendable {
    /// Whether quiet hours hold.
    public let isQuiet: Bool
    /// When to ask again, in milliseconds since 1970. Nothing changes before.
    public let until: Int64
  }

  /// The zones that were asked for, by name. A few hundred exist.
  private var zones: [String: TimeZone] = [:]
  private static let maximumZones = 1_024

  /// Creates a calendar with an empty cache of zones.
  public init() {}

  /// Whether the time zone database has a zone with exactly this name.
  public static func isZone(_ name: String) -> Bool { WallClock(Name(name)) != nil }

  /// Computes whether quiet hours hold; `nil` if their zone is unknown.
  ///
  /// - Parameter now: milliseconds since 1970.
  public mutating func answer(for hours: QuietHours, at now: Int64) -> Answer? {
    guard let zone = zone(hours.timeZone) else { return nil }
    let seconds = Self.floorDivision(now, 1_000).quotient
    let moment = Date(timeIntervalSince1970: TimeInterval(seconds))
    let (day, second) = Self.floorDivision(seconds + Int64(zone.secondsFromGMT(for: moment)), 86_400)
    // 1 January 1970 was a Thursday.
    let weekday = Int(Self.floorDivision(day + 4, 7).remainder)
    let isQuiet = hours.contain(weekday: weekday, minute: Int(second) / 60)
    var wait =
      [hours.from, hours.to].map { boundary -> Int64 in
        let left = Int64(boundary * 60) - second
        return left > 0 ? left : left + 86_400
      }.min() ?? 86_400
    if let change = zone.nextDaylightSavingTimeTransition(after: moment) {
      wait = min(wait, Int64(max(1, (change.timeIntervalSince1970 - TimeInterval(seconds)).rounded(.down))))
    }
    return Answer(isQuiet: isQuiet, until: (seconds + wait) * 1_000)
  }

  private mutating func zone(_ name: String) -> TimeZone? {
    if let zone = zones[name] { return zone }
    guard let zone = TimeZone(identifier: name) else { return nil }
    if zones.count < Self.maximumZones { zones[name] = zone }
    return zone
  }

  private static func floorDivision(_ number: Int64, _ divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = number.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
