public import JSON

/// The hours in which a person's notifications have no banner and no sound.
///
/// The wall clock of a zone decides.
///
/// As JSON `{"from": "22:00", "to": "07:00", "days": [1, 7], "timeZone": "Europe/Rome"}`. If `to` is not after `from`, they end on the next
/// day, so equal times mean 24 hours. `days` has the days on which they begin, from 1 for Sunday to 7. Without `days` they begin each day.
public struct QuietHours: Sendable, Hashable, JSONWritable {
  /// The number of minutes in a day.
  public static var minutesOfDay: Int { 24 * 60 }

  /// The beginning, in minutes since midnight.
  public var from: Int
  /// The end, in minutes since midnight.
  public var to: Int
  /// The weekdays on which they begin, bit 0 for Sunday.
  public var days: UInt8
  /// The zone's IANA name.
  public var timeZone: String

  /// All days of the week.
  public static var everyDay: UInt8 { 0x7F }

  /// Creates quiet hours. Both times are minutes since midnight, below ``minutesOfDay``.
  public init(from: Int, to: Int, days: UInt8 = everyDay, timeZone: String) {
    precondition(
      (0..<Self.minutesOfDay).contains(from) && (0..<Self.minutesOfDay).contains(to) && days <= Self.everyDay, "a day has 1,440 minutes")
    (self.from, self.to, self.days, self.timeZone) = (from, to, days, timeZone)
  }

  /// Whether they contain a reading of the wall clock.
  ///
  /// - Parameters:
  ///   - weekday: 0 for Sunday.
  ///   - minute: since midnight.
  public func contain(weekday: Int, minute: Int) -> Bool {
    let length = to > from ? to - from : to - from + Self.minutesOfDay
    func begin(on weekday: Int) -> Bool { days & 1 << UInt8(weekday % 7) != 0 }
    // The quiet hours that began today, or yesterday.
    return begin(on: weekday) && (from..<from + length).contains(minute)
      || begin(on: weekday + 6) && (from..<from + length).contains(minute + Self.minutesOfDay)
  }

  // MARK: JSON

  init(_ value: JSONValue) throws(FieldError) {
    let reader = try ObjectReader(value, path: "quiet")
    from = try Self.time(reader, "from")
    to = try Self.time(reader, "to")
    timeZone = try reader.requiredText("timeZone", longest: Registration.wordBytes)
    days = Self.everyDay
    guard let elements = try reader.elements("days", atMost: 7) else { return }
    days = 0
    for (value, path) in elements {
      guard let day = value.integerValue, (1...7).contains(day) else {
        throw FieldError(field: path, rule: "A day is a number from 1, for Sunday, to 7.")
      }
      days |= 1 << UInt8(day - 1)
    }
    guard days != 0 else { throw reader.error("days", "Quiet hours begin on at least one day; without days they begin on each.") }
  }

  private static func time(_ reader: ObjectReader, _ key: String) throws(FieldError) -> Int {
    guard let text = reader[key]?.stringValue, let minutes = minutes(of: text) else {
      throw reader.error(key, "A time is text from 00:00 to 23:59.")
    }
    return minutes
  }

  private static func minutes(of text: String) -> Int? {
    let bytes = Array(text.utf8)
    guard bytes.count == 5, bytes[2] == UInt8(ascii: ":") else { return nil }
    let digits = [0, 1, 3, 4].map { Int(bytes[$0]) - 48 }
    guard digits.allSatisfy({ (0...9).contains($0) }) else { return nil }
    let (hour, minute) = (digits[0] * 10 + digits[1], digits[2] * 10 + digits[3])
    return hour < 24 && minute < 60 ? hour * 60 + minute : nil
  }

  /// Renders minutes since midnight, such as `07:30`.
  public static func text(of minutes: Int) -> String {
    let (hour, minute) = (minutes / 60, minutes % 60)
    return "\(hour / 10)\(hour % 10):\(minute / 10)\(minute % 10)"
  }

  /// Appends the quiet hours as a JSON object.
  public func write(to json: inout JSONWriter) {
    json.openObject()
    json.member("from", Self.text(of: from))
    json.member("to", Self.text(of: to))
    if days != Self.everyDay {
      json.key("days")
      json.openArray()
      for day in 1...7 where days & 1 << UInt8(day - 1) != 0 { json.integer(day) }
      json.closeArray()
    }
    json.member("timeZone", timeZone)
    json.closeObject()
  }
}
