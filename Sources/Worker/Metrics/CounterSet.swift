import Synchronization

/// Counters with one label whose values are known at run time only: for what is rare, since each count takes a lock.
public final class CounterSet: Sendable {
  private let counts = Mutex<[String: Int]>([:])

  /// Values of the label that are told apart; further ones count as `other`.
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
