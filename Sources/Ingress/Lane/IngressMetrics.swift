import HTTP
import Notifications
import Synchronization
package import Worker

/// The metrics of one ingress lane.
package final class IngressMetrics: Sendable {
  let seconds: Histogram
  let connections: Gauge
  let waiting: Gauge
  let pauses: Counter
  let producer: ProducerMetrics
  let kafkaErrors: MetricSet<Counter>
  private let registry: MetricRegistry
  /// The counters by status and application.
  private let answers = Mutex<[Name: [Int: Counter]]>([:])
  /// Further applications count as `other`.
  private static let maximum = 100

  /// Makes the lane's cells.
  ///
  /// - Parameter lane: the lane's name in labels.
  package init(_ registry: MetricRegistry, lane: String = "ingress-0") {
    self.registry = registry
    seconds = registry.make(MetricNames.ingressSeconds)
    connections = registry.make(MetricNames.ingressConnections)
    waiting = registry.make(MetricNames.ingressWaiting)
    pauses = registry.make(MetricNames.ingressPauses)
    producer = ProducerMetrics(registry, lane, "prompt")
    kafkaErrors = registry.makeSet(MetricNames.kafkaErrors)
  }

  /// Counts answers.
  ///
  /// - Parameter application: nil for a request that was refused.
  func count(_ status: HTTPStatus, _ application: Name?, by number: Int = 1) {
    answers.withLock { answers in
      let isKnown = application == nil || answers[application ?? ""] != nil || answers.count < Self.maximum
      let label = isKnown ? application ?? "none" : "other"
      let counter =
        answers[label]?[status.rawValue] ?? registry.shared(MetricNames.ingressRequests, "\(status.rawValue)", label.text)
      answers[label, default: [:]][status.rawValue] = counter
      counter.increment(by: number)
    }
  }
}
