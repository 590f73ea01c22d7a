/// The first lines of a list, as many as a terminal shows below a summary. A value; it counts the others.
struct Screenful {
  private let height: Int
  private var first: [String] = []
  private var count = 0

  /// - Parameter height: the lines of the terminal.
  init(height: Int) { self.height = height }

  /// The fewest lines of a list that are shown, however long the summary is.
  private static let least = 5

  /// Takes a line. It is rendered only if it may be shown.
  mutating func take(_ line: () -> String) {
    count += 1
    if first.count < max(height, Self.least) { first.append(line()) }
  }

  /// The summary, the lines of the list that fit, and the number of the others.
  ///
  /// - Parameter all: says what to type for all lines.
  func lines(below summary: [String], all: String) -> [String] {
    // Reserves an empty line, the line for the others, and one for the next prompt.
    var room = max(height - summary.count - 3, Self.least)
    let shown = first.prefix { line in
      room -= 1 + line.count { $0 == "\n" }
      return room >= 0
    }
    let further = count - shown.count
    return summary + [""] + shown + (further > 0 ? ["… and \(further) more: \(all)"] : [])
  }
}
