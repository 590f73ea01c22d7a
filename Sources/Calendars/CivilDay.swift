internal import Notifications

/// A day of the Gregorian calendar, with its place in its week, month and year.
///
/// It has no zone and no time of day: only Foundation computes those.
struct CivilDay: Equatable, Comparable {
  private(set) var year: Int
  private(set) var month: Int
  private(set) var day: Int
  /// The day of the week, from 1 for Sunday.
  private(set) var weekday: Int
  /// The number of days since 1 January.
  private(set) var dayOfYear: Int

  static func < (left: CivilDay, right: CivilDay) -> Bool { (left.year, left.dayOfYear) < (right.year, right.dayOfYear) }

  // MARK: Steps

  /// Moves to the next day.
  mutating func advance() {
    weekday = weekday == 7 ? 1 : weekday + 1
    dayOfYear += 1
    day += 1
    guard day > Self.days(in: month, of: year) else { return }
    day = 1
    month += 1
    guard month > 12 else { return }
    month = 1
    year += 1
    dayOfYear = 0
  }

  /// Moves to the previous day.
  mutating func goBack() {
    guard day > 1 else {
      self = lastOfPreviousMonth
      return
    }
    self = earlierInMonth(by: 1)
  }

  /// Moves to the first day of the year, quarter or month.
  mutating func goBack(toStartOf period: CalendarUnits.Unit) {
    while day > 1 || (period == .year && month > 1) || (period == .quarter && month % 3 != 1) {
      self = day > 1 ? earlierInMonth(by: day - 1) : lastOfPreviousMonth
    }
  }

  /// Moves to the first day of the next year, quarter or month.
  mutating func goForth(toNext period: CalendarUnits.Unit) {
    repeat { advance() } while day > 1 || (period == .year && month > 1) || (period == .quarter && month % 3 != 1)
  }

  /// The last day of the previous month.
  var lastOfPreviousMonth: CivilDay {
    var last = earlierInMonth(by: day - 1)
    last.weekday = last.weekday == 1 ? 7 : last.weekday - 1
    if month == 1 {
      (last.year, last.month) = (year - 1, 12)
      last.dayOfYear = Self.isLeap(year - 1) ? 365 : 364
    } else {
      last.month = month - 1
      last.dayOfYear -= 1
    }
    last.day = Self.days(in: last.month, of: last.year)
    return last
  }

  private func earlierInMonth(by days: Int) -> CivilDay {
    CivilDay(year: year, month: month, day: day - days, weekday: weekdayEarlier(by: days) + 1, dayOfYear: dayOfYear - days)
  }

  // MARK: Units

  /// The number of days since 1970-01-01.
  var daysSince1970: Int64 {
    let years = Int64(year - 1)
    return years * 365 + years / 4 - years / 100 + years / 400 + Int64(dayOfYear) - 719_162
  }

  /// Noon in UTC, in milliseconds since 1970.
  var noon: Int64 { (daysSince1970 * 86_400 + 43_200) * 1000 }

  /// The value of a unit of date; nil for a unit of time.
  subscript(_ unit: CalendarUnits.Unit) -> Int? {
    switch unit {
    case .year: year
    case .quarter: (month - 1) / 3 + 1
    case .month: month
    case .weekOfYear: weekOfYear
    case .weekOfMonth: (day - 1 + weekdayEarlier(by: day - 1)) / 7 + 1
    case .weekdayOrdinal: (day - 1) / 7 + 1
    case .weekday: weekday
    case .day: day
    case .hour, .minute, .second: nil
    }
  }

  /// The week of the year. The first week contains 1 January.
  private var weekOfYear: Int {
    let daysLeft = (Self.isLeap(year) ? 366 : 365) - dayOfYear
    // The week reaches into the next year.
    if 7 - weekday >= daysLeft { return 1 }
    return (dayOfYear + weekdayEarlier(by: dayOfYear)) / 7 + 1
  }

  /// Returns the weekday a number of days earlier; 0 is Sunday.
  private func weekdayEarlier(by days: Int) -> Int { (weekday + 6 - days % 7) % 7 }

  private static func days(in month: Int, of year: Int) -> Int {
    switch month {
    case 2: isLeap(year) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }
}
