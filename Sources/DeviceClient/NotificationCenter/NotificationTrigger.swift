internal import Calendars
public import FoundationEssentials
internal import JSON
public import Notifications

/// When or where a notification is due (`UNNotificationTrigger`).
public enum NotificationTrigger: Sendable, Equatable {
  /// The cluster has sent it.
  case push
  /// After so many seconds, or again and again after so many.
  case timeInterval(Double, repeats: Bool)
  /// When the clock on the wall has these units, in a time zone; nil is the device's.
  case calendar(CalendarUnits, timeZone: Name? = nil, repeats: Bool)
  /// Where the device is: the members of a location trigger as JSON, which the program evaluates. It tells the device by `fire`.
  case location(String)

  /// Whether it is due again and again.
  public var repeats: Bool {
    switch self {
    case .push: false
    case .timeInterval(_, let repeats), .calendar(_, _, let repeats): repeats
    case .location(let text): (try? JSONValue(parsing: text))?["repeats"]?.boolValue ?? false
    }
  }

  /// When the clock on the wall has these components, in their time zone or else the device's (`UNCalendarNotificationTrigger`).
  ///
  /// Throws `badRequest` if it names a component by which no notification is due, such as nanoseconds.
  public static func calendar(dateMatching components: DateComponents, repeats: Bool) throws(DeviceError) -> NotificationTrigger {
    let unknown = [components.era, components.nanosecond, components.yearForWeekOfYear, components.dayOfYear]
    guard unknown.allSatisfy({ $0 == nil }) else {
      throw DeviceError(.badRequest, "trigger.dateComponents: an era, nanoseconds, the year of a week and the day of a year match nothing")
    }
    let values: [(CalendarUnits.Unit, Int?)] = [
      (.year, components.year), (.quarter, components.quarter), (.month, components.month), (.weekOfYear, components.weekOfYear),
      (.weekOfMonth, components.weekOfMonth), (.weekdayOrdinal, components.weekdayOrdinal), (.weekday, components.weekday),
      (.day, components.day), (.hour, components.hour), (.minute, components.minute), (.second, components.second),
    ]
    var units = CalendarUnits()
    for (unit, value) in values { units[unit] = value }
    return .calendar(units, timeZone: components.timeZone.map { Name($0.identifier) }, repeats: repeats)
  }

  /// Returns the next due time of a request that is added at a moment.
  ///
  /// It is nil if the trigger is never due, and for one that no clock decides.
  /// ``UserNotificationCenter/nextTriggerDate(of:)`` has that of a request that waits.
  ///
  /// - Parameter timeZone: the device's, for a calendar trigger that names none.
  public func nextTriggerDate(after moment: Date = Date(), timeZone: Name = "UTC") -> Date? {
    guard let time = Int64(exactly: (moment.timeIntervalSince1970 * 1000).rounded()) else { return nil }
    return nextDue(after: time, timeZone: timeZone).map { Date(milliseconds: $0) }
  }

  /// The same in milliseconds since 1970.
  func nextDue(after moment: Int64, timeZone: Name = "UTC") -> Int64? {
    guard let text = json, case .timed(let trigger)? = try? Trigger(text: text) else { return nil }
    var times = DueTimes(capacity: 1)
    return (try? times.next(of: trigger, requested: moment, after: moment, deviceZone: timeZone))?.due
  }

  /// The trigger as the header `trigger` of a request has it; nil for none.
  public var json: String? {
    switch self {
    case .push: return nil
    case .location(let text): return text
    // A number that JSON does not have is null, and is refused by the rule of intervals.
    case .timeInterval(let seconds, let repeats):
      return JSONValue.object(["type": "timeInterval", "timeInterval": seconds, "repeats": repeats]).text
    case .calendar(let units, let zone, let repeats):
      var components = CalendarUnits.Unit.allCases.compactMap { unit in units[unit].map { JSONValue.Member("\(unit.name)", $0) } }
      if let zone { components.append(.init("timeZone", zone)) }
      return JSONValue.object(["type": "calendar", "dateComponents": JSONValue.object(components), "repeats": repeats]).text
    }
  }

  /// Checks that the text of a location trigger is one.
  func check() throws(DeviceError) {
    guard case .location(let text) = self, try Trigger(text: text) != .location else { return }
    throw DeviceError(.badRequest, "trigger.type: The text of a location trigger has the type location.")
  }

  /// Reads a trigger as a frame has it; nil if it is none that this version knows.
  public init?(json text: String?) {
    guard let text else {
      self = .push
      return
    }
    switch try? Trigger(text: text) {
    case nil: return nil
    case .push: self = .push
    case .location: self = .location(text)
    case .timed(let timed):
      switch timed.rule {
      case .interval(let milliseconds): self = .timeInterval(Double(milliseconds) / 1000, repeats: timed.repeats)
      case .calendar(let units, let zone): self = .calendar(units, timeZone: zone, repeats: timed.repeats)
      }
    }
  }
}

extension Trigger {
  /// Reads the text of a trigger. Throws an error with the member and its rule.
  init(text: String) throws(DeviceError) {
    do throws(Rejection) {
      self = try text.withBytes { bytes throws(Rejection) in try Trigger(bytes) }
    } catch { throw DeviceError(.badRequest, "\(error.field): \(error.rule)") }
  }
}

extension Date {
  /// The date of so many milliseconds since 1970.
  init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }
}
