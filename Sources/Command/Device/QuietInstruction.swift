import Calendars
import Notifications

extension DeviceInstruction {
  /// Reads the words of `quiet FROM TO ZONE`; nil for `quiet off`.
  static func quietHours(_ words: [String]) throws(InstructionError) -> QuietHours? {
    let usage = "quiet FROM TO ZONE, such as quiet 22:00 07:00 Europe/Rome, or quiet off"
    if words == ["off"] { return nil }
    guard words.count == 3 else { throw InstructionError(description: "say when: \(usage)") }
    let (from, to) = (try minutes(ofDay: words[0], usage), try minutes(ofDay: words[1], usage))
    guard QuietCalendar.isZone(words[2]) else { throw InstructionError(description: "there is no time zone '\(words[2])': \(usage)") }
    return QuietHours(from: from, to: to, timeZone: words[2])
  }

  /// Reads a wall-clock time such as `09:30`: minutes since midnight.
  static func minutes(ofDay text: String, _ usage: String) throws(InstructionError) -> Int {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) }
    guard parts.count == 2, let hour = parts[0], let minute = parts[1], (0..<24).contains(hour), (0..<60).contains(minute) else {
      throw InstructionError(description: "'\(text)' is no time such as 09:30: \(usage)")
    }
    return hour * 60 + minute
  }
}
