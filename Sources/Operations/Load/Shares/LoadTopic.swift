import EventLoop
import Kafka
import Worker

/// Reads and writes the records of one run in the topic `load`. Loop-confined.
final class LoadTopic: ConsumerHandler {
  private let loop: EventLoop
  private let place: LoadPlace
  private let run: String
  private let onRecord: (LoadRecord.Reading) -> Void
  private var consumer: Consumer?
  private var producer: Producer?
  private var topic: ProducerTopic?
  /// The offset of the next record to read.
  private(set) var position: Int64 = 0
  /// The keys of the run that have records.
  private(set) var keys: Set<[UInt8]> = []

  /// How long Kafka may refuse a record, in milliseconds. A run outlives an outage of Kafka that is shorter.
  private static let messageTimeoutMilliseconds = 300_000

  init(on loop: EventLoop, _ place: LoadPlace, run: String, onRecord: @escaping (LoadRecord.Reading) -> Void) {
    (self.loop, self.place, self.run, self.onRecord) = (loop, place, run, onRecord)
  }

  private var partition: TopicPartition { TopicPartition(place.topics.load, 0) }

  /// Reads all present records, then follows the topic.
  func open() async throws {
    let topic = place.topics.load
    let stretches = try await Admin.with(place.kafka) { try await $0.stretches(of: topic) }
      .filter { $0.partition == partition }
    try await TopicReader(on: loop, place.kafka).read(stretches, "the topic \(topic)", isCompacted: true) { [unowned self] in take($0) }
    position = stretches.first?.offsets.upperBound ?? 0
    let consumer = try Consumer(on: loop, place.kafka, Consumer.Options(), handler: self)
    self.consumer = consumer
    try await consumer.assign([(partition, .offset(position))])
    var options = Producer.Options()
    options.messageTimeoutMilliseconds = Self.messageTimeoutMilliseconds
    let producer = try Producer(on: loop, place.kafka, options, handler: SilentProducerHandler())
    self.producer = producer
    self.topic = try producer.topic(topic)
  }

  func close() async {
    await consumer?.close(withinMilliseconds: 2_000)
    await producer?.close(withinMilliseconds: 5_000)
    (consumer, producer, topic) = (nil, nil, nil)
  }

  /// Writes a record, and answers its offset when Kafka has it.
  func write(_ record: LoadRecord) async throws(KafkaError) -> Int64 {
    guard let producer, let topic else { throw KafkaError(.closed, "write to \(place.topics.load)") }
    return try await producer.send(topic, partition: 0, key: Array(record.key(run).utf8), value: record.value).offset
  }

  /// Writes a record without waiting for Kafka. `close` waits for it.
  func put(_ record: LoadRecord) { put(key: Array(record.key(run).utf8), record.value) }

  /// Removes records of the run.
  ///
  /// - Parameter number: the number of the run whose plan and end stay, so that nobody joins it; nil if nothing stays.
  func removeRecords(except number: UInt64?) {
    let kept = number.map { number in
      [LoadRecord.Content.cleaned, .end(reason: "")].map { Array(LoadRecord(run: number, process: number, content: $0).key(run).utf8) }
    }
    for key in keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) where kept?.contains(key) != true { put(key: key, nil) }
  }

  private func put(key: [UInt8], _ value: [UInt8]?) {
    guard let producer, let topic else { return }
    _ = key.withUnsafeBytes { key in withOptionalBytes(value) { producer.produce(topic, partition: 0, key: key, value: $0, opaque: 0) } }
  }

  private func take(_ record: RecordView) {
    guard let key = record.key else { return }
    let reading = LoadRecord.read(run, key: key, value: record.value)
    guard reading != .other else { return }
    if record.value != nil { keys.insert(Array(key)) }
    onRecord(reading)
  }

  func consumerReceived(_ batch: RecordBatch) {
    for index in batch.indices {
      take(batch[index])
      position = batch[index].offset + 1
    }
  }

  func consumerAssigned(_ partitions: [AssignedPartition]) {}
  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }
  func consumerFailed(_ error: KafkaError) {}
}
