import EventLoop
import JSON
import Notifications

/// Texts of devices and producers, safe to show in a line.
enum TerminalText {
  /// Removes characters that could control a terminal or change how a line reads.
  static func visible(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { PrintedText.isVisible($0) ? $0 : "\u{FFFD}" }))
  }

  /// Removes them from a name.
  static func visible(_ name: Name) -> String { visible(name.text) }

  /// `name=value`, with quotes if the value's end would be unclear.
  static func word(_ name: String, _ value: String) -> String {
    let isPlain = !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
    return "\(name)=" + (isPlain ? value : JSONValue.string(visible(value)).text)
  }

  /// `name=value` for a name.
  static func word(_ name: String, _ value: Name) -> String { word(name, value.text) }

  /// The beginning and the end of a device's token.
  static func device(_ token: String) -> String {
    guard token.utf8.count > 20 else { return visible(token) }
    let scalars = token.unicodeScalars
    return visible(String(scalars.prefix(8))) + "…" + visible(String(scalars.suffix(8)))
  }

  /// A part of a whole in percent, even for inconsistent numbers.
  static func share(_ part: Int64, of whole: Int64) -> String {
    let percent = whole > 0 && part > 0 ? Double(part) / Double(whole) * 100 : 0
    return "\(Int64(min(percent, 1_000_000)))%"
  }

  /// A number of things: `1 request`, `2 mailboxes`.
  static func count(_ number: some BinaryInteger, _ noun: String) -> String { ReadableText.count(number, noun) }

  /// Appends spaces up to a width.
  static func padded(_ text: String, _ width: Int) -> String { text + spaces(width - text.count) }

  /// Prepends spaces up to a width.
  static func aligned(_ text: String, _ width: Int) -> String { spaces(width - text.count) + text }

  private static func spaces(_ count: Int) -> String { count > 0 ? String(repeating: " ", count: count) : "" }
}
