/// Reads and writes numbers of bytes: a whole number with a unit.
enum ByteSize {
  private static let units: [(name: String, bytes: Int)] = [
    ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000), ("B", 1),
  ]

  /// `64KiB`, `1MB`, `512B`, or a plain number of bytes.
  static func read(_ text: String) -> Int? {
    guard let (number, unit) = splitUnit(text) else { return nil }
    if unit.isEmpty { return number }
    guard let found = units.first(where: { $0.name.lowercased() == unit.lowercased() }) else { return nil }
    return exactProduct(number, found.bytes)
  }

  /// Writes the largest unit that gives a whole number.
  static func text(_ bytes: Int) -> String {
    for unit in units.prefix(3) where bytes != 0 && bytes % unit.bytes == 0 { return "\(bytes / unit.bytes)\(unit.name)" }
    return "\(bytes)B"
  }
}

/// Writes durations: a whole number with a unit.
enum DurationText {
  fileprivate static let units: [(name: String, milliseconds: Int)] = [
    ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
  ]

  /// Writes the largest unit that gives a whole number.
  static func text(_ duration: Duration) -> String {
    let milliseconds = duration.wholeMilliseconds
    for unit in units where milliseconds != 0 && milliseconds % unit.milliseconds == 0 {
      return "\(milliseconds / unit.milliseconds)\(unit.name)"
    }
    return "\(milliseconds)ms"
  }
}

extension Duration {
  /// Reads a duration in the form of settings: `500ms`, `30s`, `5m`, `2h`, `2d`, or `0`; nil for anything else.
  ///
  /// A number without a unit is ambiguous and refused.
  public init?(written text: String) {
    guard let (number, name) = splitUnit(text),
      let unit = DurationText.units.first(where: { $0.name == name || number == 0 && name.isEmpty }),
      let milliseconds = exactProduct(number, unit.milliseconds)
    else { return nil }
    self = .milliseconds(milliseconds)
  }

  /// The whole milliseconds of the duration.
  public var wholeMilliseconds: Int { Int(components.seconds) * 1000 + Int(components.attoseconds / 1_000_000_000_000_000) }
}

extension StringProtocol {
  /// The text without spaces and tabs at both ends.
  var trimmingSpaces: SubSequence {
    let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\r" }
    guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else { return self[..<startIndex] }
    return self[first...last]
  }
}

/// A text's leading digits as a number, and the text after them.
private func splitUnit(_ text: String) -> (number: Int, unit: String)? {
  let digits = text.prefix { $0.isASCII && $0.isNumber }
  guard let number = Int(digits) else { return nil }
  return (number, String(text[digits.endIndex...].trimmingSpaces))
}

private func exactProduct(_ number: Int, _ factor: Int) -> Int? {
  let (product, overflow) = number.multipliedReportingOverflow(by: factor)
  return overflow ? nil : product
}
