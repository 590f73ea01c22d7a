import EventLoop
import Glibc
import Notifications

/// A report as one page that needs nothing else: no script, no style sheet, no font and no picture from elsewhere.
package enum LoadPage {
  /// Writes the page.
  package static func html(_ report: LoadReport) -> String {
    let result = report.result
    return """
      <!doctype html>
      <html lang="en"><head><meta charset="utf-8"><title>Load run \(report.run)</title>
      <style>
      body { font: 15px/1.45 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em; color: #000; background: #fff; }
      svg { width: 100%; height: auto; font-size: 12px; break-inside: avoid; }
      .grid { stroke: #ccc; stroke-width: 1; }
      table { border-collapse: collapse; margin: 1em 0; break-inside: avoid; }
      td, th { border-bottom: 1px solid #999; padding: .2em .8em; text-align: right; }
      td:first-child, th:first-child { text-align: left; }
      .bad { font-weight: bold; }
      h2 { font-size: 1.1em; margin-top: 2em; }
      </style></head><body>
      <h1>Load run \(report.run)</h1>
      <p>\(Timestamp.text(result.startedAt)), \(seconds(result.elapsed)) s, \(result.plan.devices.count) devices, \
      \(result.plan.requests.rate) requests a second.</p>
      \(facts(report))
      \(verdict(report))
      \(delays(result.measures))
      \(summary(result))
      \(notes(report.notes))
      <h2>Throughput</h2>
      \(throughput(result).svg)
      <h2>Latency until the device has it, by the time when the request was due</h2>
      \(latency(result.measures).svg)
      <h2>Stages, each from the time when the request was due</h2>
      \(stages(result).svg)
      \(table(result.stageTable))
      <h2>Processor time</h2>
      \(processors(result).svg)
      \(table(result.processorTable))
      \(result.shareTable.map { "<h2>The shares of this run</h2>\n" + table($0) } ?? "")
      \(steps(report.steps))
      </body></html>

      """
  }

  private static func seconds(_ nanoseconds: Int64) -> String { LoadPlot.short(Double(nanoseconds) / 1e9) }

  private static func verdict(_ report: LoadReport) -> String {
    let lines = report.complaints
    let slow = report.result.measures.delays.isEmpty ? "" : " But not every notification came within a second:"
    guard !lines.isEmpty else { return "<p>No promise was broken, and the schedule was kept.\(slow)</p>" }
    return "<ul>" + lines.map { "<li class=\"bad\">\(escaped($0))</li>" }.joined() + "</ul>"
  }

  private static func facts(_ report: LoadReport) -> String {
    let facts = report.facts + [("seed", "\(report.result.plan.seed)")]
    // The profile's path, the machine's name and the command are words of a person.
    return "<table>\n" + facts.map { row([$0.name, escaped($0.value)]) }.joined() + "</table>"
  }

  private static func table(_ table: LoadTable) -> String {
    "<table>\n" + row(table.heading, "th") + table.rows.map { row($0) }.joined() + "</table>\n"
  }

  private static func row(_ cells: [String], _ cell: String = "td") -> String {
    "<tr>" + cells.map { "<\(cell)>\($0)</\(cell)>" }.joined() + "</tr>\n"
  }

  private static func summary(_ result: LoadResult) -> String {
    let totals = result.totals
    var rows: [[String]] = [
      ["requests offered", "\(result.offered)"], ["requests published", "\(totals.published)"],
      ["requests completed", "\(totals.completed)"], ["schedule kept", "\(LoadText.percent(result.schedule))"],
      ["notifications expected at devices", "\(totals.expected)"], ["of them arrived (reach)", "\(LoadText.percent(result.reach))"],
      ["replaced by a newer one on the way", "\(totals.replaced)"], ["sent again after a lost acknowledgement", "\(totals.resent)"],
      ["connections", "\(result.connections)"], ["responses, accepted", "\(result.responses), \(result.acceptedResponses)"],
    ]
    for (kind, count) in totals.violations.sorted(by: { $0.key.rawValue < $1.key.rawValue }) { rows.append([kind.words, "\(count)"]) }
    return "<table>\n" + rows.map { row($0) }.joined() + "</table>"
  }

  private static func throughput(_ result: LoadResult) -> LoadPlot {
    let (measures, schedule) = (result.measures, LoadSchedule(result.plan.requests))
    let length = Double(measures.intervalLength) / 1e9
    func line(_ name: String, _ count: (Int) -> Int) -> LoadPlot.Line {
      LoadPlot.Line(name: name, points: measures.intervals.indices.map { (Double($0) * length, Double(count($0)) / length) })
    }
    let stages = [LoadMeasures.Stage.published, .arrived, .told].map { stage in
      line(stage.name) { measures.intervals[$0][stage] }
    }
    return LoadPlot(
      title: "Throughput", xLabel: "seconds after the start", yLabel: "in a second",
      lines: stages + [line("offered") { measures.offered($0, by: schedule) }])
  }

  private static func latency(_ measures: LoadMeasures) -> LoadPlot {
    let length = Double(measures.intervalLength) / 1e9
    return LoadPlot(
      title: "Latency over time", xLabel: "seconds after the start", yLabel: "milliseconds", isLogarithmic: true,
      lines: [("p50", 50.0), ("p99", 99), ("max", 100)].map { name, percentile in
        LoadPlot.Line(
          name: name,
          points: measures.intervals.enumerated().map { index, interval in
            let value = interval.arrival.isEmpty ? nil : max(0.001, Double(interval.arrival.value(atPercentile: percentile)) / 1000)
            return (Double(index) * length, value)
          })
      })
  }

  private static func stages(_ result: LoadResult) -> LoadPlot {
    let measures = result.measures
    // Each nine has the same room.
    func place(_ percentile: Double) -> Double { -log10(max(1 - percentile / 100, 1e-6)) }
    let ofWorkers = LoadServers.Stage.allCases.compactMap { stage in
      result.servers.ages[stage].map { ages in
        LoadPlot.Line(
          name: "\(stage.rawValue) (at most)",
          points: ages.points.filter { $0.percentile < 100 }.map { (place($0.percentile), max(0.001, Double($0.bound) / 1000)) })
      }
    }
    return LoadPlot(
      title: "Latency by percentile", xLabel: "percentile", yLabel: "milliseconds", isLogarithmic: true,
      xMarks: [(0, "0 %"), (1, "90 %"), (2, "99 %"), (3, "99.9 %"), (4, "99.99 %"), (5, "99.999 %")],
      lines: LoadMeasures.Stage.allCases.map { stage in
        LoadPlot.Line(
          name: stage.name,
          points: measures[stage].points(perHalf: 5).filter { $0.percentile < 100 }.map {
            (place($0.percentile), max(0.001, Double($0.value) / 1000))
          })
      } + ofWorkers)
  }

  private static func processors(_ result: LoadResult) -> LoadPlot {
    let length = Double(result.measures.intervalLength) / 1e9
    return LoadPlot(
      title: "Processor time", xLabel: "seconds after the start", yLabel: "cores",
      lines: result.servers.names.map { name in
        let intervals = result.servers.groups[name]?.intervals ?? []
        return LoadPlot.Line(name: name, points: intervals.enumerated().map { (Double($0) * length, $1 / length) })
      })
  }

  /// They have words of the cluster and of the network.
  private static func notes(_ notes: [String]) -> String {
    notes.isEmpty ? "" : "<ul>" + notes.map { "<li>\(escaped($0))</li>" }.joined() + "</ul>"
  }

  private static func escaped(_ text: String) -> String { text.replacing("&", with: "&amp;").replacing("<", with: "&lt;") }

  private static func delays(_ measures: LoadMeasures) -> String {
    guard !measures.delays.isEmpty else { return "" }
    return table(
      LoadTable(
        heading: ["due from (s)", "to (s)", "longest (s)", "arrivals"],
        rows: measures.delays.map { [seconds($0.due.lowerBound), seconds($0.due.upperBound), seconds($0.longest), "\($0.count)"] }))
  }

  private static func steps(_ steps: [LoadReport.Step]) -> String {
    guard !steps.isEmpty else { return "" }
    return "<h2>Steps to the capacity</h2>\n"
      + table(
        LoadTable(
          heading: ["requests a second", "p99", "schedule", "goal kept"],
          rows: steps.map { ["\($0.rate)", LoadText.time($0.p99), LoadText.percent($0.schedule), $0.isKept ? "yes" : "no"] }))
  }
}

extension LoadReport {
  /// The meaning of the stages that the workers measure.
  static let noteOnWorkers =
    "transformed and sent are the workers' own numbers: by their clocks, from the time of the request's record, of all requests of the cluster, and up to the bounds of their histograms."

  /// What a reader of the numbers must know, each in one sentence.
  package var notes: [String] {
    let (totals, devices) = (result.totals, result.plan.devices)
    var lines = [
      "acknowledged: the cluster has the device's word that it has the notification, by the time in the event. told: this run has read that event."
    ]
    if devices.slow > 0 {
      lines.append(
        "\(LoadText.percent(devices.slow)) of the devices are slow on purpose: they acknowledge after \(ReadableText.duration(milliseconds: Int64(LoadPlan.slowMilliseconds))), so the slowest of acknowledged and told say nothing of the cluster"
      )
    }
    if result.stageRows.contains(where: \.isOfWorkers) { lines.append(Self.noteOnWorkers) }
    let collapsed = (totals.outcomes[.collapsed] ?? 0) - totals.replaced
    if collapsed > 0 {
      lines.append(
        "\(collapsed) of the collapsed are not among the replaced: a newer one replaced them in the mailbox when their devices had them already"
      )
    }
    if result.servers.groups["up"] != nil {
      lines.append("the cluster is a 'carillon up', whose embedded broker is made for trials: its numbers are no measure of a cluster")
    }
    return lines + result.silentServers
  }

  /// What is wrong, each in one sentence; empty if nothing is.
  package var complaints: [String] {
    let totals = result.totals
    var lines: [String] = []
    if result.isStopped { lines.append("the run was ended early") }
    if result.schedule < LoadResult.leastSchedule {
      lines.append("only \(LoadText.percent(result.schedule)) of the schedule was kept, so the latencies are those of a smaller load")
    }
    if totals.failed > 0 { lines.append("Kafka did not take \(ReadableText.count(totals.failed, "request"))") }
    for kind in LoadViolation.Kind.allCases {
      if let count = totals.violations[kind], count > 0 { lines.append("\(ReadableText.count(count, "notification")) \(kind.words)") }
    }
    if totals.unfinished > 0 {
      lines.append("\(ReadableText.count(totals.unfinished, "notification")) neither arrived nor ended when the run was over")
    }
    return lines + broken.map { "\($0) does not hold" }
  }
}
