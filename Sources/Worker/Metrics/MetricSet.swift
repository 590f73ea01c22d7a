import Synchronization

/// Cells of a metric whose labels are known only at run time.
public final class MetricSet<Cell: MetricCell>: Sendable {
  private let values = Mutex<[[String]: Double]>([:])

  /// No cells yet.
  init() {}

  /// The present numbers.
  var readings: [(labels: [String], reading: MetricReading)] {
    values.withLock { $0 }.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { ($0.key, MetricReading($0.value)) }
  }
}

extension MetricSet<Gauge> {
  /// Replaces all gauges, by the labels' values in the order of the metric's declaration. From any thread.
  public func replace(with values: [[String]: Double]) { self.values.withLock { $0 = values } }
}

extension MetricSet<Counter> {
  /// The most values of the label. Further ones count as `other`.
  static var maximum: Int { 100 }

  /// Adds one to the counter of this label. From any thread. Each count takes a lock, so use it for rare events.
  public func increment(_ label: String) {
    values.withLock { values in
      let isKnown = values[[label]] != nil || values.count < Self.maximum
      values[isKnown ? [label] : ["other"], default: 0] += 1
    }
  }
}
