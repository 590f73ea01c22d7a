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

  /// A time of milliseconds in at most two units: `850ms`, `4.2s`, `3m 20s`, `2h 5m`, `4d 3h`.
  static func duration(_ milliseconds: Int64) -> String {
    let seconds = milliseconds / 1000
    switch milliseconds {
    case ..<1_000: return "\(milliseconds)ms"
    case ..<60_000: return "\(seconds).\(milliseconds % 1000 / 100)s"
    case ..<3_600_000: return "\(seconds / 60)m \(seconds % 60)s"
    case ..<86_400_000: return "\(seconds / 3600)h \(seconds / 60 % 60)m"
    default: return "\(seconds / 86_400)d \(seconds / 3600 % 24)h"
    }
  }

  /// A number of things: `1 member`, `3 members`.
  static func count(_ number: Int, _ what: String) -> String { "\(number) \(what)\(number == 1 ? "" : "s")" }
}
