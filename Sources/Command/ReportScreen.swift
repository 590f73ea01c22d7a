import EventLoop
import Worker

/// The output of reports that are shown once or repeatedly: a redrawn terminal, or lines.
struct ReportScreen {
  static let watch = Setting(
    "watch", .boolean, default: false, "Repeats the report until it is ended: a terminal is redrawn, other output gets a new block.")

  private let isJSON: Bool
  let isWatching: Bool
  /// Set if a terminal is redrawn.
  private let resizes: TerminalResizes?

  /// - Parameter loop: waits for changes of the terminal's size.
  init(isJSON: Bool, isWatching: Bool, on loop: EventLoop) async throws {
    (self.isJSON, self.isWatching) = (isJSON, isWatching)
    resizes = isWatching && !isJSON && Terminal.width != nil ? TerminalResizes(on: loop) : nil
    try await resizes?.watch()
  }

  /// Shows a report in place of the former one, or after it.
  ///
  /// - Parameters:
  ///   - json: the report for a program.
  ///   - text: the report for a person, in lines of this width and at most this height; nil for any. Excess lines are cut off.
  func show(json: () -> [String], text: (_ width: Int?, _ height: Int?) -> [String]) {
    if isJSON {
      for line in json() { StandardOutput.json(line) }
      return StandardOutput.flush()
    }
    // The last line is for the cursor.
    let height = resizes == nil ? nil : Terminal.height.map { max($0 - 1, 1) }
    let lines = text(Terminal.width, height).flatMap { $0.split(separator: "\n", omittingEmptySubsequences: false) }
    if resizes == nil {
      for line in lines { StandardOutput.line(String(line)) }
      if isWatching { StandardOutput.line("") }
    } else {
      // Starts at the upper left and clears the rest at the end, so nothing flickers.
      StandardOutput.write("\u{1B}[H")
      for line in Self.cut(lines, to: height) { StandardOutput.write(line + "\u{1B}[K\n") }
      StandardOutput.write("\u{1B}[J")
    }
    StandardOutput.flush()
  }

  private static func cut(_ lines: [Substring], to height: Int?) -> [Substring] {
    guard let height, lines.count > height else { return lines }
    return lines.prefix(height - 1) + ["… and \(TerminalText.count(lines.count - height + 1, "further line"))"]
  }

  /// Waits for the next look, and redraws the report if the terminal's size changes.
  func wait(for duration: Duration, redraw: () -> Void) async {
    guard let resizes else {
      try? await Task.sleep(for: duration)
      return
    }
    let end = ContinuousClock.now + duration
    while await resizes.next(before: end) { redraw() }
  }
}
