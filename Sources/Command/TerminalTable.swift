import EventLoop

/// Columns as wide as their longest entry: the first to the left, those between to the right, the last one as it is, unless said otherwise.
struct TerminalTable {
  let heading: [String]
  /// Columns between the first and the last that are words.
  var words: Set<Int> = []
  /// Whether the last column is to the right, too.
  var alignsLast = false

  /// The heading and the rows as lines of no more than this width; nil: of any.
  func lines(_ rows: [[String]], width: Int?) -> [String] {
    let all = [heading] + rows
    let widths = heading.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      let columns = row.indices.map { column in
        if column == 0 || words.contains(column) { return TerminalText.padded(row[column], widths[column]) }
        return column == row.count - 1 && !alignsLast ? row[column] : TerminalText.aligned(row[column], widths[column])
      }
      let line = TerminalText.row(columns, width: width)
      return String(line.reversed().drop { $0 == " " }.reversed())
    }
  }
}

extension TerminalText {
  /// A sentence that goes on in the next line where it is too long for one.
  static func sentence(_ text: String, width: Int?) -> String {
    row(text.split(separator: " ", omittingEmptySubsequences: false).map(String.init), separator: " ", width: width)
  }

  /// What ends a report, behind an empty line: what is wrong, and what is to be known; nothing where there is neither.
  static func remarks(wrong: [String], notes: [String], width: Int?) -> [String] {
    let remarks = wrong.map { "WRONG  " + $0 } + notes.map { "NOTE   " + $0 }
    return (remarks.isEmpty ? [] : [""]) + remarks.map { sentence($0, width: width) }
  }

  /// A time of milliseconds: `850 ms`, `8.4 s`, `3 min 20 s`.
  static func duration(_ milliseconds: Int64) -> String { ReadableText.duration(milliseconds: milliseconds) }
}
