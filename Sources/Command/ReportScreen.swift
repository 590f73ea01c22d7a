import Worker

/// The output of reports that are shown once or repeatedly: a redrawn terminal, or lines.
struct ReportScreen {
  static let watch = Setting(
    "watch", .boolean, default: false, "Repeats the report until it is ended: a terminal is redrawn, other output gets a new block.")
  static let interval = Setting(
    "watch.interval", flag: "interval", .duration(.milliseconds(500)...(.seconds(3600))), default: .seconds(2),
    "How long to wait between two reports: with --watch, and where rates are measured.")

  /// What is shown of a report.
  struct Report {
    /// The exit code of a command that ends with this report.
    var code: ExitCode
    /// The report for a program.
    var json: () -> [String]
    /// The report for a person, in lines of this width and at most this height; nil for any. Excess lines are cut off.
    var text: (_ width: Int?, _ height: Int?) -> [String]
  }

  private let isJSON: Bool
  let isWatching: Bool
  private var isRedrawn: Bool { isWatching && !isJSON && Terminal.width != nil }

  init(isJSON: Bool, isWatching: Bool) { (self.isJSON, self.isWatching) = (isJSON, isWatching) }

  init(_ values: SettingValues) { self.init(isJSON: values[AnswerSettings.json], isWatching: values[Self.watch]) }

  /// Shows one report, or with `--watch` one after the other.
  ///
  /// - Returns: the exit code of the report.
  func show(every interval: Duration, _ read: () async throws -> Report) async throws -> ExitCode {
    while true {
      let report = try await read()
      show(json: report.json, text: report.text)
      if !isWatching { return report.code }
      try await Task.sleep(for: interval)
    }
  }

  /// Shows a report in place of the former one, or after it.
  func show(json: () -> [String], text: (_ width: Int?, _ height: Int?) -> [String]) {
    if isJSON {
      for line in json() { StandardOutput.json(line) }
      return StandardOutput.flush()
    }
    // The last line is for the cursor.
    let height = isRedrawn ? Terminal.height.map { max($0 - 1, 1) } : nil
    let lines = text(Terminal.width, height).flatMap { $0.split(separator: "\n", omittingEmptySubsequences: false) }
    if isRedrawn {
      // Starts at the upper left and clears the rest at the end, so nothing flickers.
      StandardOutput.write("\u{1B}[H")
      for line in Self.cut(lines, to: height) { StandardOutput.write(line + "\u{1B}[K\n") }
      StandardOutput.write("\u{1B}[J")
    } else {
      for line in lines { StandardOutput.line(String(line)) }
      if isWatching { StandardOutput.line("") }
    }
    StandardOutput.flush()
  }

  private static func cut(_ lines: [Substring], to height: Int?) -> [Substring] {
    guard let height, lines.count > height else { return lines }
    return lines.prefix(height - 1) + ["… and \(TerminalText.count(lines.count - height + 1, "further line"))"]
  }
}
