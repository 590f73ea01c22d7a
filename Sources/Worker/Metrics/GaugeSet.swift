import Synchronization

/// Gauges whose labels are known only at run time and may disappear, for example of partitions.
public final class GaugeSet: Sendable {
  private let values = Mutex<[[String]: Double]>([:])

  /// No gauges yet.
  init() {}

  /// Replaces all gauges, by the labels' values in the order of the metric's declaration. From any thread.
  public func replace(with values: [[String]: Double]) { self.values.withLock { $0 = values } }

  /// The present numbers.
  var readings: [(labels: [String], reading: MetricReading)] {
    values.withLock { $0 }.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { ($0.key, MetricReading($0.value)) }
  }
}
