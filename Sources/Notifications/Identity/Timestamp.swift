/// Times as text by RFC 3339, in UTC with milliseconds, such as `2026-11-21T10:19:43.007Z`.
public enum Timestamp {
  /// The number of characters of a time.
  public static var textCount: Int { 24 }

  /// The latest time that has a text form: the end of the year 9999.
  public static var latest: Int64 { 253_402_300_799_999 }

  /// Returns a time in milliseconds since 1970, limited to the years 1970 to 9999.
  ///
  /// Sums and differences of such times fit into 64 bits.
  public static func bounded(_ milliseconds: Int64) -> Int64 { min(max(milliseconds, 0), latest) }

  /// Passes the text of a time to `body`, valid during the call.
  ///
  /// The time is in milliseconds since 1970, and limited to the years 1970 to 9999.
  public static func withText<Result>(_ milliseconds: Int64, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    let time = bounded(milliseconds)
    let (year, month, day) = date(daysSince1970: time / 86_400_000)
    let inDay = time % 86_400_000
    return try withUnsafeTemporaryAllocation(byteCount: textCount, alignment: 8) { output in
      func put(_ value: Int64, _ places: Int, at offset: Int, then separator: UInt8) {
        var rest = value
        for index in stride(from: places - 1, through: 0, by: -1) {
          output[offset + index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
          rest /= 10
        }
        output[offset + places] = separator
      }
      put(year, 4, at: 0, then: UInt8(ascii: "-"))
      put(month, 2, at: 5, then: UInt8(ascii: "-"))
      put(day, 2, at: 8, then: UInt8(ascii: "T"))
      put(inDay / 3_600_000, 2, at: 11, then: UInt8(ascii: ":"))
      put(inDay / 60_000 % 60, 2, at: 14, then: UInt8(ascii: ":"))
      put(inDay / 1000 % 60, 2, at: 17, then: UInt8(ascii: "."))
      put(inDay % 1000, 3, at: 20, then: UInt8(ascii: "Z"))
      return try body(UnsafeRawBufferPointer(rebasing: output[0..<textCount]))
    }
  }

  /// Returns the text of a time in milliseconds since 1970.
  public static func text(_ milliseconds: Int64) -> String { withText(milliseconds) { $0.text } }

  /// Reads a time by RFC 3339 as milliseconds since 1970; `nil` if it is invalid.
  ///
  /// Digits below a millisecond are cut off.
  public static func parse(_ text: UnsafeRawBufferPointer) -> Int64? {
    var reader = DigitReader(rest: text)
    guard let year = reader.number(4), reader.skip("-"), let month = reader.number(2), reader.skip("-"), let day = reader.number(2),
      reader.skip("T") || reader.skip("t") || reader.skip(" "), let hour = reader.number(2), reader.skip(":"),
      let minute = reader.number(2), reader.skip(":"), let second = reader.number(2), (1...12).contains(month), day >= 1,
      day <= daysIn(month, year), hour < 24, minute < 60, second <= 60
    else { return nil }
    var fraction: Int64 = 0
    if reader.skip(".") {
      var places = 0
      while let digit = reader.number(1) {
        if places < 3 { fraction = fraction * 10 + digit }
        places += 1
      }
      guard places > 0 else { return nil }
      for _ in min(places, 3)..<3 { fraction *= 10 }
    }
    var zone: Int64 = 0
    if !(reader.skip("Z") || reader.skip("z")) {
      let isAhead = reader.skip("+")
      guard isAhead || reader.skip("-"), let hours = reader.number(2), reader.skip(":"), let minutes = reader.number(2), hours < 24,
        minutes < 60
      else { return nil }
      zone = (hours * 60 + minutes) * (isAhead ? 1 : -1)
    }
    guard reader.rest.isEmpty else { return nil }
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - zone
    return (minutes * 60 + second) * 1000 + fraction
  }

  /// Reads a time by RFC 3339 as milliseconds since 1970; `nil` if it is invalid.
  public static func parse(_ text: String) -> Int64? {
    var text = text
    return text.withUTF8 { parse(UnsafeRawBufferPointer($0)) }
  }

  private static func daysIn(_ month: Int64, _ year: Int64) -> Int64 {
    switch month {
    case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// Returns the days since 1970. Years count from 1 March, so that the leap day is last.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
    let marchYear = month > 2 ? year : year - 1
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return marchYear * 365 + marchYear / 4 - marchYear / 100 + marchYear / 400 + dayOfYear - 719_468
  }

  private static func date(daysSince1970: Int64) -> (year: Int64, month: Int64, day: Int64) {
    // An estimate by the mean length of a year is at most one year off.
    var year = 1970 + daysSince1970 * 400 / 146_097
    if days(year, 1, 1) > daysSince1970 { year -= 1 } else if days(year + 1, 1, 1) <= daysSince1970 { year += 1 }
    var month: Int64 = 12
    while days(year, month, 1) > daysSince1970 { month -= 1 }
    return (year, month, daysSince1970 - days(year, month, 1) + 1)
  }
}

private struct DigitReader {
  var rest: UnsafeRawBufferPointer

  mutating func number(_ places: Int) -> Int64? {
    guard rest.count >= places else { return nil }
    var value: Int64 = 0
    for index in 0..<places {
      let digit = rest[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value * 10 + Int64(digit)
    }
    rest = rest.dropping(places)
    return value
  }

  mutating func skip(_ character: StaticString) -> Bool {
    guard rest.starts(with: character) else { return false }
    rest = rest.dropping(character.utf8CodeUnitCount)
    return true
  }
}
