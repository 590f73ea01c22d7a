import EventLoop
import Glibc
import JSON
import Kafka
import Notifications

/// Writes records into a topic again, requests with their origin.
///
/// Unless their order does not matter, records of one partition keep their order in the target partition without a gap. If Kafka refuses one, the producer fails for good
/// instead of writing the next. Only one produce request waits for an answer, since a broker that does not know the producer yet would
/// accept the second after it has refused the first. A later process continues after the records that are written.
final class Republisher: ProducerHandler {
  /// Called during `write` for a record that is too large for Kafka now, with its opaque. It is skipped.
  var onTooLarge: ((UInt64) -> Void)?
  /// Called for each record when Kafka has it, in the order of each partition.
  var onWritten: ((DeliveryReport) -> Void)?
  /// Called once with the error that ends the writing. Nothing more is accepted or reported.
  var onFailure: ((KafkaError) -> Void)?
  /// The headers of the next record, emptied by `write`.
  let headers = RecordHeaders()

  /// The bytes around one record in a batch, by librdkafka's estimate.
  static let batchOverhead = 588

  private let cluster: String
  private let producer: Producer
  private let topic: ProducerTopic
  private var json = JSONWriter()
  private var failure: KafkaError?
  /// The bytes of headers that were written since no record was in flight.
  private var headerBytes = 0

  /// - Parameters:
  ///   - cluster: the cluster's name for origins.
  ///   - topic: the requests, with origins; other topics without.
  ///   - batchBytes: the brokers' limit of a batch of the topic.
  ///   - maximumBytes: the most bytes of keys and values in flight.
  ///   - isInOrder: whether order and number of the records matter.
  init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, cluster: String, topic: String, batchBytes: Int, maximumBytes: Int = 64 << 20,
    isInOrder: Bool = true
  ) throws(KafkaError) {
    self.cluster = cluster
    var options = Producer.Options()
    options.lingerMilliseconds = 20
    options.maximumRecords = 1_000_000
    options.maximumBytes = maximumBytes
    options.batchBytes = batchBytes
    options.givesAgain = !isInOrder
    let reports = WeakProducerHandler()
    var inOrder = ["enable.gapless.guarantee": "true", "max.in.flight.requests.per.connection": "1"]
    // A record that the broker refuses would end the writing, and again after each continuation. So it is refused here.
    if let largest = kafka.largestRecord(batchBytes: batchBytes) { inOrder["message.max.bytes"] = String(largest) }
    producer = try Producer(on: loop, isInOrder ? kafka.merging(inOrder) : kafka, options, handler: reports)
    self.topic = try producer.topic(topic)
    reports.owner = self
  }

  /// Accepted records that are not in Kafka yet.
  private var inFlight: Int { producer.inFlight }

  /// At least the bytes of their keys, values and headers. Refused records leave header bytes behind, which would hold the run for ever.
  var bytesInFlight: Int { inFlight == 0 ? 0 : producer.bytesInFlight + headerBytes }

  /// Begins the next record's headers with those of a consumed record, and replaces its origin.
  ///
  /// - Parameter source: its first place: where it lies, or its own origin.
  func begin(_ record: RecordView, from source: SourceCoordinates, why purpose: Origin.Purpose, isUnfinished: Bool = false) {
    headers.copy(from: record)
    // Each by its own spelling, since librdkafka compares the case too.
    record.forEachHeader { name, value in
      headerBytes += strlen(name) + (value?.count ?? 0)
      if RequestHeader.named(name) == .origin { headers.remove(String(cString: name)) }
    }
    headers.remove(ReplayHeader.name.description)
    end(from: source, why: purpose, isUnfinished: isUnfinished)
  }

  /// Begins the next record's headers with those of a stored record.
  func begin(_ record: StoredRecord) {
    for header in record.headers {
      headerBytes += header.name.count + (header.value?.count ?? 0)
      header.name.withUnsafeBufferPointer { name in
        guard let name = name.baseAddress else { return }
        withOptionalBytes(header.value) { headers.append(name, $0) }
      }
    }
  }

  /// Adds the origin to the next record's headers.
  ///
  /// - Parameter source: the first place. It must be in the target partition, or the workers reject it.
  func end(from source: SourceCoordinates, why purpose: Origin.Purpose, isUnfinished: Bool = false) {
    json.reset()
    Origin.write(cluster: cluster, source, why: purpose, isUnfinished: isUnfinished, to: &json)
    json.withUnsafeBytes { headers.append(RequestHeader.origin.name, $0) }
  }

  /// Writes a record with the headers that were begun. A record that is too large ends the writing, unless `onTooLarge` is set.
  ///
  /// - Parameter partition: the target; nil lets the key decide, or chance without a key.
  func write(key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, to partition: Int32?, opaque: UInt64) {
    guard failure == nil else { return headers.removeAll() }
    switch producer.produce(topic, partition: partition, key: key, value: value, headers: headers, opaque: opaque) {
    case .taken: break
    case .full:
      // The caller waits long before the queue is full, unless the user's settings make the queue too small.
      fail(KafkaError(.queueFull, "write to \(topic.name)", message: "the client takes too little at a time: see --kafka.NAME VALUE"))
    case .refused(let error):
      if error.code == .messageTooLarge, let onTooLarge {
        headers.removeAll()
        onTooLarge(opaque)
      } else {
        fail(error)
      }
    }
  }

  /// Waits until Kafka has all accepted records.
  func finish() async throws(KafkaError) {
    while failure == nil, inFlight > 0 { _ = await producer.flush(withinMilliseconds: 1_000) }
    if let failure { throw failure }
  }

  /// Waits until Kafka has all accepted records, and closes. After a failure a continuation finds the records that have arrived.
  func close(withinMilliseconds milliseconds: Int = 10_000) async {
    await producer.close(withinMilliseconds: failure == nil ? milliseconds : 1_000)
  }

  func producerDelivered(_ reports: [DeliveryReport]) {
    if inFlight == 0 { headerBytes = 0 }
    for report in reports where failure == nil {
      if let error = report.error { fail(error) } else { onWritten?(report) }
    }
  }

  func producerHasRoom() {}
  func producerFailed(_ error: KafkaError) { if error.isFatal { fail(error) } }

  private func fail(_ error: KafkaError) {
    guard failure == nil else { return }
    // librdkafka reports the broker's reason for the gap only in words.
    let isOfSize = error.message.contains(KafkaError(.messageTooLarge, "").message)
    let error = isOfSize ? KafkaError(.messageTooLarge, "write to \(topic.name)", isFatal: error.isFatal) : error
    failure = error
    onFailure?(error)
  }
}

extension KafkaConfiguration {
  /// The largest record of a topic in bytes; nil if compression decides, or if the user has set it.
  fileprivate func largestRecord(batchBytes: Int) -> Int? {
    let isCompressed = ["compression.codec", "compression.type"].contains { properties[$0] ?? "none" != "none" }
    guard !isCompressed, properties["message.max.bytes"] == nil, batchBytes < WriteLimits.standardBatchBytes else { return nil }
    // librdkafka accepts no smaller limit.
    return max(1_000, batchBytes - Republisher.batchOverhead)
  }
}
