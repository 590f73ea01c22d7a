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
    guard let found = TimeZone(identifier: zone.text), Name(found.identifier) == zone || zone == "UTC", !Self.abbreviations.contains(zone)
    else { return nil }
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = found
    // The values of the locale en_US_POSIX, whatever the locale of the process is.
    calendar.firstWeekday = 1
    calendar.minimumDaysInFirstWeek = 1
    self.calendar = calendar
  }

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

  /// Returns the last whole second before a day. If the zone skipped the day, the next day counts.
  func lastMoment(before day: CivilDay) -> Int64? {
    calendar.date(from: DateComponents(year: day.year, month: day.month, day: day.day)).map { Self.milliseconds($0) - 1000 }
  }

  /// Finds the first moment strictly after this one with a time of day. A nil unit matches any value.
  func next(hour: Int?, minute: Int?, second: Int?, after moment: Int64) -> Int64? {
    calendar.nextDate(
      after: Self.date(moment), matching: DateComponents(hour: hour, minute: minute, second: second),
      matchingPolicy: .nextTimePreservingSmallerComponents, repeatedTimePolicy: .first
    ).map(Self.milliseconds)
  }

  /// Finds the first moment of a time on a day; nil in a gap.
  func first(on day: CivilDay, hour: Int, minute: Int, second: Int) -> Int64? {
    let wanted = DateComponents(year: day.year, month: day.month, day: day.day, hour: hour, minute: minute, second: second)
    guard let date = calendar.date(from: wanted) else { return nil }
    let shown = calendar.dateComponents([.year, .month, .day, .hour, .minute, .second], from: date)
    guard shown.year == day.year, shown.month == day.month, shown.day == day.day, shown.hour == hour, shown.minute == minute,
      shown.second == second
    else { return nil }
    let moment = Self.milliseconds(date)
    return showing(at: moment).earlier ?? moment
  }

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
    let offset = calendar.timeZone.secondsFromGMT(for: Self.date(moment))
    let local = moment / 1000 + Int64(offset)
    let earlierOffset = calendar.timeZone.secondsFromGMT(for: Self.date(moment - 86_400_000))
    let earlier = (local - Int64(earlierOffset)) * 1000
    let isSecond = earlierOffset > offset && calendar.timeZone.secondsFromGMT(for: Self.date(earlier)) == earlierOffset
    return (local, isSecond ? earlier : nil)
  }

  private static func date(_ moment: Int64) -> Date { Date(timeIntervalSince1970: Double(moment) / 1000) }

  private static func milliseconds(_ date: Date) -> Int64 { Int64((date.timeIntervalSince1970 * 1000).rounded()) }
}
