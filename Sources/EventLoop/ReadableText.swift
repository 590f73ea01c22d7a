/// Times and counts in words, for messages, logs and reports.
public enum ReadableText {
  /// A time in at most two units: `850 ms`, `8.4 s`, `3 min 20 s`, `2 h 5 min`, `4 d`.
  public static func duration(milliseconds: Int64) -> String {
    let (sign, count) = (milliseconds < 0 ? "-" : "", milliseconds.magnitude)
    switch count {
    case ..<1_000: return "\(sign)\(count) ms"
    case ..<60_000:
      let tenths = count % 1_000 / 100
      return "\(sign)\(count / 1_000)\(tenths > 0 ? ".\(tenths)" : "") s"
    case ..<3_600_000: return sign + units(count / 1_000, 60, "min", "s")
    case ..<86_400_000: return sign + units(count / 60_000, 60, "h", "min")
    default: return sign + units(count / 3_600_000, 24, "d", "h")
    }
  }

  /// The larger unit, and the smaller one unless it is 0.
  private static func units(_ count: UInt64, _ size: UInt64, _ larger: String, _ smaller: String) -> String {
    "\(count / size) \(larger)" + (count % size > 0 ? " \(count % size) \(smaller)" : "")
  }

  /// A number of things: `1 mailbox`, `2 mailboxes`, `3 entries`.
  public static func count(_ number: some BinaryInteger, _ noun: String) -> String { "\(number) \(number == 1 ? noun : plural(noun))" }

  /// The plural of a noun.
  public static func plural(_ noun: String) -> String {
    if ["s", "x", "ch", "sh"].contains(where: noun.hasSuffix) { return noun + "es" }
    guard noun.hasSuffix("y"), let before = noun.dropLast().last, !"aeiou".contains(before) else { return noun + "s" }
    return noun.dropLast() + "ies"
  }
}
