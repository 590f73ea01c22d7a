/// The report on one produced record.
public struct DeliveryReport: Sendable {
  /// The opaque of `produce`.
  public let opaque: UInt64
  /// The record's partition; -1 if it got none.
  public let partition: Int32
  /// Its offset; negative if it is not in the topic, is `unconfirmed`, or was sent with `acks=0`.
  public let offset: Int64
  /// Why it is not in the topic; nil if it is there durably (`acks=all`).
  public let failure: KafkaError.Code?

  /// The failure as an error; nil if there is none.
  public var error: KafkaError? { failure.map { KafkaError($0, "produce a record") } }
}

/// Gets a producer's events, always on the loop.
public protocol ProducerHandler: AnyObject {
  /// Records are reported, in batches. Each accepted record gets exactly one report.
  func producerDelivered(_ reports: [DeliveryReport])

  /// `produce` answered `full` before; now the queue is below half of its limits.
  func producerHasRoom()

  /// An error occurred that librdkafka usually recovers from. `isFatal` asks for a new producer.
  func producerFailed(_ error: KafkaError)
}

/// A handler that passes all on to an owner which keeps the producer: the producer keeps its handler while it is open.
public final class WeakProducerHandler: ProducerHandler {
  /// The owner; nil before it is complete.
  public weak var owner: (any ProducerHandler)?

  /// Makes a handler.
  public init() {}

  /// Passes the reports on.
  public func producerDelivered(_ reports: [DeliveryReport]) { owner?.producerDelivered(reports) }
  /// Passes it on.
  public func producerHasRoom() { owner?.producerHasRoom() }
  /// Passes the error on.
  public func producerFailed(_ error: KafkaError) { owner?.producerFailed(error) }
}
