import Synchronization

/// Gauges whose labels are known at run time only, and which may go again: those of partitions that come and go.
public final class GaugeSet: Sendable {
  private let values = Mutex<[[String]: Double]>([:])

  /// No gauges yet.
  init() {}

  /// Shows these gauges and no others: by the labels' values, in the order of the metric's declaration. From any thread.
  public func replace(with values: [[String]: Double]) { self.values.withLock { $0 = values } }

  /// The present numbers.
  var readings: [(labels: [String], reading: MetricReading)] {
    values.withLock { $0 }.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { ($0.key, MetricReading($0.value)) }
  }
}
