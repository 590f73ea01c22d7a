import Synchronization

/// Counters whose label values are known only at run time. Each count takes a lock, so use it for rare events.
public final class CounterSet: Sendable {
  private let counts = Mutex<[String: Int]>([:])

  /// The most values of the label. Further ones count as `other`.
  static let maximum = 100

  /// No counters yet.
  init() {}

  /// Adds one to the counter of this label. From any thread.
  public func increment(_ label: String) {
    counts.withLock { counts in
      let isKnown = counts[label] != nil || counts.count < Self.maximum
      counts[isKnown ? label : "other", default: 0] += 1
    }
  }

  /// The present numbers.
  var readings: [(labels: [String], reading: MetricReading)] {
    counts.withLock { $0 }.sorted { $0.key < $1.key }.map { ([$0.key], MetricReading(Double($0.value))) }
  }
}
