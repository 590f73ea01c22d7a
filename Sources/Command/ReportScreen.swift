import EventLoop

/// Where reports go that are shown once or again and again: a terminal that is drawn again, or lines after lines.
struct ReportScreen {
  private let isJSON: Bool
  private let isWatching: Bool
  /// Only where a terminal is drawn again.
  private let resizes: TerminalResizes?

  /// - Parameter loop: where changes of the terminal's size are waited for.
  init(isJSON: Bool, isWatching: Bool, on loop: EventLoop) async throws {
    (self.isJSON, self.isWatching) = (isJSON, isWatching)
    resizes = isWatching && !isJSON && Terminal.width != nil ? TerminalResizes(on: loop) : nil
    try await resizes?.watch()
  }

  /// Shows a report in place of the one before, or after it.
  ///
  /// - Parameters:
  ///   - json: the report for a program.
  ///   - text: the report for a person, in lines of a width, nil: of any; and no more lines than the height, nil: any number. What does not
  ///     fit all the same is cut off.
  func show(json: () -> [String], text: (_ width: Int?, _ height: Int?) -> [String]) {
    if isJSON {
      for line in json() { StandardOutput.json(line) }
      return StandardOutput.flush()
    }
    // The cursor has the last line.
    let height = resizes == nil ? nil : Terminal.height.map { max($0 - 1, 1) }
    let lines = text(Terminal.width, height).flatMap { $0.split(separator: "\n", omittingEmptySubsequences: false) }
    if resizes == nil {
      for line in lines { StandardOutput.line(String(line)) }
      if isWatching { StandardOutput.line("") }
    } else {
      // To the upper left, and at the end what is left of a longer report goes: nothing flickers.
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

  /// Waits until the next look, and has the report drawn again whenever the terminal gets another size.
  func wait(for duration: Duration, redraw: () -> Void) async {
    guard let resizes else {
      try? await Task.sleep(for: duration)
      return
    }
    let end = ContinuousClock.now + duration
    while await resizes.next(before: end) { redraw() }
  }
}
