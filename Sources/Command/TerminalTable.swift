import EventLoop

/// A table with columns as wide as their longest entry.
///
/// The first column is aligned left and the middle ones right. The last one is not padded.
struct TerminalTable {
  let heading: [String]
  /// Middle columns of words, which are aligned left.
  var words: Set<Int> = []
  /// Whether the last column is aligned right too.
  var alignsLast = false

  /// Renders the heading and the rows in lines of at most this width; nil for any.
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
  /// A sentence, broken into lines of this width.
  static func sentence(_ text: String, width: Int?) -> String {
    row(text.split(separator: " ", omittingEmptySubsequences: false).map(String.init), separator: " ", width: width)
  }

  /// The end of a report after an empty line: problems and notes; empty if there are none.
  static func remarks(wrong: [String], notes: [String], width: Int?) -> [String] {
    let remarks = wrong.map { "WRONG  " + $0 } + notes.map { "NOTE   " + $0 }
    return (remarks.isEmpty ? [] : [""]) + remarks.map { sentence($0, width: width) }
  }

  /// A time of milliseconds: `850 ms`, `8.4 s`, `3 min 20 s`.
  static func duration(_ milliseconds: Int64) -> String { ReadableText.duration(milliseconds: milliseconds) }
}
