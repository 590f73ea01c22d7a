internal import Notifications

/// The times of day at which a calendar trigger is due.
struct TimeOfDay {
  private let hour: Int?
  private let minute: Int?
  private let second: Int

  /// Whether the trigger names an hour. Otherwise each hour counts, also one that exists twice.
  var hasHour: Bool { hour != nil }

  /// A smaller unit than the hour, or than all given ones, is 0.
  init(_ units: CalendarUnits) {
    let (hour, minute, second) = (units[.hour], units[.minute], units[.second])
    self.hour = hour ?? (minute == nil && second == nil ? 0 : nil)
    self.minute = minute ?? (hour != nil || second == nil ? 0 : nil)
    self.second = second ?? 0
  }

  /// The seconds since midnight, in order.
  var seconds: some Sequence<Int64> {
    (hour.map { $0...$0 } ?? 0...23).lazy.flatMap { [minute, second] hour in
      (minute.map { $0...$0 } ?? 0...59).lazy.map { Int64(hour * 3_600 + $0 * 60 + second) }
    }
  }
}
