import EventLoop
import Kafka
import Notifications

/// Writes the states of letters. Loop-confined.
///
/// A round has fewer letters than the producer may have in flight, so its queue is never full.
final class LetterStateWriter {
  /// Called with the number of each state that Kafka has.
  var onWritten: ((UInt64) -> Void)?
  /// Called with each failure.
  var onFailure: ((KafkaError) -> Void)?
  private let producer: Producer
  private let topic: ProducerTopic
  private let headers = RecordHeaders()

  /// - Parameters:
  ///   - topic: the dead letters.
  ///   - batchBytes: the brokers' limit of a batch of that topic.
  init(on loop: EventLoop, _ kafka: KafkaConfiguration, topic: String, batchBytes: Int) throws(KafkaError) {
    var options = Producer.Options()
    options.lingerMilliseconds = 20
    options.batchBytes = batchBytes
    // Neither the order of states nor their number matters.
    options.givesAgain = true
    let reports = Reports()
    producer = try Producer(on: loop, kafka, options, handler: reports)
    self.topic = try producer.topic(topic)
    reports.owner = self
  }

  /// The producer keeps its handler while it is open, and this object keeps the producer.
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

  /// Writes a state.
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

  /// Waits until Kafka has all states, and closes.
  func close(withinMilliseconds milliseconds: Int) async { await producer.close(withinMilliseconds: milliseconds) }
}
