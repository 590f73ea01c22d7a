internal import Notifications

/// Finds the days of a calendar trigger by its units of date.
///
/// Foundation's own search tries one unit after the other. If the units rarely meet, it takes up to a second and may pass over a year. Its
/// answer also depends on the moment from which it is asked. This search walks a bounded number of days, at some nanoseconds each.
///
/// - A day that a month does not have is the first day of the next month.
/// - A trigger may name a year, quarter or month without a day of the month. It is due once in each such period, on the first day that
///   fits.
struct DaySearch {
  /// The number of days to search. 29 February falls on each weekday at least once in 40 years.
  static let horizon = 41 * 366

  private static let dateUnits: [CalendarUnits.Unit] = [
    .year, .quarter, .month, .weekOfYear, .weekOfMonth, .weekdayOrdinal, .weekday, .day,
  ]

  private let units: CalendarUnits
  private let wanted: [(unit: CalendarUnits.Unit, value: Int)]
  /// The period in which the trigger is due once; nil if each fitting day counts.
  private let period: CalendarUnits.Unit?

  init(_ units: CalendarUnits) {
    self.units = units
    wanted = Self.dateUnits.compactMap { unit in units[unit].map { (unit, $0) } }
    let finest = [CalendarUnits.Unit.month, .quarter, .year].first { units[$0] != nil }
    period = finest == .month && units[.day] != nil ? nil : finest
  }

  /// Whether the trigger is due once in its period.
  var isOnceInItsPeriod: Bool { period != nil }

  /// Finds the first fitting day from a day on; nil if the horizon has none.
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
      // The trigger was due in this period before `start`.
      guard let period else { return nil }
      day.goForth(toNext: period)
    }
    return nil
  }

  private func fits(_ day: CivilDay) -> Bool {
    if wanted.allSatisfy({ day[$0.unit] == $0.value }) { return true }
    guard day.day == 1, let dayOfMonth = units[.day] else { return false }
    let previous = day.lastOfPreviousMonth
    // A day that a period lacks at its end does not move into the next period.
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
