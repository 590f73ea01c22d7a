public import Notifications

/// Notes what a newer program has written and this worker leaves alone.
public final class NewerLayouts {
  private let counters: [Layout: Counter]
  private let logger: Logger
  private var logged: Set<Layout> = []

  /// Makes it with the counters of a lane.
  public init(_ counters: [Layout: Counter], logger: Logger) { (self.counters, self.logger) = (counters, logger) }

  /// Counts what was met, and logs each layout once.
  ///
  /// - Parameter place: what was met, and where; empty if the log need not name it.
  public func found(_ layout: Layout, count: Int = 1, _ place: String = "") {
    counters[layout]?.increment(by: count)
    guard logged.insert(layout).inserted else { return }
    logger.warning(
      "a newer program has written what this worker does not read; it is left alone until a newer worker comes",
      ["layout": layout.rawValue, "reads": layout.newest, "what": place])
  }
}

extension MetricRegistry {
  /// Makes a lane's counters of what a newer program has written.
  public func makeNewerLayouts() -> [Layout: Counter] {
    Dictionary(uniqueKeysWithValues: Layout.allCases.map { ($0, make(MetricNames.newerLayouts, $0.rawValue)) })
  }
}
