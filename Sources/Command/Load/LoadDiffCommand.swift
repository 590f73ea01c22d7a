import JSON
import Operations
import Worker

/// `carillon load diff`.
enum LoadDiffCommand {
  private static let before = Argument("BEFORE", "The numbers of a run, as --result has written them.", completion: .file)
  private static let after = Argument("AFTER", "The numbers of another run.", completion: .file)

  static let command = Command(
    "load diff", "compares the numbers of two load runs",
    discussion: "Prints each latency, and what was offered and reached, of both runs with the change in percent.",
    arguments: [before, after], groups: [AnswerSettings.group],
    examples: [Example("load diff before.json after.json", "what a change has done")]
  ) { values in
    let reports = try [values[before], values[after]].map { try read($0.first ?? "") }
    let rows = measures.compactMap { name, path, unit -> [String]? in
      let numbers = reports.map { report in path.reduce(Optional(report)) { $0?[$1] }?.doubleValue }
      guard numbers.contains(where: { $0 != nil }) else { return nil }
      return [name] + numbers.map { $0.map { "\(short($0))\(unit)" } ?? "-" } + [change(numbers[0], numbers[1])]
    }
    if values[AnswerSettings.json] {
      for row in rows {
        StandardOutput.json(JSONValue.object(["measure": row[0], "before": row[1], "after": row[2], "change": row[3]]).text)
      }
      return .done
    }
    let names = reports.map { TerminalText.visible($0["run"]?.stringValue ?? "?") }
    for line in TerminalTable(heading: ["MEASURE"] + names + ["CHANGE"], alignsLast: true).lines(rows, width: Terminal.width) {
      StandardOutput.line(line)
    }
    return .done
  }

  private static let measures: [(name: String, path: [String], unit: String)] =
    ["offered", "published", "completed", "reach", "schedule", "processorSeconds"].map { ($0, [$0], "") }
    + [("processor time a request", ["processorMsPerRequest"], " ms")]
    + LoadMeasures.Stage.allCases.flatMap { stage in
      LoadReport.percentiles.map { ("\(stage.rawValue) \($0.name)", ["stages", stage.rawValue, $0.name], " ms") }
    }
    + LoadServers.Stage.allCases.flatMap { stage in
      LoadReport.percentiles.map { ("\(stage.rawValue) \($0.name) at most", ["workerStages", stage.rawValue, "\($0.name)AtMost"], " ms") }
    }

  private static func read(_ path: String) throws -> JSONValue {
    let bytes = try Descriptor.contents(of: path, limit: 64 << 20)
    guard let report = bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }), report["stages"] != nil else {
      throw Failure(.wrongUsage, "\(path) is not the report of a load run, as 'carillon load --result' writes it")
    }
    return report
  }

  private static func short(_ value: Double) -> String {
    let text = "\((min(max(value, -1e12), 1e12) * 1000).rounded() / 1000)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }

  private static func change(_ before: Double?, _ after: Double?) -> String {
    guard let before, let after, before != 0 else { return "-" }
    let percent = short(((after / before - 1) * 1000).rounded() / 10)
    return (after >= before ? "+" : "") + percent + " %"
  }
}
