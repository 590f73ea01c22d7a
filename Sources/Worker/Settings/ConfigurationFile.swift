import Glibc

/// The configuration file: one `key = value` a line.
///
/// A line that begins with `#` is a comment, and so is what follows a space and `#`. A value that has either at an end, or a ` #` in
/// it, stands in double quotes; nothing is escaped within them. There are no sections: a key is written out, `fanout.window = 64`.
/// A key stands once, unless its setting takes several values.
struct ConfigurationFile: Sendable {
  struct Line: Sendable, Hashable {
    let number: Int
    let key: String
    let value: String
  }

  let path: String
  let lines: [Line]

  /// Reads the file from the disk.
  init(path: String) throws(UsageError) { try self.init(path: path, text: Self.contents(of: path)) }

  /// Reads a text; the path is for the errors.
  init(path: String, text: String) throws(UsageError) {
    var lines: [Line] = []
    // A carriage return with its line feed is one character.
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == "\n" || $0 == "\r\n" }).enumerated() {
      let line = line.trimmingSpaces
      if line.isEmpty || line.hasPrefix("#") { continue }
      guard let equals = line.firstIndex(of: "=") else {
        throw UsageError(.malformedFile, "\(path):\(index + 1): a line is 'key = value' or a comment that begins with #")
      }
      let key = String(line[..<equals].trimmingSpaces)
      guard let value = Self.value(line[line.index(after: equals)...].trimmingSpaces) else {
        throw UsageError(.malformedFile, "\(path):\(index + 1): the value of '\(key)' begins with a quote and does not end with one")
      }
      lines.append(Line(number: index + 1, key: key, value: value))
    }
    self.path = path
    self.lines = lines
  }

  private static func value(_ text: Substring) -> String? {
    if text.hasPrefix("\"") {
      let inner = text.dropFirst()
      guard let quote = inner.firstIndex(of: "\"") else { return nil }
      let rest = inner[inner.index(after: quote)...].trimmingSpaces
      return rest.isEmpty || rest.hasPrefix("#") ? String(inner[..<quote]) : nil
    }
    if text.hasPrefix("#") { return "" }
    var end = text.startIndex
    while let hash = text[end...].firstIndex(of: "#") {
      let before = text[text.index(before: hash)]
      if before == " " || before == "\t" { return String(text[..<hash].trimmingSpaces) }
      end = text.index(after: hash)
    }
    return String(text)
  }

  private static func contents(of path: String) throws(UsageError) -> String {
    let limit = 1 << 20
    guard let file = fopen(path, "re") else { throw unreadable(path) }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: limit + 1)
    let count = fread(&bytes, 1, bytes.count, file)
    // A folder can be opened, but not read.
    if ferror(file) != 0 { throw unreadable(path) }
    guard count <= limit else { throw UsageError(.unreadableFile, "\(path): a configuration file has at most \(ByteSize.text(limit))") }
    guard let text = String(validating: bytes[..<count], as: UTF8.self) else {
      throw UsageError(.unreadableFile, "\(path): the configuration file is not UTF-8")
    }
    return text
  }

  private static func unreadable(_ path: String) -> UsageError {
    UsageError(.unreadableFile, "\(path): the configuration file cannot be read: \(String(cString: strerror(errno)))")
  }
}
