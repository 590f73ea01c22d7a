/// The wall times that a calendar trigger matches: values for some units of the calendar.
///
/// The calendar is Gregorian. The units count as in Apple's `DateComponents`: weekday 1 is Sunday, and a week begins on Sunday.
public struct CalendarUnits: Sendable, Hashable, CustomStringConvertible {
  /// A unit of the calendar, named as in `dateComponents`.
  public enum Unit: Int, Sendable, CaseIterable {
    case year, quarter, month, weekOfYear, weekOfMonth, weekdayOrdinal, weekday, day, hour, minute, second

    /// The name of the unit in `dateComponents`.
    public var name: StaticString { Self.table[rawValue].name }
    /// The path of the unit in a rejection.
    var field: StaticString { Self.table[rawValue].field }
    /// The possible values of the unit.
    public var range: ClosedRange<Int64> { Self.table[rawValue].range }

    private static let table: [(name: StaticString, field: StaticString, range: ClosedRange<Int64>)] = [
      ("year", "trigger.dateComponents.year", 1...9999),
      ("quarter", "trigger.dateComponents.quarter", 1...4),
      ("month", "trigger.dateComponents.month", 1...12),
      ("weekOfYear", "trigger.dateComponents.weekOfYear", 1...53),
      ("weekOfMonth", "trigger.dateComponents.weekOfMonth", 1...6),
      ("weekdayOrdinal", "trigger.dateComponents.weekdayOrdinal", 1...5),
      ("weekday", "trigger.dateComponents.weekday", 1...7),
      ("day", "trigger.dateComponents.day", 1...31),
      ("hour", "trigger.dateComponents.hour", 0...23),
      ("minute", "trigger.dateComponents.minute", 0...59),
      ("second", "trigger.dateComponents.second", 0...59),
    ]
  }

  private static let any = Int16.min

  /// One lane for each unit.
  private var values = SIMD16<Int16>(repeating: any)

  /// Creates units without values, which match any wall time.
  public init() {}

  /// The value of a unit; nil if it matches any.
  ///
  /// A value outside the unit's range stays outside, so that the trigger is refused where it is used.
  public subscript(_ unit: Unit) -> Int? {
    get { values[unit.rawValue] == Self.any ? nil : Int(values[unit.rawValue]) }
    set { values[unit.rawValue] = newValue.map { max(Int16(clamping: $0), Self.any + 1) } ?? Self.any }
  }

  /// The units with their values.
  public var description: String {
    "[\(Unit.allCases.compactMap { unit in self[unit].map { "\(unit.name) \($0)" } }.joined(separator: ", "))]"
  }

  /// Whether no unit has a value.
  public var isEmpty: Bool { self == CalendarUnits() }
}
