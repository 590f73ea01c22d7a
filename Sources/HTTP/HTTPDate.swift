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
    // The program sets no locale, so the names are those of C.
    return String(unsafeUninitializedCapacity: 64) { text in
      text.withMemoryRebound(to: CChar.self) { strftime($0.baseAddress, $0.count, "%a, %d %b %Y %H:%M:%S GMT", &parts) }
    }
  }
}
