import JSON

/// A worker's histogram of ages: the number of observations in each of its buckets. A value.
///
/// A percentile is known only as the upper bound of its bucket.
package struct LoadAges: Sendable, Hashable {
  /// The upper bounds of the buckets in seconds, in order; the last is infinite.
  private var bounds: [Double] = []
  /// The observations of each bucket alone. Their sums are of numbers from outside, which must not overflow.
  private var counts: [Double] = []

  /// Makes an empty histogram.
  init() {}

  /// Makes it from Prometheus' form, where a bucket counts the smaller observations too.
  init(cumulative: [Double: Double]) {
    bounds = cumulative.keys.sorted()
    var former = 0.0
    for bound in bounds {
      let count = max(former, cumulative[bound] ?? 0)
      counts.append(count - former)
      former = count
    }
  }

  private var total: Double { counts.reduce(0, +) }

  /// The number of observations.
  package var count: Int64 { Int64(min(total, 1e15)) }

  /// The upper bound in microseconds of the bucket that the percentile lies in; nil if it is empty or has no such bound.
  package func bound(atPercentile percentile: Double) -> Int64? {
    let wanted = max(1, (min(max(percentile, 0), 100) / 100 * total).rounded(.up))
    var seen = 0.0
    for (bound, count) in zip(bounds, counts) {
      seen += count
      if seen >= wanted { return Self.microseconds(bound) }
    }
    return nil
  }

  /// The filled buckets for a plot: the percent of all observations that do not exceed the bound, and the bound in microseconds.
  package var points: [(percentile: Double, bound: Int64)] {
    let all = total
    var seen = 0.0
    return zip(bounds, counts).compactMap { bound, count in
      seen += count
      guard count > 0, let bound = Self.microseconds(bound) else { return nil }
      return (seen / all * 100, bound)
    }
  }

  /// The observations since an earlier reading; nil if that is not of the same histogram.
  func since(_ earlier: LoadAges) -> LoadAges? {
    guard bounds == earlier.bounds else { return nil }
    var rest = self
    for (index, count) in earlier.counts.enumerated() { rest.counts[index] -= count }
    return rest.counts.allSatisfy { $0 >= 0 } ? rest : nil
  }

  /// Adds the observations of another histogram. One with other buckets is left out, unless this one is empty.
  mutating func add(_ other: LoadAges) {
    if bounds.isEmpty {
      self = other
    } else if bounds == other.bounds {
      for (index, count) in other.counts.enumerated() { counts[index] += count }
    }
  }

  // MARK: JSON

  /// The most buckets that are read.
  private static let maximumBuckets = 1_000

  /// The bounds with their counts.
  var json: JSONValue {
    .array(zip(bounds, counts).map { [$0, $1].json })
  }

  /// Reads such an object; nil if it is none.
  init?(_ json: JSONValue) {
    func number(_ value: JSONValue?) -> Double? { value?.doubleValue.flatMap { (0...1e15).contains($0) ? $0 : nil } }
    guard let buckets = json.elements, buckets.count <= Self.maximumBuckets else { return nil }
    for (index, bucket) in buckets.enumerated() {
      // Only the last bucket may have no bound.
      let isLast = index == buckets.count - 1
      guard let bound = number(bucket[0]) ?? (isLast ? .infinity : nil), bound > bounds.last ?? -1, let count = number(bucket[1])
      else { return nil }
      bounds.append(bound)
      counts.append(count)
    }
  }

  private static func microseconds(_ seconds: Double) -> Int64? { Int64(exactly: (seconds * 1_000_000).rounded()) }
}
