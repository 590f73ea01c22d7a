/// JSON for a terminal.
public enum PrintedJSON {
  /// Escapes characters that could control a terminal or change the order of what follows. The text keeps its meaning.
  ///
  /// JSON allows them in strings: DEL, the controls with the eighth bit, marks of direction, and others without a width. `JSONWriter` does
  /// not do this, because its text is also hashed and measured against limits.
  public static func text(_ json: String) -> String {
    // Nearly all text is ASCII. Line ends between tokens stay.
    guard json.utf8.contains(where: { $0 >= 0x7F }), !json.unicodeScalars.allSatisfy(isPrinted) else { return json }
    var text = String.UnicodeScalarView()
    for scalar in json.unicodeScalars {
      if isPrinted(scalar) {
        text.append(scalar)
      } else {
        for unit in UTF16.encode(scalar) ?? .init() {
          let digits = String(unit, radix: 16)
          text.append(contentsOf: "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".unicodeScalars)
        }
      }
    }
    return String(text)
  }

  private static func isPrinted(_ scalar: Unicode.Scalar) -> Bool { scalar.value < 0x7F || PrintedText.isVisible(scalar) }
}
