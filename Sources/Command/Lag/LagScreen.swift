import Glibc
import Operations

/// Where reports go: a terminal that is drawn again, or lines after lines.
struct LagScreen {
  let isJSON: Bool
  let showsPartitions: Bool
  let isWatching: Bool

  /// Shows a report in place of the one before, or after it.
  func show(_ report: LagReport) {
    if isJSON {
      for line in LagJSON.lines(report, showsPartitions: showsPartitions) { StandardOutput.line(line) }
      return StandardOutput.flush()
    }
    let width = Terminal.width
    let lines = LagPrinter(report, width: width).lines(showsPartitions: showsPartitions)
    // To the upper left, and at the end what is left of a longer report goes: nothing flickers.
    let redraws = isWatching && width != nil
    if redraws { StandardOutput.write("\u{1B}[H") }
    for line in lines { StandardOutput.write(line + (redraws ? "\u{1B}[K\n" : "\n")) }
    if redraws { StandardOutput.write("\u{1B}[J") } else if isWatching { StandardOutput.line("") }
    StandardOutput.flush()
  }
}
