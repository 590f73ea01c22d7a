import JSON

/// Texts of devices and producers, as they may stand in a line for a person.
enum TerminalText {
  /// Without what could move a terminal's cursor or change its state.
  static func visible(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { (0x7F...0x9F).contains($0.value) || $0.value < 0x20 ? "\u{FFFD}" : $0 }))
  }

  /// `name=value`, the value in quotes where its end would not be seen.
  static func word(_ name: String, _ value: String) -> String {
    let isPlain = !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
    return "\(name)=" + (isPlain ? value : JSONValue.string(visible(value)).text)
  }

  /// A device's token by both its ends.
  static func device(_ token: String) -> String {
    token.utf8.count > 20 ? "\(token.prefix(8))…\(token.suffix(8))" : visible(token)
  }

  /// With spaces behind it, up to a width.
  static func padded(_ text: String, _ width: Int) -> String { text + spaces(width - text.count) }

  /// With spaces before it, up to a width.
  static func aligned(_ text: String, _ width: Int) -> String { spaces(width - text.count) + text }

  private static func spaces(_ count: Int) -> String { count > 0 ? String(repeating: " ", count: count) : "" }
}
