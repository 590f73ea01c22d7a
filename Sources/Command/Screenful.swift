/// The first lines of a list that may be long, as many as a terminal shows below a summary; the others are counted. A value.
struct Screenful {
  private let height: Int
  private var first: [String] = []
  private var count = 0

  /// - Parameter height: how many lines the terminal shows.
  init(height: Int) { self.height = height }

  /// Lines of a list that are shown at least, however long the summary is.
  private static let least = 5

  /// Takes a line; it is made only where it may be shown.
  mutating func take(_ line: () -> String) {
    count += 1
    if first.count < max(height, Self.least) { first.append(line()) }
  }

  /// The summary, the lines that there is room for, and how many others there are.
  ///
  /// - Parameter all: what to type for all of them.
  func lines(below summary: [String], all: String) -> [String] {
    // An empty line stands between, one says what is left out, and the next prompt has one.
    var room = max(height - summary.count - 3, Self.least)
    let shown = first.prefix { line in
      room -= 1 + line.count { $0 == "\n" }
      return room >= 0
    }
    let further = count - shown.count
    return summary + [""] + shown + (further > 0 ? ["… and \(further) more: \(all)"] : [])
  }
}
