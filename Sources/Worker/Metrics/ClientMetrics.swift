public import Kafka
public import Notifications
import Store

/// A lane's metrics of its Redis and Kafka clients, in either stage.
public final class ClientMetrics: Sendable {
  private let redis: [String: Counter]
  private let kafka: MetricSet<Counter>
  /// By the number of the outcome; nil for what no event tells.
  private let events: [Counter?]
  private let eventBytes: Counter
  /// The metrics of ``LaneProducers/prompt``.
  let prompt: ProducerMetrics
  /// The metrics of ``LaneProducers/patient``.
  let patient: ProducerMetrics

  /// Makes the lane's cells.
  ///
  /// - Parameter lane: the lane's name, such as `transform-0`.
  public init(_ registry: MetricRegistry, lane: String) {
    redis = Dictionary(
      uniqueKeysWithValues: Shards.errorKinds.map { ($0, registry.make(MetricNames.redisErrors, MetricLabel.snakeCase($0))) })
    kafka = registry.makeSet(MetricNames.kafkaErrors)
    events = Outcome.allCases.map { outcome in
      outcome.cloudEventsType == nil ? nil : registry.make(MetricNames.events, MetricLabel.snakeCase(outcome.name))
    }
    eventBytes = registry.make(MetricNames.eventBytes)
    prompt = ProducerMetrics(registry, lane, "prompt")
    patient = ProducerMetrics(registry, lane, "patient")
  }

  /// Counts a failed call to Redis, or a failed attempt to connect.
  public func redisFailed(_ kind: String) { redis[kind]?.increment() }

  /// Counts an error of a Kafka client.
  public func kafkaFailed(_ code: KafkaError.Code) { kafka.increment(code.label) }

  /// Counts the reports of failed records.
  public func count(_ reports: [DeliveryReport]) {
    for report in reports { if let failure = report.failure { kafkaFailed(failure) } }
  }

  /// Counts an event that Kafka's queue has accepted.
  public func emitted(_ type: Outcome, bytes: Int) {
    events[type.rawValue]?.increment()
    eventBytes.increment(by: bytes)
  }
}

/// The metrics of one producer.
public struct ProducerMetrics: Sendable {
  private let cells: [Gauge]

  /// Makes the cells of a lane's producer, called `prompt` or `patient`.
  public init(_ registry: MetricRegistry, _ lane: String, _ producer: String) {
    cells = [
      MetricNames.producerRecords, MetricNames.producerBytes, MetricNames.producerRecordsLimit, MetricNames.producerBytesLimit,
      MetricNames.producerSeconds,
    ].map { registry.make($0, MetricLabel.snakeCase(lane), producer) }
  }

  /// Shows the queue of a producer.
  ///
  /// - Parameter age: the least time that its oldest record has waited, in milliseconds.
  func show(_ producer: Producer, age: Int64) {
    let numbers = [producer.inFlight, producer.bytesInFlight, producer.maximumInFlight, producer.maximumBytesInFlight].map { Double($0) }
    for (cell, number) in zip(cells, numbers + [Double(age) / 1000]) { cell.set(number) }
  }
}

extension KafkaError.Code {
  /// The name as a label: `msg_timed_out` is librdkafka's `_MSG_TIMED_OUT`.
  public var label: String { String(name.drop { $0 == "_" }).lowercased() }
}
