import Glibc

/// The value of the `Date` field, which is made once a second.
struct HTTPDate {
  private var second: time_t = 0
  private var text = ""

  /// The current time in the fixed form of RFC 9110, section 5.6.7: `Sun, 06 Nov 1994 08:49:37 GMT`.
  mutating func now() -> String {
    let current = time(nil)
    if current != second || text.isEmpty {
      second = current
      text = Self.text(of: current)
    }
    return text
  }

  static func text(of second: time_t) -> String {
    var second = second
    var parts = tm()
    gmtime_r(&second, &parts)
    let day = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][Int(parts.tm_wday)]
    let month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][Int(parts.tm_mon)]
    let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(twoDigits).joined(separator: ":")
    return "\(day), \(twoDigits(parts.tm_mday)) \(month) \(1900 + parts.tm_year) \(clock) GMT"
  }

  private static func twoDigits(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
