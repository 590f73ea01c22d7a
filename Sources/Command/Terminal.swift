import Glibc

/// The terminal that standard output goes to.
enum Terminal {
  /// The characters of a line; nil if standard output is not a terminal.
  static var width: Int? { size("COLUMNS", \.ws_col) }

  /// The number of lines; nil if standard output is not a terminal.
  static var height: Int? { size("LINES", \.ws_row) }

  private static func size(_ variable: String, _ field: KeyPath<winsize, UInt16>) -> Int? {
    guard isatty(STDOUT_FILENO) == 1 else { return nil }
    if let given = getenv(variable).flatMap({ Int(String(cString: $0)) }), given > 0 { return given }
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size[keyPath: field] > 0 else { return nil }
    return Int(size[keyPath: field])
  }
}

extension TerminalText {
  private static let indent = "    "
  /// A narrower terminal gets lines of this width.
  private static let narrowest = 20

  /// Columns side by side. A column that does not fit into the width continues in the next line, indented.
  static func row(_ columns: [String], separator: String = "  ", width: Int?) -> String {
    guard let width = width.map({ max($0, narrowest) }) else { return columns.joined(separator: separator) }
    var lines: [String] = []
    var line = columns.first ?? ""
    func end(_ next: String) {
      lines.append(trimmed(line))
      line = indent + next
    }
    for column in columns.dropFirst() {
      if trimmed(line + separator + column).count <= width { line += separator + column } else { end(column) }
      while trimmed(line).count > width {
        let rest = String(line.dropFirst(width))
        line = String(line.prefix(width))
        end(rest)
      }
    }
    return (lines + [trimmed(line)]).joined(separator: "\n")
  }

  private static func trimmed(_ text: String) -> String {
    guard let end = text.lastIndex(where: { $0 != " " }) else { return "" }
    return String(text[...end])
  }
}
