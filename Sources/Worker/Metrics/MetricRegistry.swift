import Synchronization

/// All cells of the process, and their text for Prometheus.
///
/// Cells stay for the life of the process, even those of an ended lane: a counter must not go back.
public final class MetricRegistry: Sendable {
  /// Reads the numbers with their labels: one number, or those of a set.
  private typealias Series = @Sendable () -> [(labels: [String], reading: MetricReading)]

  private struct Family: Sendable {
    let kind: String
    let help: String
    let labels: [String]
    let bounds: [Double]
    var series: [Series] = []
  }

  private let families = Mutex<[String: Family]>([:])
  /// The cells that several callers share, by the metric's name and the labels' values.
  private let sharedCells = Mutex<[[String]: any MetricCell]>([:])

  /// Makes a registry without metrics.
  public init() {}

  /// Makes a cell of a metric.
  ///
  /// - Parameter labels: the labels' values, in the order of the metric's declaration.
  public func make<Cell>(_ metric: Metric<Cell>, _ labels: String...) -> Cell {
    let cell = Cell(buckets: metric.buckets)
    add(metric, labels) { cell.reading }
    return cell
  }

  /// The process-wide cell of a metric, for facts that all lanes share and that must not be summed.
  ///
  /// - Parameter labels: the labels' values, in the order of the metric's declaration.
  public func shared<Cell>(_ metric: Metric<Cell>, _ labels: String...) -> Cell {
    sharedCells.withLock { cells in
      if let cell = cells[[metric.name] + labels] as? Cell { return cell }
      let cell = Cell(buckets: metric.buckets)
      add(metric, labels) { cell.reading }
      cells[[metric.name] + labels] = cell
      return cell
    }
  }

  /// Shows a counter or gauge that is kept elsewhere.
  ///
  /// - Parameters:
  ///   - labels: the labels' values, in the order of the metric's declaration.
  ///   - read: answers the number when the metrics are read, on the reader's thread.
  public func show<Cell>(_ metric: Metric<Cell>, _ labels: String..., read: @escaping @Sendable () -> Double) {
    precondition(Cell.kind != "histogram", "a histogram is more than one number: \(metric.name)")
    add(metric, labels) { MetricReading(read()) }
  }

  /// Makes cells of a metric whose labels are known only at run time.
  public func makeSet<Cell>(_ metric: Metric<Cell>) -> MetricSet<Cell> {
    let set = MetricSet<Cell>()
    add(metric) { set.readings }
    return set
  }

  /// Shows gauges that are kept elsewhere and appear and disappear with their labels.
  ///
  /// - Parameter read: answers them when the metrics are read, on the reader's thread.
  public func showSet(_ metric: Metric<Gauge>, read: @escaping @Sendable () -> [(labels: [String], value: Double)]) {
    add(metric) { read().map { ($0.labels, MetricReading($0.value)) } }
  }

  private func add<Cell>(_ metric: Metric<Cell>, _ labels: [String], _ read: @escaping @Sendable () -> MetricReading) {
    precondition(labels.count == metric.labels.count, "the metric \(metric.name) has the labels \(metric.labels)")
    add(metric) { [(labels, read())] }
  }

  private func add<Cell>(_ metric: Metric<Cell>, _ series: @escaping Series) {
    families.withLock { families in
      let isHistogram = Cell.kind == "histogram"
      let declared = Family(kind: Cell.kind, help: metric.help, labels: metric.labels, bounds: isHistogram ? metric.buckets.bounds : [])
      var family = families[metric.name] ?? declared
      precondition(
        family.kind == declared.kind && family.labels == declared.labels && family.bounds == declared.bounds,
        "two metrics have the name \(metric.name)")
      family.series.append(series)
      families[metric.name] = family
    }
  }

  /// The sum of a metric over all its cells and labels; nil if it has no cell.
  public func sum<Cell>(of metric: Metric<Cell>) -> Double? { readings(of: metric)?.reduce(0) { $0 + $1.reading.value } }

  /// The numbers of a gauge, each with its labels' values.
  public func values(of metric: Metric<Gauge>) -> [(labels: [String], value: Double)] {
    readings(of: metric)?.map { ($0.labels, $0.reading.value) } ?? []
  }

  private func readings<Cell>(of metric: Metric<Cell>) -> [(labels: [String], reading: MetricReading)]? {
    families.withLock { $0[metric.name] }?.series.flatMap { $0() }
  }

  /// The text for Prometheus, in its text format 0.0.4.
  public var text: String {
    let families = families.withLock { $0 }
    var text = ""
    for (name, family) in families.sorted(by: { $0.key < $1.key }) {
      text += "# HELP \(name) \(PrometheusText.escaped(family.help, quotes: false))\n# TYPE \(name) \(family.kind)\n"
      var sums: [[String]: MetricReading] = [:]
      var order: [[String]] = []
      for (labels, reading) in family.series.flatMap({ $0() }) {
        if sums[labels] == nil { order.append(labels) }
        sums[labels, default: MetricReading(0, counts: reading.counts.map { _ in 0 })] += reading
      }
      for labels in order {
        guard let reading = sums[labels] else { continue }
        let pairs = Array(zip(family.labels, labels))
        if family.kind == "histogram" {
          text += PrometheusText.histogram(name, pairs, family.bounds, reading)
        } else {
          text += "\(name)\(PrometheusText.labels(pairs)) \(PrometheusText.number(reading.value))\n"
        }
      }
    }
    return text
  }
}
