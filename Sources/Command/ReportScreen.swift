/// Where reports go that are shown once or again and again: a terminal that is drawn again, or lines after lines.
struct ReportScreen {
  let isJSON: Bool
  let isWatching: Bool

  /// Shows a report in place of the one before, or after it.
  ///
  /// - Parameters:
  ///   - json: the report for a program.
  ///   - text: the report for a person, in lines of a width; nil: of any.
  func show(json: () -> [String], text: (_ width: Int?) -> [String]) {
    if isJSON {
      for line in json() { StandardOutput.json(line) }
      return StandardOutput.flush()
    }
    let width = Terminal.width
    let lines = text(width)
    // To the upper left, and at the end what is left of a longer report goes: nothing flickers.
    let redraws = isWatching && width != nil
    if redraws { StandardOutput.write("\u{1B}[H") }
    for line in lines {
      StandardOutput.write(
        line.split(separator: "\n", omittingEmptySubsequences: false).map { $0 + (redraws ? "\u{1B}[K\n" : "\n") }.joined())
    }
    if redraws { StandardOutput.write("\u{1B}[J") } else if isWatching { StandardOutput.line("") }
    StandardOutput.flush()
  }
}
