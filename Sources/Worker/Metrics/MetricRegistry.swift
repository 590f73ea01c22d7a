import Synchronization

/// All cells of the process, and their text for Prometheus.
///
/// Cells stay for the life of the process, also those of a lane that has ended: a counter must not go back.
public final class MetricRegistry: Sendable {
  private struct Series: Sendable {
    let labels: [String]
    let read: @Sendable () -> MetricReading
  }

  private struct Family: Sendable {
    let kind: String
    let help: String
    let labels: [String]
    let bounds: [Double]
    var series: [Series] = []
  }

  private let families = Mutex<[String: Family]>([:])

  /// Makes a registry with nothing in it.
  public init() {}

  /// Makes a cell of a metric.
  ///
  /// - Parameter labels: the labels' values, in the order of the metric's declaration.
  public func make<Cell>(_ metric: Metric<Cell>, _ labels: String...) -> Cell {
    let cell = Cell(buckets: metric.buckets)
    add(metric, labels) { cell.reading }
    return cell
  }

  /// Shows a counter or gauge that is kept elsewhere.
  ///
  /// - Parameters:
  ///   - labels: the labels' values, in the order of the metric's declaration.
  ///   - read: gives the number whenever the metrics are asked for, on the asker's thread.
  public func show<Cell>(_ metric: Metric<Cell>, _ labels: String..., read: @escaping @Sendable () -> Double) {
    precondition(Cell.kind != "histogram", "a histogram is more than one number: \(metric.name)")
    add(metric, labels) { MetricReading(read()) }
  }

  private func add<Cell>(_ metric: Metric<Cell>, _ labels: [String], _ read: @escaping @Sendable () -> MetricReading) {
    precondition(labels.count == metric.labels.count, "the metric \(metric.name) has the labels \(metric.labels)")
    families.withLock { families in
      let isHistogram = Cell.kind == "histogram"
      let declared = Family(kind: Cell.kind, help: metric.help, labels: metric.labels, bounds: isHistogram ? metric.buckets.bounds : [])
      var family = families[metric.name] ?? declared
      precondition(
        family.kind == declared.kind && family.labels == declared.labels && family.bounds == declared.bounds,
        "two metrics have the name \(metric.name)")
      family.series.append(Series(labels: labels, read: read))
      families[metric.name] = family
    }
  }

  /// What Prometheus reads: its text format, version 0.0.4.
  public var text: String {
    let families = families.withLock { $0 }
    var text = ""
    for (name, family) in families.sorted(by: { $0.key < $1.key }) {
      text += "# HELP \(name) \(PrometheusText.escaped(family.help, quotes: false))\n# TYPE \(name) \(family.kind)\n"
      var sums: [[String]: MetricReading] = [:]
      var order: [[String]] = []
      for series in family.series {
        let reading = series.read()
        if sums[series.labels] == nil { order.append(series.labels) }
        sums[series.labels, default: MetricReading(0, counts: reading.counts.map { _ in 0 })] += reading
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
