/// A bound that a run must keep, such as `p99=200ms` or `reach=1`. A value.
package struct LoadRequirement: Sendable, Hashable {
  /// What is bounded.
  package enum Measure: Sendable, Hashable {
    /// A percentile of a stage's latency, at most so many microseconds. 100 is the maximum.
    case latency(LoadMeasures.Stage, percentile: Double, microseconds: Int64)
    /// The share of what should have arrived that has arrived, at least.
    case reach(Double)
    /// The share of the schedule that was kept, at least.
    case schedule(Double)
  }

  /// The text that it was read from.
  package let text: String
  /// What is bounded.
  package let measure: Measure

  /// The forms of a requirement, as the end of "must be …".
  package static let allowed =
    "MEASURE=BOUND: p50, p90, p99, p999 or max with a time such as 200ms, of arrival, or of a stage such as told.p99; or reach or schedule with a share such as 1 or 0.99"

  /// Reads a requirement; nil if the text is not one.
  ///
  /// - Parameter microseconds: reads a time.
  package init?(_ text: String, microseconds: (String) -> Int64?) {
    guard let equals = text.firstIndex(of: "=") else { return nil }
    let (name, bound) = (String(text[..<equals]), String(text[text.index(after: equals)...]))
    self.text = text
    if name == "reach" || name == "schedule" {
      guard let share = Double(bound), (0...1).contains(share) else { return nil }
      measure = name == "reach" ? .reach(share) : .schedule(share)
      return
    }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    let wanted = parts.count == 2 ? parts[0] : parts.count == 1 ? LoadMeasures.Stage.arrived.name : nil
    let stage = LoadMeasures.Stage.allCases.first { $0.name == wanted }
    guard let stage, let percentile = LoadReport.percentiles.first(where: { $0.name == parts.last })?.value, let time = microseconds(bound),
      time > 0
    else {
      return nil
    }
    measure = .latency(stage, percentile: percentile, microseconds: time)
  }

  /// Whether a run keeps the bound. Without a measured latency it does not.
  package func holds(in result: LoadResult) -> Bool {
    switch measure {
    case .latency(let stage, let percentile, let microseconds):
      let histogram = result.measures[stage]
      return !histogram.isEmpty && histogram.value(atPercentile: percentile) <= microseconds
    case .reach(let share): return result.reach >= share
    case .schedule(let share): return result.schedule >= share
    }
  }
}

/// The search for the highest rate that keeps a goal: it doubles the rate until a step fails, then halves the distance. A value.
package struct LoadCapacitySearch: Sendable, Hashable {
  /// The rate of the next step; nil when the capacity is known.
  package private(set) var next: Int?
  /// The highest rate that kept the goal; 0 if none did.
  package private(set) var highest = 0
  private var lowestFailed: Int?

  /// The search ends when the bounds differ by less than this share.
  private static let precision = 0.05
  /// The highest rate that is tried.
  package static let maximum = 1_000_000

  /// Begins at a rate.
  package init(from rate: Int) { next = min(max(rate, 1), Self.maximum) }

  /// Takes the result of the step.
  package mutating func take(isKept: Bool) {
    guard let rate = next else { return }
    if isKept { highest = max(highest, rate) } else { lowestFailed = min(lowestFailed ?? rate, rate) }
    guard let failed = lowestFailed else {
      next = rate < Self.maximum ? min(rate * 2, Self.maximum) : nil
      return
    }
    let middle = (highest + failed) / 2
    next = middle <= highest || Double(failed - highest) < Self.precision * Double(failed) ? nil : middle
  }
}
