import EventLoop
public import Kafka
public import Notifications

/// A lane's metrics of its Redis and Kafka clients, in either stage.
public final class ClientMetrics: Sendable {
  private let redis: [String: Counter]
  private let kafka: CounterSet
  /// By the number of the outcome; nil for what no event tells.
  private let events: [Counter?]
  private let eventBytes: Counter
  /// The metrics of ``LaneProducers/prompt``.
  let prompt: ProducerMetrics
  /// The metrics of ``LaneProducers/patient``.
  let patient: ProducerMetrics

  /// Makes the lane's cells.
  ///
  /// - Parameters:
  ///   - lane: the lane's name, such as `transform-0`.
  ///   - redisErrors: the kinds of Redis errors that the lane counts.
  public init(_ registry: MetricRegistry, lane: String, redisErrors: [String]) {
    redis = Dictionary(uniqueKeysWithValues: redisErrors.map { ($0, registry.make(MetricNames.redisErrors, MetricLabel.snakeCase($0))) })
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
  private let records: Gauge
  private let bytes: Gauge
  private let recordsLimit: Gauge
  private let bytesLimit: Gauge
  private let seconds: Gauge

  /// Makes the cells of a producer of a lane.
  public init(_ registry: MetricRegistry, _ lane: String, _ producer: String) {
    // Labels follow the spelling of metric names.
    let lane = MetricLabel.snakeCase(lane)
    records = registry.make(MetricNames.producerRecords, lane, producer)
    bytes = registry.make(MetricNames.producerBytes, lane, producer)
    recordsLimit = registry.make(MetricNames.producerRecordsLimit, lane, producer)
    seconds = registry.make(MetricNames.producerSeconds, lane, producer)
    bytesLimit = registry.make(MetricNames.producerBytesLimit, lane, producer)
  }

  /// Shows how full the producer is.
  ///
  /// - Parameter age: of the oldest record in flight, in milliseconds.
  public func show(_ producer: Producer, age: Int64) {
    records.set(producer.inFlight)
    bytes.set(producer.bytesInFlight)
    recordsLimit.set(producer.maximumInFlight)
    bytesLimit.set(producer.maximumBytesInFlight)
    seconds.set(Double(age) / 1000)
  }
}

extension KafkaError.Code {
  /// The name as a label: `msg_timed_out` is librdkafka's `_MSG_TIMED_OUT`.
  public var label: String { String(name.drop { $0 == "_" }).lowercased() }
}
