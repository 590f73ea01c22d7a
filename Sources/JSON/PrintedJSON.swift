/// JSON as it is printed where somebody may look at it.
public enum PrintedJSON {
  /// Text that means the same, and that a terminal obeys nowhere: DEL and the controls with the eighth bit, which may stand in strings as they
  /// are, stand there as escapes.
  ///
  /// It is no affair of `JSONWriter`: what that writes is counted against limits and hashed, too.
  public static func text(_ json: String) -> String {
    // The controls with the eighth bit begin with this byte in UTF-8; nearly no text has either.
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
