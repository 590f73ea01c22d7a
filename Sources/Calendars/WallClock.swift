internal import FoundationEssentials
// This module contains the time zone database. Without it no zone is found.
internal import FoundationInternationalization
internal import Notifications

/// The wall clock of one time zone: Foundation's Gregorian calendar.
struct WallClock {
  private let calendar: Calendar

  /// Creates the clock of a zone; nil if the database lacks the name.
  ///
  /// Foundation also accepts abbreviations and offsets, in several spellings. This initializer accepts a name only as the database spells
  /// it.
  init?(_ zone: Name) {
    guard let found = TimeZone(identifier: zone.text), Name(found.identifier) == zone || Self.renamed.contains(zone),
      !Self.abbreviations.contains(zone)
    else { return nil }
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = found
    // The values of the locale en_US_POSIX, whatever the locale of the process is.
    calendar.firstWeekday = 1
    calendar.minimumDaysInFirstWeek = 1
    self.calendar = calendar
  }

  /// Zones of the database that Foundation gives another name.
  private static let renamed: Set<Name> = ["UTC", "GMT+0", "GMT-0"]
  /// Zones of ICU that the time zone database lacks. Some of them mean several zones.
  private static let abbreviations: Set<Name> = [
    "ACT", "AET", "AGT", "ART", "AST", "BET", "BST", "CAT", "CNT", "CST", "CTT", "EAT", "ECT", "IET", "IST", "JST", "MIT", "NET", "NST",
    "PLT", "PNT", "PRT", "PST", "SST", "VST",
  ]

  /// The version of the time zone database, such as `2025b`.
  static var dataVersion: String { TimeZone.timeZoneDataVersion }

  /// Returns the day of a moment.
  ///
  /// - Parameter moment: milliseconds since 1970.
  func day(at moment: Int64) -> CivilDay {
    let parts = calendar.dateComponents([.year, .month, .day, .weekday, .dayOfYear], from: Self.date(moment))
    guard let year = parts.year, let month = parts.month, let day = parts.day, let weekday = parts.weekday, let ofYear = parts.dayOfYear
    else { preconditionFailure("a date has each unit that was asked for") }
    return CivilDay(year: year, month: month, day: day, weekday: weekday, dayOfYear: ofYear - 1)
  }

  /// Finds the first moment strictly after this one at which a time of day is due on a day near which the clock does not change.
  ///
  /// - Parameter moment: milliseconds since 1970; `Int64.min` for the first one of the day.
  func first(_ time: TimeOfDay, on day: CivilDay, after moment: Int64) -> Int64? {
    let midnight = day.daysSince1970 * 86_400, offset = offset(at: day.noon)
    return time.seconds.lazy.map { (midnight + $0 - offset) * 1000 }.first { $0 > moment }
  }

  /// Returns all moments at which a time of day is due on a day near a change of the clock, in their order.
  func moments(of time: TimeOfDay, on day: CivilDay) -> [Int64] {
    let midnight = day.daysSince1970 * 86_400
    return time.seconds.flatMap { moments(showing: midnight + $0, isFirstOnly: time.hasHour) }.sorted()
  }

  /// Returns the moments at which the clock shows a time: one, two, or, if a gap skips the time, the one that is as much later as the gap is
  /// long.
  ///
  /// It expects at most one change of the clock within two days.
  private func moments(showing local: Int64, isFirstOnly: Bool) -> [Int64] {
    let (before, after) = (offset(at: (local - 86_400) * 1000), offset(at: (local + 86_400) * 1000))
    let found = [before, after].filter { offset(at: (local - $0) * 1000) == $0 }.map { (local - $0) * 1000 }
    guard let first = found.first else { return [(local - before) * 1000] }
    return isFirstOnly || before == after ? [first] : found
  }

  /// Whether the clock changes within two days of a moment.
  func changes(near moment: Int64) -> Bool { offset(at: moment - 172_800_000) != offset(at: moment + 172_800_000) }

  /// Returns how many seconds the clock is ahead of UTC.
  private func offset(at moment: Int64) -> Int64 { Int64(calendar.timeZone.secondsFromGMT(for: Self.date(moment))) }

  /// Returns the reading of the clock as a number.
  ///
  /// It is twice the local seconds since 1970, plus 1 when the clock shows this time for the second time.
  func reading(at moment: Int64) -> Int64 {
    let showing = showing(at: moment)
    return 2 * showing.local + (showing.earlier == nil ? 0 : 1)
  }

  /// Returns the local seconds since 1970, and the earlier moment with the same reading.
  ///
  /// It looks back one day.
  private func showing(at moment: Int64) -> (local: Int64, earlier: Int64?) {
    let offset = offset(at: moment)
    let local = moment / 1000 + offset
    let earlierOffset = self.offset(at: moment - 86_400_000)
    let earlier = (local - earlierOffset) * 1000
    return (local, earlierOffset > offset && self.offset(at: earlier) == earlierOffset ? earlier : nil)
  }

  private static func date(_ moment: Int64) -> Date { Date(timeIntervalSince1970: Double(moment) / 1000) }
}
