public import JSON
import Notifications

/// The report of a run: its numbers with its name, and the steps of a search for the capacity.
public struct LoadReport: Sendable {
  /// A step of `--find-capacity`.
  public struct Step: Sendable, Hashable {
    /// Its rate, in requests a second.
    public var rate: Int
    /// The 99th percentile of the arrival, in microseconds.
    public var p99: Int64
    /// The share of the schedule that was kept.
    public var schedule: Double
    /// Whether it kept the goal.
    public var isKept: Bool

    /// Makes a step from its parts.
    public init(rate: Int, p99: Int64, schedule: Double, isKept: Bool) {
      (self.rate, self.p99, self.schedule, self.isKept) = (rate, p99, schedule, isKept)
    }
  }

  /// The name of the run.
  public var run: String
  /// The numbers.
  public var result: LoadResult
  /// The steps of a search.
  public var steps: [Step]
  /// The requirements that do not hold, as they were written.
  public var broken: [String]
  /// What one needs to repeat the run, by its name: `profile`, `version`, `machine`, `command`.
  public var facts: [(name: String, value: String)]
  /// The exact numbers, if it is the report of a share.
  public var share: LoadShareResult?

  /// Makes a report from its parts.
  public init(
    run: String, result: LoadResult, steps: [Step] = [], broken: [String] = [], facts: [(name: String, value: String)] = []
  ) {
    (self.run, self.result, self.steps, self.broken, self.facts) = (run, result, steps, broken, facts)
  }

  /// The percentiles that a report has, with their names.
  public static let percentiles: [(name: String, value: Double)] = [
    ("p50", 50), ("p90", 90), ("p99", 99), ("p999", 99.9), ("max", 100),
  ]

  /// The report as one JSON object. Times are in milliseconds.
  public var json: JSONValue {
    let (totals, measures) = (result.totals, result.measures)
    return [
      "run": .string(run), "good": .bool(result.isGood && broken.isEmpty), "startedAt": .integer(result.startedAt),
      "seconds": Self.number(Double(result.elapsed) / 1e9),
      "of": .object(facts.map { .init(key: $0.name, value: .string($0.value)) }), "plan": plan,
      "offered": .integer(Int64(result.offered)), "published": .integer(Int64(totals.published)),
      "completed": .integer(Int64(totals.completed)), "duplicates": .integer(Int64(result.duplicates)),
      "schedule": Self.number(result.schedule), "reach": Self.number(result.reach),
      "pairs": .object(totals.members(LoadLedger.Totals.ofPairs)),
      "failed": .integer(Int64(totals.failed)),
      "violations": .object(
        LoadViolation.Kind.allCases.map { .init(key: $0.rawValue, value: .integer(Int64(totals.violations[$0] ?? 0))) }),
      "events": .object(
        totals.outcomes.sorted { $0.key.rawValue < $1.key.rawValue }.map { .init(key: $0.key.name, value: .integer(Int64($0.value))) }),
      "stages": .object(LoadMeasures.Stage.allCases.map { .init(key: $0.rawValue, value: Self.stage(measures[$0])) }),
      "workerStages": .object(
        result.stageRows.filter(\.isOfWorkers).map { .init(key: $0.name, value: Self.workerStage($0)) }),
      "delays": .array(
        measures.delays.map {
          [
            "fromSeconds": Self.number(Double($0.due.lowerBound) / 1e9), "toSeconds": Self.number(Double($0.due.upperBound) / 1e9),
            "longestSeconds": Self.number(Double($0.longest) / 1e9), "count": .integer(Int64($0.count)),
          ]
        }),
      "intervals": intervals,
      "connections": .integer(Int64(result.connections)), "responses": .integer(Int64(result.responses)),
      "acceptedResponses": .integer(Int64(result.acceptedResponses)), "processorSeconds": Self.number(result.processorSeconds),
      "processors": .object(result.processorRows.map { .init(key: $0.name, value: Self.processor($0)) }),
      "processorMsPerRequest": result.processorMilliseconds.map(Self.number) ?? .null,
      "silentServers": .array(result.silentServers.map { .string($0) }),
      "steps": .array(
        steps.map {
          [
            "rate": .integer(Int64($0.rate)), "p99": Self.milliseconds($0.p99), "schedule": Self.number($0.schedule),
            "kept": .bool($0.isKept),
          ]
        }),
      "shares": .array(result.shares.map(Self.row)),
      "broken": .array(broken.map { .string($0) }),
      "share": share?.json ?? .null,
    ]
  }

  private static func row(_ row: LoadShareRow) -> JSONValue {
    [
      "share": .integer(Int64(row.number)), "devices": .integer(Int64(row.devices)), "offered": .integer(Int64(row.offered)),
      "published": .integer(Int64(row.published)), "reach": number(row.reach), "schedule": number(row.schedule),
    ]
  }

  private var plan: JSONValue {
    let (devices, requests) = (result.plan.devices, result.plan.requests)
    return [
      "devices": .integer(Int64(devices.count)), "devicesPerUser": .integer(Int64(devices.perUser)), "churn": Self.number(devices.churn),
      "storm": Self.number(devices.storm), "slow": Self.number(devices.slow), "rate": .integer(Int64(requests.rate)),
      "durationSeconds": Self.number(Double(requests.durationMilliseconds) / 1000),
      "rampSeconds": Self.number(Double(requests.rampMilliseconds) / 1000),
      "sizes": .array(requests.sizes.map { .integer(Int64($0)) }), "toUsers": Self.number(requests.toUsers),
      "collapsing": Self.number(requests.collapsing), "duplicate": Self.number(requests.duplicate),
      "mutable": Self.number(requests.mutable), "scheduled": Self.number(requests.scheduled),
      "scheduleAheadMs": .integer(Int64(requests.aheadMilliseconds)), "seed": .number(String(result.plan.seed)),
    ]
  }

  private static func stage(_ histogram: Histogram) -> JSONValue {
    .object(
      [.init(key: "count", value: .integer(histogram.count)), .init(key: "mean", value: milliseconds(Int64(histogram.mean)))]
        + percentiles.map { .init(key: $0.name, value: milliseconds(histogram.value(atPercentile: $0.value))) }
        + [
          .init(
            key: "distribution",
            value: .array(histogram.points(perHalf: 5).map { [number($0.percentile), milliseconds($0.value)] }))
        ])
  }

  /// The percentiles are upper bounds, since the workers count in buckets.
  private static func workerStage(_ row: LoadStageRow) -> JSONValue {
    .object(
      [.init(key: "count", value: .integer(row.count))]
        + zip(percentiles, row.values).map { .init(key: "\($0.name)AtMost", value: $1.map(milliseconds) ?? .null) })
  }

  private static func processor(_ row: LoadProcessorRow) -> JSONValue {
    [
      "processes": .integer(Int64(row.processes)), "seconds": number(row.seconds), "cores": number(row.cores),
      "msPerRequest": row.perRequest.map(number) ?? .null,
    ]
  }

  private var intervals: JSONValue {
    let (length, schedule) = (Double(result.measures.intervalLength) / 1e9, LoadSchedule(result.plan.requests))
    return .array(
      result.measures.intervals.enumerated().map { index, interval in
        let offered = Double(result.measures.offered(index, by: schedule)) / length
        var members: [JSONValue.Member] = [
          .init(key: "atSeconds", value: Self.number(Double(index) * length)), .init(key: "offered", value: Self.number(offered)),
        ]
        for (stage, count) in zip(LoadMeasures.Stage.allCases, interval.counts) {
          members.append(.init(key: stage.rawValue, value: Self.number(Double(count) / length)))
        }
        for (name, percentile) in [("p50", 50.0), ("p99", 99.0), ("max", 100.0)] {
          let value = interval.arrival.value(atPercentile: percentile)
          members.append(.init(key: name, value: interval.arrival.isEmpty ? .null : Self.milliseconds(value)))
        }
        let cores = result.servers.names.map { name in
          JSONValue.Member(key: name, value: Self.number((result.servers.groups[name]?.intervals[index] ?? 0) / length))
        }
        members.append(.init(key: "cores", value: .object(cores)))
        return .object(members)
      })
  }

  private static func milliseconds(_ microseconds: Int64) -> JSONValue { number(Double(microseconds) / 1000) }

  /// A number with at most six digits after the point. A long tail of a double says nothing.
  private static func number(_ value: Double) -> JSONValue {
    guard value.isFinite else { return .null }
    let rounded = (value * 1e6).rounded() / 1e6
    return rounded == rounded.rounded() && abs(rounded) < 1e15 ? .integer(Int64(rounded)) : .number("\(rounded)")
  }
}
