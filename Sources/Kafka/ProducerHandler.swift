/// What became of one produced record.
public struct DeliveryReport: Sendable {
  /// What was given to `produce`.
  public let opaque: UInt64
  /// The partition in which it is; -1 when it got none.
  public let partition: Int32
  /// Its offset; negative when it is not in the topic, or `unconfirmed`, or `acks=0` asks for none.
  public let offset: Int64
  /// Why it is not in the topic; nil when it is there for good (`acks=all`).
  public let failure: KafkaError.Code?

  /// The failure as an error; nil when there is none.
  public var error: KafkaError? { failure.map { KafkaError($0, "produce a record") } }
}

/// What a producer tells its owner, always on the loop.
public protocol ProducerHandler: AnyObject {
  /// Reports of records, in batches; each record that was taken gets exactly one.
  func producerDelivered(_ reports: [DeliveryReport])

  /// After `produce` has said `full`: half of the room is free again.
  func producerHasRoom()

  /// Something went wrong that librdkafka mostly mends by itself; `isFatal` asks for a new producer.
  func producerFailed(_ error: KafkaError)
}

/// A handler that does nothing: for a producer that is given nothing, or only what `Producer.send` waits for.
public final class SilentProducerHandler: ProducerHandler {
  /// One for a producer.
  public init() {}

  /// Tells nobody.
  public func producerDelivered(_ reports: [DeliveryReport]) {}
  /// Tells nobody.
  public func producerHasRoom() {}
  /// Tells nobody.
  public func producerFailed(_ error: KafkaError) {}
}
