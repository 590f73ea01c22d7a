internal import Notifications

/// The days on which a calendar trigger can be due, by its units of date.
///
/// Foundation's own search looks at one unit after the other. Where they rarely or never meet it takes up to a second, its answer depends on
/// the moment from which it is asked, and a year may be passed over. This one walks a bounded number of days, each some nanoseconds.
///
/// - A day that a month does not have is the first of the next one.
/// - A trigger that names a year, a quarter or a month, and no day of the month, is due once in each such time: on its first day that fits.
struct DaySearch {
  /// How far it looks, in days: a 29 February falls on each weekday at least once in 40 years.
  static let horizon = 41 * 366

  private static let dateUnits: [CalendarUnits.Unit] = [
    .year, .quarter, .month, .weekOfYear, .weekOfMonth, .weekdayOrdinal, .weekday, .day,
  ]

  private let units: CalendarUnits
  private let wanted: [(unit: CalendarUnits.Unit, value: Int)]
  /// The time in which it is due once; nil where it is due on each day that fits.
  private let period: CalendarUnits.Unit?

  init(_ units: CalendarUnits) {
    self.units = units
    wanted = Self.dateUnits.compactMap { unit in units[unit].map { (unit, $0) } }
    let finest = [CalendarUnits.Unit.month, .quarter, .year].first { units[$0] != nil }
    period = finest == .month && units[.day] != nil ? nil : finest
  }

  /// Whether it is due at one time only of each day that is found.
  var isOnceInItsPeriod: Bool { period != nil }

  /// The first day that fits, from this one on; nil where there is none within the horizon.
  func first(from start: CivilDay) -> CivilDay? {
    var day = start
    if let period { day.goBack(toStartOf: period) }
    for _ in 0..<Self.horizon {
      // The first of a month may stand for a day of the year before.
      if let year = units[.year], day.year > year + 1 { return nil }
      guard fits(day) else {
        day.advance()
        continue
      }
      if day >= start { return day }
      // In this period it was due already.
      guard let period else { return nil }
      day.goForth(toNext: period)
    }
    return nil
  }

  private func fits(_ day: CivilDay) -> Bool {
    if wanted.allSatisfy({ day[$0.unit] == $0.value }) { return true }
    guard day.day == 1, let dayOfMonth = units[.day] else { return false }
    let previous = day.lastOfPreviousMonth
    // What a period lacks at its end is not made up for in the next one.
    guard dayOfMonth > previous.day, period.map({ previous[$0] == day[$0] }) ?? true else { return false }
    return wanted.allSatisfy { unit, value in
      switch unit {
      case .day: true
      case .year, .quarter, .month: previous[unit] == value
      default: day[unit] == value
      }
    }
  }
}
