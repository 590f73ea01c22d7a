import JSON

/// The configuration file: one `key = value` a line.
///
/// A line that begins with `#` is a comment. Anywhere else `#` is a character of the value. A value that begins or ends with a space or a
/// double quote stands in double quotes; inside them nothing is escaped. There are no sections: write complete keys, `fanout.window = 64`.
/// A key may appear once, unless its setting takes several values.
struct ConfigurationFile: Sendable {
  struct Line: Sendable, Hashable {
    let number: Int
    let key: String
    let value: String
  }

  let path: String
  let lines: [Line]

  /// Parses a file.
  ///
  /// - Parameter place: where it was given, as the beginning of an error.
  init(_ file: InputFile, _ place: String = "") throws(UsageError) {
    // Some editors begin a file with the byte order mark.
    let bytes = file.bytes.starts(with: Self.byteOrderMark) ? file.bytes[3...] : file.bytes[...]
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw UsageError(.unreadableFile, "\(place)\(PrintedText.echo(file.path)) is not UTF-8")
    }
    try self.init(path: file.path, text: text)
  }

  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// Parses a text. The path is for errors.
  init(path: String, text: String) throws(UsageError) {
    var lines: [Line] = []
    // A carriage return and its line feed are one character.
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == "\n" || $0 == "\r\n" }).enumerated() {
      let line = line.trimmingSpaces
      if line.isEmpty || line.hasPrefix("#") { continue }
      guard let equals = line.firstIndex(of: "=") else {
        throw UsageError(.malformedFile, "\(path):\(index + 1): a line is 'key = value' or a comment that begins with #")
      }
      let key = String(line[..<equals].trimmingSpaces)
      guard let value = Self.value(line[line.index(after: equals)...].trimmingSpaces) else {
        throw UsageError(
          .malformedFile, "\(path):\(index + 1): the value of '\(PrintedText.echo(key))' begins with a quote and does not end with one")
      }
      lines.append(Line(number: index + 1, key: key, value: value))
    }
    self.path = path
    self.lines = lines
  }

  /// The value without its quotes; nil if it begins with a quote and does not end with another one.
  private static func value(_ text: Substring) -> String? {
    guard text.hasPrefix("\"") else { return String(text) }
    return text.count > 1 && text.hasSuffix("\"") ? String(text.dropFirst().dropLast()) : nil
  }
}
