/// Text from outside, made safe for a line that people read.
public enum PrintedText {
  /// The maximum number of characters that a message repeats.
  public static let longestEcho = 200

  /// Whether a character appears as itself.
  ///
  /// Other characters move a terminal's cursor, change its state, have no width, or change the direction of the following text.
  public static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    // Controls: C0, DEL and C1.
    case 0..<0x20, 0x7F...0x9F: false
    // Soft hyphen, direction marks, zero widths, line ends, embeddings, isolates and deprecated formats.
    case 0xAD, 0x061C, 0x180E, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB: false
    // Tags, which spell a hidden text.
    case 0xE0000...0xE007F: false
    default: true
    }
  }

  /// Returns the text with escapes for invisible characters: `\n`, `\u{1b}`.
  public static func escaped(_ text: String) -> String {
    guard !text.unicodeScalars.allSatisfy(isVisible) else { return text }
    var escaped = String.UnicodeScalarView()
    for scalar in text.unicodeScalars { append(scalar, to: &escaped) }
    return String(escaped)
  }

  /// Returns a foreign text for a message: escaped, and cut after `longestEcho` characters.
  public static func echo(_ text: some StringProtocol) -> String {
    var echo = String.UnicodeScalarView()
    for (index, scalar) in text.unicodeScalars.enumerated() {
      guard index < longestEcho else {
        echo.append("…")
        break
      }
      append(scalar, to: &echo)
    }
    return String(echo)
  }

  private static func append(_ scalar: Unicode.Scalar, to text: inout String.UnicodeScalarView) {
    switch scalar {
    case _ where isVisible(scalar): text.append(scalar)
    case "\n": text.append(contentsOf: "\\n".unicodeScalars)
    case "\r": text.append(contentsOf: "\\r".unicodeScalars)
    case "\t": text.append(contentsOf: "\\t".unicodeScalars)
    default: text.append(contentsOf: "\\u{\(String(scalar.value, radix: 16))}".unicodeScalars)
    }
  }
}
