import Notifications

/// A row of a report's table of stages.
public struct LoadStageRow: Sendable, Hashable {
  /// The stage.
  public var name: String
  /// The measured requests or notifications.
  public var count: Int64
  /// The percentiles of ``LoadReport/percentiles`` in microseconds; nil if there is none.
  public var values: [Int64?]
  /// Whether the workers have measured it. Then the values are the upper bounds of their histograms' buckets.
  public var isOfWorkers: Bool

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
  public var stageRows: [LoadStageRow] { LoadStageRow.rows(self) }
}

/// A row of a report's table of processor time.
public struct LoadProcessorRow: Sendable, Hashable {
  /// The kind of the processes.
  public var name: String
  /// The processes that were seen.
  public var processes: Int
  /// Their processor time, in seconds.
  public var seconds: Double
  /// The processor time in a second of the run.
  public var cores: Double
  /// The processor time for a published request, in milliseconds; nil if none was published.
  public var perRequest: Double?
}

extension LoadResult {
  /// The table of processor time: this process, the workers by their roles, and Redis.
  public var processorRows: [LoadProcessorRow] {
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
  public var silentServers: [String] { servers.silent.sorted { $0.key < $1.key }.map { "\($0.key.text) did not answer: \($0.value)" } }
}
