import Notifications

/// A row of a report's table of stages.
package struct LoadStageRow: Sendable, Hashable {
  /// The stage.
  package var name: String
  /// The measured requests or notifications.
  package var count: Int64
  /// The percentiles of ``LoadReport/percentiles`` in microseconds; nil if there is none.
  package var values: [Int64?]
  /// Whether the workers have measured it. Then the values are the upper bounds of their histograms' buckets.
  package var isOfWorkers: Bool

  private init(_ stage: LoadMeasures.Stage, _ histogram: Histogram) {
    (name, count, isOfWorkers) = (stage.rawValue, histogram.count, false)
    values = LoadReport.percentiles.map { histogram.isEmpty ? nil : histogram.value(atPercentile: $0.value) }
  }

  private init(_ stage: LoadServers.Stage, _ ages: LoadAges) {
    (name, count, isOfWorkers) = (stage.rawValue, ages.count, true)
    values = LoadReport.percentiles.map { ages.bound(atPercentile: $0.value) }
  }

  /// The stages in the order of a request's way. Those of the workers are missing if none was seen.
  static func rows(_ result: LoadResult) -> [LoadStageRow] {
    func own(_ stage: LoadMeasures.Stage) -> LoadStageRow { LoadStageRow(stage, result.measures[stage]) }
    let ofWorkers = LoadServers.Stage.allCases.compactMap { stage in result.servers.ages[stage].map { LoadStageRow(stage, $0) } }
    return [own(.published)] + ofWorkers + [own(.arrived), own(.acknowledged), own(.told)]
  }
}

extension LoadResult {
  /// The table of the stages.
  package var stageRows: [LoadStageRow] { LoadStageRow.rows(self) }
}

/// A row of a report's table of processor time.
package struct LoadProcessorRow: Sendable, Hashable {
  /// The kind of the processes.
  package var name: String
  /// The processes that were seen.
  package var processes: Int
  /// Their processor time, in seconds.
  package var seconds: Double
  /// The processor time in a second of the run.
  package var cores: Double
  /// The processor time for a published request, in milliseconds; nil if none was published.
  package var perRequest: Double?
}

extension LoadResult {
  /// The table of processor time: this process, the workers by their roles, and Redis.
  package var processorRows: [LoadProcessorRow] {
    servers.names.compactMap { name in
      servers.groups[name].map { group in
        LoadProcessorRow(
          name: name, processes: group.processes, seconds: group.seconds,
          cores: elapsed > 0 ? group.seconds / (Double(elapsed) / 1e9) : 0,
          perRequest: totals.published > 0 ? group.seconds / Double(totals.published) * 1000 : nil)
      }
    }
  }

  /// Servers that did not answer, each with the reason.
  package var silentServers: [String] { servers.silent.sorted { $0.key < $1.key }.map { "\($0.key.text) did not answer: \($0.value)" } }
}

/// A table of a report, as the terminal and the page show it.
package struct LoadTable: Sendable {
  /// The names of the columns.
  package let heading: [String]
  /// The rows, each with a cell for each column.
  package let rows: [[String]]
}

extension LoadResult {
  /// The stages with their percentiles.
  package var stageTable: LoadTable {
    LoadTable(
      heading: ["stage", "count"] + LoadReport.percentiles.map(\.name),
      rows: stageRows.map { stage in
        [stage.name, "\(stage.count)"]
          + stage.values.map { value in value.map { (stage.isOfWorkers ? "≤" : "") + LoadText.time($0) } ?? "-" }
      })
  }

  /// The processor time of all processes.
  package var processorTable: LoadTable {
    LoadTable(
      heading: ["processor time", "processes", "total", "cores", "a request"],
      rows: processorRows.map { row in
        [
          row.name, "\(row.processes)", "\(LoadText.decimal(row.seconds)) s", LoadText.decimal(row.cores),
          row.perRequest.map { "\(LoadText.decimal($0)) ms" } ?? "-",
        ]
      })
  }

  /// The shares of a sum; nil for a run of one process.
  package var shareTable: LoadTable? {
    shares.isEmpty
      ? nil
      : LoadTable(
        heading: ["share", "devices", "offered", "published", "reach", "schedule"],
        rows: shares.map { share in
          ["\(share.number)", "\(share.devices)", "\(share.offered)", "\(share.published)"]
            + [share.reach, share.schedule].map(LoadText.percent)
        })
  }
}

/// Numbers of a report as texts.
package enum LoadText {
  /// A time of microseconds: `850 µs`, `1.25 ms`, `2.10 s`.
  package static func time(_ microseconds: Int64) -> String {
    switch microseconds {
    case ..<1000: "\(microseconds) µs"
    case ..<1_000_000: "\(decimal(Double(microseconds) / 1000)) ms"
    default: "\(decimal(Double(microseconds) / 1_000_000)) s"
    }
  }

  /// A share in percent, rounded down, so that 100 % means all.
  package static func percent(_ share: Double) -> String { "\(decimal((share * 10_000).rounded(.down) / 100)) %" }

  static func decimal(_ value: Double) -> String {
    let hundredths = Int64((min(value, 1e12) * 100).rounded())
    let rest = hundredths % 100
    return rest == 0 ? "\(hundredths / 100)" : "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
  }
}
