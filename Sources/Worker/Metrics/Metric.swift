/// A metric, declared once in ``MetricNames``: its name, what it means, and by which labels it is split.
///
/// `Cell` is what is counted with: ``Counter``, ``Gauge`` or ``Histogram``. Names follow Prometheus' rules: the unit is the last
/// word (`_seconds`, `_bytes`), and after it counters have `_total`.
public struct Metric<Cell: MetricCell>: Sendable {
  /// The name in full: `carillon_requests_total`.
  public let name: String
  /// What it says, in one sentence.
  public let help: String
  /// The labels' names, in the order in which their values are given.
  public let labels: [String]
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

/// What a metric is counted with. One thread or several may count; readers see each number whole, and several of them nearly at once.
///
/// Each lane has cells of its own, so that no two lanes write to the same memory; where two cells have the same labels, the registry
/// shows their sum.
public protocol MetricCell: AnyObject, Sendable {
  /// Prometheus' word for it.
  static var kind: String { get }
  /// Makes a cell that has counted nothing.
  init(buckets: HistogramBuckets)
  /// The numbers so far, to be added to those of other cells.
  var reading: MetricReading { get }
}

/// The numbers of a cell, or the sum of several cells'.
public struct MetricReading: Sendable, Hashable {
  /// The value; of a histogram the sum of what it has seen.
  public var value: Double
  /// For histograms: what each bucket has seen alone, the last one being that without an upper bound.
  public var counts: [Int]

  /// Numbers of a counter or a gauge.
  public init(_ value: Double, counts: [Int] = []) {
    self.value = value
    self.counts = counts
  }

  /// Adds the numbers of a cell of the same metric.
  static func += (sum: inout MetricReading, other: MetricReading) {
    sum.value += other.value
    for index in sum.counts.indices where index < other.counts.count { sum.counts[index] += other.counts[index] }
  }
}
