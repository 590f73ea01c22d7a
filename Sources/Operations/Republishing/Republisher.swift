import EventLoop
import JSON
import Kafka
import Notifications

/// Writes records of `requests` into that topic again, with where they were first and why they come. Loop-confined.
///
/// Records of one partition that go to one partition keep their order, and none of them is left out: the producer fails for good rather
/// than write what follows a record that Kafka did not take. One request waits for a broker's answer at a time, since a broker that does not
/// know the producer yet would take the second when it has refused the first; who goes on later goes on behind what is written.
final class Republisher {
  /// Told during `write` of a record that is too large for Kafka by now, by its opaque: it is left out.
  var onTooLarge: ((UInt64) -> Void)?
  /// Told of each record when Kafka has it, in the order of each partition.
  var onWritten: ((DeliveryReport) -> Void)?
  /// Told once of what ends the writing: nothing more is taken, and nothing more is reported.
  var onFailure: ((KafkaError) -> Void)?
  /// Told when there is room again, after `write` has said that there was none.
  var onRoom: (() -> Void)?
  /// The headers of the record that is written next, emptied by `write`.
  let headers = RecordHeaders()

  /// What a batch and librdkafka's estimate have around one record, in bytes.
  static let batchOverhead = 588

  private let cluster: String
  private let producer: Producer
  private let topic: ProducerTopic
  private var json = JSONWriter()
  private var failure: KafkaError?

  /// - Parameters:
  ///   - cluster: the name of the cluster, which the origins give.
  ///   - topic: where to: the requests, with an origin; other topics without.
  ///   - batchBytes: what the brokers take as one batch of the topic.
  ///   - maximumBytes: of keys and values that may be on their way to Kafka.
  init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, cluster: String, topic: String, batchBytes: Int = WriteLimits.standardBatchBytes,
    maximumBytes: Int = 64 << 20
  ) throws(KafkaError) {
    self.cluster = cluster
    var options = Producer.Options()
    options.lingerMilliseconds = 20
    options.maximumRecords = 1_000_000
    options.maximumBytes = maximumBytes
    options.batchBytes = batchBytes
    let reports = Reports()
    var inOrder = ["enable.gapless.guarantee": "true", "max.in.flight.requests.per.connection": "1"]
    // A record that the broker refuses would end the writing, and again when it goes on. So it is refused here.
    if let largest = kafka.largestRecord(batchBytes: batchBytes) { inOrder["message.max.bytes"] = String(largest) }
    producer = try Producer(on: loop, kafka.merging(inOrder), options, handler: reports)
    self.topic = try producer.topic(topic)
    reports.owner = self
  }

  /// The producer keeps its handler as long as it is open, and this object keeps the producer.
  private final class Reports: ProducerHandler {
    weak var owner: Republisher?

    func producerDelivered(_ reports: [DeliveryReport]) { owner?.delivered(reports) }
    func producerHasRoom() { owner?.onRoom?() }
    func producerFailed(_ error: KafkaError) { if error.isFatal { owner?.fail(error) } }
  }

  /// Records that were taken and are not in Kafka yet.
  var inFlight: Int { producer.inFlight }

  /// Bytes of their keys and values.
  var bytesInFlight: Int { producer.bytesInFlight }

  /// Starts the next record's headers with those of a record that was read, with its first place and why it comes in place of an origin
  /// that it has.
  ///
  /// - Parameter source: where it was first: where it lies, or what its own origin says.
  func begin(_ record: RecordView, from source: SourceCoordinates, why purpose: Origin.Purpose, isUnfinished: Bool = false) {
    headers.copy(from: record)
    // Each by its own name: librdkafka compares the case, too.
    record.forEachHeader { name, _ in if RequestHeader.named(name) == .origin { headers.remove(String(cString: name)) } }
    headers.remove(ReplayHeader.name.description)
    end(from: source, why: purpose, isUnfinished: isUnfinished)
  }

  /// Starts the next record's headers with those of a record that was copied, as they are.
  func begin(_ record: StoredRecord) {
    for header in record.headers {
      header.name.withUnsafeBufferPointer { name in
        guard let name = name.baseAddress else { return }
        withOptionalBytes(header.value) { headers.append(name, $0) }
      }
    }
  }

  /// Ends the next record's headers, which were filled before without an origin, with one.
  ///
  /// - Parameter source: where it was first: in the partition that the record is written to, or the workers reject it.
  func end(from source: SourceCoordinates, why purpose: Origin.Purpose, isUnfinished: Bool = false) {
    json.reset()
    Origin.write(cluster: cluster, source, why: purpose, isUnfinished: isUnfinished, to: &json)
    json.withUnsafeBytes { headers.append(RequestHeader.origin.name, $0) }
  }

  /// Writes a record with the headers that were begun.
  ///
  /// - Parameter partition: where to; nil lets the key decide, or chance where there is none.
  /// - Returns: false when there is no room: the headers stay, and it may be said again after `onRoom`. What is too large fails all, unless
  ///   `onTooLarge` takes it.
  func write(key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, to partition: Int32?, opaque: UInt64) -> Bool {
    guard failure == nil else { return true }
    switch producer.produce(topic, partition: partition, key: key, value: value, headers: headers, opaque: opaque) {
    case .taken: return true
    case .full: return false
    case .refused(let error):
      if error.code == .messageTooLarge, let onTooLarge {
        headers.removeAll()
        onTooLarge(opaque)
      } else {
        fail(error)
      }
      return true
    }
  }

  /// Waits until Kafka has all that was taken, and ends.
  func close(withinMilliseconds milliseconds: Int) async { await producer.close(withinMilliseconds: milliseconds) }

  private func delivered(_ reports: [DeliveryReport]) {
    for report in reports where failure == nil {
      if let error = report.error { fail(error) } else { onWritten?(report) }
    }
  }

  private func fail(_ error: KafkaError) {
    guard failure == nil else { return }
    // librdkafka tells the broker's reason for the gap only in words.
    let isOfSize = error.message.contains(KafkaError(.messageTooLarge, "").message)
    let error = isOfSize ? KafkaError(.messageTooLarge, "write to \(topic.name)", isFatal: error.isFatal) : error
    failure = error
    onFailure?(error)
  }
}

extension KafkaConfiguration {
  /// The largest record that a topic takes, in bytes; nil where that is not known before it is sent, since it is compressed, or where the
  /// user has set it.
  fileprivate func largestRecord(batchBytes: Int) -> Int? {
    let isCompressed = ["compression.codec", "compression.type"].contains { properties[$0] ?? "none" != "none" }
    guard !isCompressed, properties["message.max.bytes"] == nil, batchBytes < WriteLimits.standardBatchBytes else { return nil }
    // librdkafka takes no smaller one.
    return max(1_000, batchBytes - Republisher.batchOverhead)
  }
}
