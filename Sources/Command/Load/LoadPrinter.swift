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

  /// A time of microseconds: `850 µs`, `1.25 ms`, `2.10 s`.
  static func time(_ microseconds: Int64) -> String {
    switch microseconds {
    case ..<1000: "\(microseconds) µs"
    case ..<1_000_000: "\(decimal(Double(microseconds) / 1000)) ms"
    default: "\(decimal(Double(microseconds) / 1_000_000)) s"
    }
  }

  /// A share in percent, rounded down, so that 100 % means all.
  static func percent(_ share: Double) -> String { "\(decimal((share * 10_000).rounded(.down) / 100)) %" }

  private static func decimal(_ value: Double) -> String {
    let hundredths = Int64((min(value, 1e12) * 100).rounded())
    let rest = hundredths % 100
    return rest == 0 ? "\(hundredths / 100)" : "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
  }

  private var seconds: Int64 { max(0, result.elapsed / 1_000_000_000) }

  /// One line for a log.
  var progress: String {
    let arrived = result.measures[.arrived]
    return
      "run \(name): \(seconds) s, \(result.totals.published) of \(result.offered) requests published, \(arrived.count) notifications arrived, p99 \(Self.time(arrived.value(atPercentile: 99))), \(TerminalText.count(result.violations, "violation"))"
      + (waiting.map { "; \($0)" } ?? "")
  }

  /// What the run waits for after its last request.
  private var waiting: String? {
    result.waiting.map {
      "waiting for \(TerminalText.count($0.arrivals, "notification")) and the events of \($0.events), \(ReadableText.duration(milliseconds: $0.milliseconds)) at most"
    }
  }

  /// The lines of a live view.
  func live(width: Int?) -> [String] {
    [
      "run \(name)  \(seconds) s  \(result.connected) of \(TerminalText.count(result.plan.devices.count, "device")) connected  "
        + "schedule \(Self.percent(result.schedule))",
      "offered \(result.offered)  published \(result.totals.published)  arrived \(result.measures[.arrived].count)  told \(result.measures[.told].count)  resent \(result.totals.resent)",
      "",
    ] + stages(width: width) + [""] + processors(width: width)
      + ["", TerminalText.count(result.violations, "violation") + (waiting.map { "  \($0)" } ?? "")]
  }

  private func stages(width: Int?) -> [String] {
    let table = TerminalTable(heading: ["STAGE", "COUNT"] + LoadReport.percentiles.map { $0.name.uppercased() }, alignsLast: true)
    let rows = result.stageRows.map { stage in
      [stage.name, "\(stage.count)"] + stage.values.map { value in value.map { (stage.isOfWorkers ? "≤" : "") + Self.time($0) } ?? "-" }
    }
    return table.lines(rows, width: width)
  }

  private func processors(width: Int?) -> [String] {
    let table = TerminalTable(heading: ["PROCESSOR TIME", "PROCESSES", "TOTAL", "CORES", "A REQUEST"], alignsLast: true)
    let rows = result.processorRows.map { processor in
      [
        processor.name, "\(processor.processes)", "\(Self.decimal(processor.seconds)) s", Self.decimal(processor.cores),
        processor.perRequest.map { "\(Self.decimal($0)) ms" } ?? "-",
      ]
    }
    return table.lines(rows, width: width)
  }

  private func shares(width: Int?) -> [String] {
    guard !result.shares.isEmpty else { return [] }
    let table = TerminalTable(
      heading: ["SHARE", "DEVICES", "OFFERED", "PUBLISHED", "REACH", "SCHEDULE"], alignsLast: true)
    let rows = result.shares.map { share in
      [
        "\(share.number)", "\(share.devices)", "\(share.offered)", "\(share.published)", Self.percent(share.reach),
        Self.percent(share.schedule),
      ]
    }
    return [""] + table.lines(rows, width: width)
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
    lines += stages(width: width)
    lines += [
      "",
      "offered \(result.offered)  published \(totals.published)  completed \(totals.completed)  schedule \(Self.percent(result.schedule))",
      "reach \(Self.percent(result.reach)): \(totals.reached) of \(totals.expected) notifications arrived, \(totals.replaced) were replaced by newer ones",
    ]
    let ends = totals.outcomes.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.name) \($0.value)" }
    if !ends.isEmpty { lines.append("events: " + ends.joined(separator: "  ")) }
    if totals.untold > 0 { lines.append("\(totals.untold) notifications arrived, and no event said so before the run ended") }
    lines += [""] + processors(width: width) + shares(width: width)
    let delays = result.measures.delays.map { delay in
      "due from \(Self.time(delay.due.lowerBound / 1000)) to \(Self.time(delay.due.upperBound / 1000)) after the start: \(TerminalText.count(delay.count, "notification")) took up to \(Self.time(delay.longest / 1000))"
    }
    return lines
      + TerminalText.remarks(
        wrong: report.complaints.map(TerminalText.visible), notes: delays + report.notes.map(TerminalText.visible), width: width)
  }
}
