import EventLoop
import Kafka
import Notifications

/// Writes what was done with letters behind them. Loop-confined.
///
/// No more may be in flight than a round of letters has, so that there is always room.
final class LetterStateWriter {
  /// Told of each state that Kafka has, by its number.
  var onWritten: ((UInt64) -> Void)?
  /// Told of what could not be written.
  var onFailure: ((KafkaError) -> Void)?
  private let producer: Producer
  private let topic: ProducerTopic
  private let headers = RecordHeaders()

  /// - Parameters:
  ///   - topic: the dead letters.
  ///   - batchBytes: what the brokers take as one batch of that topic.
  init(on loop: EventLoop, _ kafka: KafkaConfiguration, topic: String, batchBytes: Int) throws(KafkaError) {
    var options = Producer.Options()
    options.lingerMilliseconds = 20
    options.batchBytes = batchBytes
    // The order of states and their number do not matter.
    options.givesAgain = true
    let reports = Reports()
    producer = try Producer(on: loop, kafka, options, handler: reports)
    self.topic = try producer.topic(topic)
    reports.owner = self
  }

  /// The producer keeps its handler as long as it is open, and this object keeps the producer.
  private final class Reports: ProducerHandler {
    weak var owner: LetterStateWriter?

    func producerDelivered(_ reports: [DeliveryReport]) {
      for report in reports {
        if let error = report.error { owner?.onFailure?(error) } else { owner?.onWritten?(report.opaque) }
      }
    }
    func producerHasRoom() {}
    func producerFailed(_ error: KafkaError) { if error.isFatal { owner?.onFailure?(error) } }
  }

  /// Writes one.
  func write(_ state: LetterState, opaque: UInt64) {
    for (name, value) in state.headers { headers.append(name, value) }
    switch producer.produce(topic, partition: state.letter.partition, key: nil, value: nil, headers: headers, opaque: opaque) {
    case .taken: break
    case .full:
      headers.removeAll()
      onFailure?(KafkaError(.queueFull, "write what was done with a dead letter", message: ""))
    case .refused(let error):
      headers.removeAll()
      onFailure?(error)
    }
  }

  /// Waits until Kafka has all, and ends.
  func close(withinMilliseconds milliseconds: Int) async { await producer.close(withinMilliseconds: milliseconds) }
}
