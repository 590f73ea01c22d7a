import Notifications

/// A row of a report's table of stages: the measured requests or notifications, and the percentiles of ``LoadReport/percentiles`` in
/// microseconds. Those of workers are the upper bounds of their histograms' buckets.
typealias LoadStageRow = (name: String, count: Int64, values: [Int64?], isOfWorkers: Bool)

extension LoadResult {
  /// The stages in the order of a request's way. Those of the workers are missing if none was seen.
  var stageRows: [LoadStageRow] {
    let percentiles = LoadReport.percentiles.map(\.value)
    func own(_ stage: LoadMeasures.Stage) -> LoadStageRow {
      let times = measures[stage]
      let values = percentiles.map { times.isEmpty ? nil : times.value(atPercentile: $0) }
      return (name: stage.name, count: times.count, values: values, isOfWorkers: false)
    }
    let ofWorkers = LoadServers.Stage.allCases.compactMap { stage in
      servers.ages[stage].map { ages in
        (name: stage.rawValue, count: ages.count, values: percentiles.map(ages.bound), isOfWorkers: true)
      }
    }
    return [own(.published)] + ofWorkers + [own(.arrived), own(.acknowledged), own(.told)]
  }
}

/// A row of a report's table of processor time: the processes of a kind that were seen, their seconds, those in a second of the run, and the
/// milliseconds for a published request.
typealias LoadProcessorRow = (name: String, processes: Int, seconds: Double, cores: Double, perRequest: Double?)

extension LoadResult {
  /// The table of processor time: this process, the workers by their roles, and Redis.
  var processorRows: [LoadProcessorRow] {
    servers.names.compactMap { name in
      servers.groups[name].map { group in
        (
          name: name, processes: group.processes, seconds: group.seconds,
          cores: elapsed > 0 ? group.seconds / (Double(elapsed) / 1e9) : 0,
          perRequest: totals.published > 0 ? group.seconds / Double(totals.published) * 1000 : nil
        )
      }
    }
  }

  /// Servers that did not answer, each with the reason.
  var silentServers: [String] { servers.silent.sorted { $0.key < $1.key }.map { "\($0.key.text) did not answer: \($0.value)" } }
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
        rows: shares.map { part in
          [part.share.number, part.share.plan.devices.count, part.result.offered, part.result.totals.published].map(String.init)
            + [part.result.reach, part.result.schedule].map(LoadText.percent)
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
