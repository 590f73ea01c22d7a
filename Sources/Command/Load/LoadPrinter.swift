import EventLoop
import JSON
import Notifications
import Operations

/// The numbers of a run for a person.
struct LoadPrinter {
  private let name: String
  private let result: LoadResult

  init(_ name: String, _ result: LoadResult) { (self.name, self.result) = (name, result) }

  /// Prints a violation at once.
  static func print(_ finding: LoadFinding, isJSON: Bool) {
    if isJSON { StandardOutput.json(finding.json.text) } else { StandardOutput.line(line(finding)) }
    StandardOutput.flush()
  }

  /// The line of a violation.
  static func line(_ finding: LoadFinding) -> String {
    let id = finding.id.description
    return "WRONG  \(id) at \(finding.device.text): \(finding.kind.words)  (carillon explain \(id))"
  }

  private var seconds: Int64 { max(0, result.elapsed / 1_000_000_000) }

  /// One line for a log.
  var progress: String {
    let arrived = result.measures[.arrived]
    return
      "run \(name): \(seconds) s, \(result.totals.published) of \(result.offered) requests published, \(arrived.count) notifications arrived, p99 \(LoadText.time(arrived.value(atPercentile: 99))), \(TerminalText.count(result.violations, "violation"))"
      + (waiting.map { "; \($0)" } ?? "")
  }

  /// What the run waits for after its last request.
  private var waiting: String? {
    result.waiting.map {
      "waiting for \(TerminalText.count($0.arrivals, "notification")) and the events of \($0.events), \(ReadableText.duration(milliseconds: $0.milliseconds)) at most"
    }
  }

  private func lines(_ table: LoadTable, _ width: Int?) -> [String] {
    TerminalTable(heading: table.heading.map { $0.uppercased() }, alignsLast: true).lines(table.rows, width: width)
  }

  /// The lines of a live view.
  func live(width: Int?) -> [String] {
    [
      "run \(name)  \(seconds) s  \(result.connected) of \(TerminalText.count(result.plan.devices.count, "device")) connected  "
        + "schedule \(LoadText.percent(result.schedule))",
      "offered \(result.offered)  published \(result.totals.published)  arrived \(result.measures[.arrived].count)  told \(result.measures[.told].count)  resent \(result.totals.resent)",
      "",
    ] + lines(result.stageTable, width) + [""] + lines(result.processorTable, width)
      + ["", TerminalText.count(result.violations, "violation") + (waiting.map { "  \($0)" } ?? "")]
  }

  /// Prints the report, as text or as JSON.
  static func print(_ report: LoadReport, isJSON: Bool) {
    if isJSON {
      StandardOutput.json(report.json.text)
    } else {
      for line in LoadPrinter(report.run, report.result).summary(report, width: Terminal.width) { StandardOutput.line(line) }
    }
    StandardOutput.flush()
  }

  /// The lines at the end.
  func summary(_ report: LoadReport, width: Int?) -> [String] {
    let totals = result.totals
    var lines = [
      "",
      "run \(name)  \(seconds) s  \(TerminalText.count(result.plan.devices.count, "device"))  \(result.plan.requests.rate) requests a second",
      "",
    ]
    lines += self.lines(result.stageTable, width)
    lines += [
      "",
      "offered \(result.offered)  published \(totals.published)  completed \(totals.completed)  schedule \(LoadText.percent(result.schedule))",
      "reach \(LoadText.percent(result.reach)): \(totals.reached) of \(totals.expected) notifications arrived, \(totals.replaced) were replaced by newer ones",
    ]
    let ends = totals.outcomes.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.name) \($0.value)" }
    if !ends.isEmpty { lines.append("events: " + ends.joined(separator: "  ")) }
    if totals.untold > 0 { lines.append("\(totals.untold) notifications arrived, and no event said so before the run ended") }
    lines += [""] + self.lines(result.processorTable, width) + (result.shareTable.map { [""] + self.lines($0, width) } ?? [])
    let delays = result.measures.delays.map { delay in
      "due from \(LoadText.time(delay.due.lowerBound / 1000)) to \(LoadText.time(delay.due.upperBound / 1000)) after the start: \(TerminalText.count(delay.count, "notification")) took up to \(LoadText.time(delay.longest / 1000))"
    }
    return lines
      + TerminalText.remarks(
        wrong: report.complaints.map(TerminalText.visible), notes: delays + report.notes.map(TerminalText.visible), width: width)
  }
}
