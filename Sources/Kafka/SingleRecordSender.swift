import CRdKafka
import EventLoop

/// Sends records of a refused batch once more, each in a batch of its own.
///
/// Kafka's limit (`max.message.bytes`) applies to a batch. Only a record that is refused alone is too large itself.
final class SingleRecordSender {
  private let producer: Producer
  private let headers = RecordHeaders()
  private var records: [UInt64: (opaque: UInt64, bytes: Int)] = [:]
  private var lastNumber: UInt64 = 0

  /// - Parameters:
  ///   - options: those of the producer whose records it sends.
  ///   - onReports: gets the reports with that producer's opaques, and the bytes of each record.
  init(
    on loop: EventLoop, _ configuration: KafkaConfiguration, _ options: Producer.Options, onLog: ((KafkaLogLine) -> Void)?,
    onFailure: @escaping (KafkaError) -> Void, onReports: @escaping ([(report: DeliveryReport, bytes: Int)]) -> Void
  ) throws(KafkaError) {
    var options = options
    // The other producer counts these records too, so its limits hold.
    (options.maximumRecords, options.maximumBytes) = (.max, .max)
    options.isAlone = true
    let reports = Reports(onFailure)
    producer = try Producer(
      on: loop, configuration.merging(["batch.num.messages": "1", "linger.ms": "0"]), options, handler: reports)
    producer.onLog = onLog
    reports.onReports = { [unowned self] in onReports(own($0)) }
  }

  private final class Reports: ProducerHandler {
    var onReports: (([DeliveryReport]) -> Void)?
    private let onFailure: (KafkaError) -> Void

    init(_ onFailure: @escaping (KafkaError) -> Void) { self.onFailure = onFailure }

    func producerDelivered(_ reports: [DeliveryReport]) { onReports?(reports) }
    func producerHasRoom() {}
    func producerFailed(_ error: KafkaError) { onFailure(error) }
  }

  /// Copies a record and sends it. Its timestamp is new, since librdkafka does not report that of a refused record.
  ///
  /// - Returns: why it was not accepted; nil if it was, and its report will come.
  func send(_ message: UnsafePointer<rd_kafka_message_t>) -> KafkaError? {
    let record = message.pointee
    headers.copy(from: message)
    let topic: ProducerTopic
    do throws(KafkaError) { topic = try producer.topic(String(cString: rd_kafka_topic_name(record.rkt))) } catch { return error }
    lastNumber += 1
    let outcome = producer.produce(
      topic, partition: record.partition, key: record.keyBytes, value: record.valueBytes, headers: headers, opaque: lastNumber)
    switch outcome {
    case .taken:
      records[lastNumber] = (UInt64(UInt(bitPattern: record._private)), record.len + record.key_len)
      return nil
    case .full: return KafkaError(.queueFull, "produce to \(topic.name)")
    case .refused(let error): return error
    }
  }

  private func own(_ reports: [DeliveryReport]) -> [(report: DeliveryReport, bytes: Int)] {
    reports.compactMap { report in
      guard let record = records.removeValue(forKey: report.opaque) else { return nil }
      let own = DeliveryReport(opaque: record.opaque, partition: report.partition, offset: report.offset, failure: report.failure)
      return (own, record.bytes)
    }
  }

  /// The topics that refuse every record, even sent alone.
  func refusingTopics(at milliseconds: Int64) -> [TopicRefusals.Lasting] { producer.refusingTopics(at: milliseconds) }

  /// Drops unacknowledged records.
  func purge() { producer.purge() }

  /// Closes it after the other producer has no record in flight.
  func close(withinMilliseconds milliseconds: Int) async { await producer.close(withinMilliseconds: milliseconds) }
}
