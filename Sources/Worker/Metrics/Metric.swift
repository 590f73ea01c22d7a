/// A metric, declared once in ``MetricNames``: its name, its meaning, and its labels.
///
/// `Cell` counts it: ``Counter``, ``Gauge`` or ``Histogram``. Names follow Prometheus' rules: the unit is the last word (`_seconds`,
/// `_bytes`), and counters end with `_total`.
public struct Metric<Cell: MetricCell>: Sendable {
  /// The name in full: `carillon_requests_total`.
  public let name: String
  /// Its meaning, in one sentence.
  let help: String
  /// The labels' names, in the order of their values.
  let labels: [String]
  let buckets: HistogramBuckets

  /// Declares a metric.
  public init(_ name: String, _ help: String, labels: [String] = []) { self.init(name, help, labels, .seconds) }

  fileprivate init(_ name: String, _ help: String, _ labels: [String], _ buckets: HistogramBuckets) {
    let isName = { (text: String) in
      text.utf8.first.map { (0x61...0x7A).contains($0) } ?? false
        && text.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F }
    }
    precondition(isName(name) && labels.allSatisfy(isName), "a metric's name and labels have lower-case letters, digits and _: \(name)")
    precondition(Cell.kind != "counter" || name.hasSuffix("_total"), "a counter's name ends with _total: \(name)")
    precondition(Cell.kind == "counter" || !name.hasSuffix("_total"), "only a counter's name ends with _total: \(name)")
    precondition(!labels.contains("le"), "the label le belongs to histograms' buckets: \(name)")
    self.name = name
    self.help = help
    self.labels = labels
    self.buckets = buckets
  }
}

extension Metric where Cell == Histogram {
  /// Declares a histogram with buckets for its unit.
  public init(_ name: String, _ help: String, labels: [String] = [], buckets: HistogramBuckets) {
    self.init(name, help, labels, buckets)
  }
}

/// The memory that a metric is counted in. Several threads may count. A reader sees each number complete, and several of them nearly at
/// once.
///
/// Each lane has its own cells, so that no two lanes write to the same memory. The registry sums cells with the same labels.
public protocol MetricCell: AnyObject, Sendable {
  /// Prometheus' word for it.
  static var kind: String { get }
  /// Makes a cell that has counted nothing.
  init(buckets: HistogramBuckets)
  /// The numbers so far, which the registry adds to those of other cells.
  var reading: MetricReading { get }
}

/// The numbers of a cell, or the sum of several cells.
public struct MetricReading: Sendable, Hashable {
  /// The value; of a histogram the sum of its observations.
  var value: Double
  /// For histograms: the observations of each bucket alone. The last bucket has no upper bound.
  var counts: [Int]

  /// A reading of a counter or a gauge.
  init(_ value: Double, counts: [Int] = []) {
    self.value = value
    self.counts = counts
  }

  /// Adds the numbers of a cell of the same metric.
  static func += (sum: inout MetricReading, other: MetricReading) {
    sum.value += other.value
    for index in sum.counts.indices where index < other.counts.count { sum.counts[index] += other.counts[index] }
  }
}
