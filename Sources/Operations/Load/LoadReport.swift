package import JSON
import Notifications

/// The report of a run: its numbers with its name, and the steps of a search for the capacity.
package struct LoadReport: Sendable {
  /// A step of `--find-capacity`: its rate in requests a second, the 99th percentile of the arrival in microseconds, the share of the schedule
  /// that was kept, and whether it kept the goal.
  package typealias Step = (rate: Int, p99: Int64, schedule: Double, isKept: Bool)

  /// The name of the run.
  package var run: String
  /// The numbers.
  package var result: LoadResult
  /// The steps of a search.
  package var steps: [Step]
  /// The requirements that do not hold, as they were written.
  package var broken: [String]
  /// What one needs to repeat the run, by its name: `profile`, `version`, `machine`, `command`.
  package var facts: [(name: String, value: String)]
  /// The exact numbers, if it is the report of a share.
  package var share: LoadShareResult?

  /// Makes a report from its parts.
  package init(
    run: String, result: LoadResult, steps: [Step] = [], broken: [String] = [], facts: [(name: String, value: String)] = []
  ) {
    (self.run, self.result, self.steps, self.broken, self.facts) = (run, result, steps, broken, facts)
  }

  /// The percentiles that a report has, with their names.
  package static let percentiles: [(name: String, value: Double)] = [
    ("p50", 50), ("p90", 90), ("p99", 99), ("p999", 99.9), ("max", 100),
  ]

  /// The report as one JSON object. Times are in milliseconds.
  package var json: JSONValue {
    let (totals, measures) = (result.totals, result.measures)
    return .object([
      "run": run, "good": result.isGood && broken.isEmpty, "startedAt": result.startedAt,
      "seconds": Self.number(Double(result.elapsed) / 1e9), "of": JSONValue.object(facts.map { .init($0.name, $0.value) }), "plan": plan,
      "offered": result.offered, "published": totals.published, "completed": totals.completed, "duplicates": result.duplicates,
      "schedule": Self.number(result.schedule), "reach": Self.number(result.reach),
      "pairs": JSONValue.object(totals.members(LoadLedger.Totals.ofPairs)), "failed": totals.failed,
      "violations": JSONValue.object(LoadViolation.Kind.allCases.map { .init($0.rawValue, totals.violations[$0] ?? 0) }),
      "events": JSONValue.object(totals.outcomes.sorted { $0.key.rawValue < $1.key.rawValue }.map { .init($0.key.name, $0.value) }),
      "stages": JSONValue.object(LoadMeasures.Stage.allCases.map { .init($0.name, Self.stage(measures[$0])) }),
      "workerStages": JSONValue.object(result.stageRows.filter(\.isOfWorkers).map { .init($0.name, Self.workerStage($0)) }),
      "delays": measures.delays.map {
        JSONValue.object([
          "fromSeconds": Self.number(Double($0.due.lowerBound) / 1e9), "toSeconds": Self.number(Double($0.due.upperBound) / 1e9),
          "longestSeconds": Self.number(Double($0.longest) / 1e9), "count": $0.count,
        ])
      },
      "intervals": intervals, "connections": result.connections, "responses": result.responses,
      "acceptedResponses": result.acceptedResponses, "processorSeconds": Self.number(result.processorSeconds),
      "processors": JSONValue.object(result.processorRows.map { .init($0.name, Self.processor($0)) }),
      "processorMsPerRequest": result.processorMilliseconds.map(Self.number), "silentServers": result.silentServers,
      "steps": steps.map {
        JSONValue.object(["rate": $0.rate, "p99": Self.milliseconds($0.p99), "schedule": Self.number($0.schedule), "kept": $0.isKept])
      },
      "shares": result.shares.map(Self.row), "broken": broken, "share": share?.json,
    ])
  }

  private static func row(_ part: LoadShareResult) -> JSONValue {
    .object([
      "share": part.share.number, "devices": part.share.plan.devices.count, "offered": part.result.offered,
      "published": part.result.totals.published, "reach": number(part.result.reach), "schedule": number(part.result.schedule),
    ])
  }

  private var plan: JSONValue {
    let (devices, requests) = (result.plan.devices, result.plan.requests)
    return .object([
      "devices": devices.count, "devicesPerUser": devices.perUser, "churn": Self.number(devices.churn),
      "storm": Self.number(devices.storm), "slow": Self.number(devices.slow), "rate": requests.rate,
      "durationSeconds": Self.number(Double(requests.durationMilliseconds) / 1000),
      "rampSeconds": Self.number(Double(requests.rampMilliseconds) / 1000), "sizes": requests.sizes,
      "toUsers": Self.number(requests.toUsers), "collapsing": Self.number(requests.collapsing),
      "duplicate": Self.number(requests.duplicate), "mutable": Self.number(requests.mutable),
      "scheduled": Self.number(requests.scheduled), "scheduleAheadMs": requests.aheadMilliseconds, "seed": result.plan.seed,
    ])
  }

  private static func stage(_ histogram: Histogram) -> JSONValue {
    let values = percentiles.map { JSONValue.Member($0.name, milliseconds(histogram.value(atPercentile: $0.value))) }
    return .object(["count": histogram.count, "mean": milliseconds(Int64(histogram.mean))]).appending(contentsOf: .object(values))
      .appending(["distribution": histogram.points(perHalf: 5).map { [number($0.percentile), milliseconds($0.value)] }])
  }

  /// The percentiles are upper bounds, since the workers count in buckets.
  private static func workerStage(_ row: LoadStageRow) -> JSONValue {
    let values = zip(percentiles, row.values).map { JSONValue.Member("\($0.name)AtMost", $1.map(milliseconds)) }
    return .object(["count": row.count]).appending(contentsOf: .object(values))
  }

  private static func processor(_ row: LoadProcessorRow) -> JSONValue {
    .object([
      "processes": row.processes, "seconds": number(row.seconds), "cores": number(row.cores), "msPerRequest": row.perRequest.map(number),
    ])
  }

  private var intervals: [JSONValue] {
    let (length, schedule) = (Double(result.measures.intervalLength) / 1e9, LoadSchedule(result.plan.requests))
    return result.measures.intervals.enumerated().map { index, interval in
      let counts = zip(LoadMeasures.Stage.allCases, interval.counts).map { stage, count in
        JSONValue.Member(stage.name, Self.number(Double(count) / length))
      }
      let arrivals = [("p50", 50.0), ("p99", 99.0), ("max", 100.0)].map { name, percentile in
        JSONValue.Member(name, interval.arrival.isEmpty ? nil : Self.milliseconds(interval.arrival.value(atPercentile: percentile)))
      }
      let cores = result.servers.names.map { name in
        JSONValue.Member(name, Self.number((result.servers.groups[name]?.intervals[index] ?? 0) / length))
      }
      let offered = Double(result.measures.offered(index, by: schedule)) / length
      return .object(["atSeconds": Self.number(Double(index) * length), "offered": Self.number(offered)])
        .appending(contentsOf: .object(counts + arrivals)).appending(["cores": JSONValue.object(cores)])
    }
  }

  private static func milliseconds(_ microseconds: Int64) -> JSONValue { number(Double(microseconds) / 1000) }

  /// A number with at most six digits after the point. A long tail of a double says nothing.
  private static func number(_ value: Double) -> JSONValue {
    guard value.isFinite else { return .null }
    let rounded = (value * 1e6).rounded() / 1e6
    return rounded == rounded.rounded() && abs(rounded) < 1e15 ? .integer(Int64(rounded)) : .number("\(rounded)")
  }
}
