/// JSON for a terminal.
public enum PrintedJSON {
  /// Escapes characters that could control a terminal. The text keeps its meaning.
  ///
  /// They are DEL and the controls with the eighth bit, which JSON allows in strings. `JSONWriter` does not do this, because its text is
  /// also hashed and measured against limits.
  public static func text(_ json: String) -> String {
    // In UTF-8 the controls with the eighth bit begin with 0xC2. Nearly no text has either byte.
    guard json.utf8.contains(where: { $0 == 0x7F || $0 == 0xC2 }) else { return json }
    var text = String.UnicodeScalarView()
    for scalar in json.unicodeScalars {
      if (0x7F...0x9F).contains(scalar.value) {
        text.append(contentsOf: "\\u00\(String(scalar.value, radix: 16))".unicodeScalars)
      } else {
        text.append(scalar)
      }
    }
    return String(text)
  }
}
