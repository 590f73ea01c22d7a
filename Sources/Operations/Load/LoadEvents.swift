import EventLoop
import JSON
import Kafka
import Notifications
import Worker

/// Follows the topic `events` from now on, for the requests of one run.
final class LoadEvents: ConsumerHandler {
  private let loop: EventLoop
  private let names: LoadNames
  private let place: LoadPlace
  private weak var owner: LoadCore?
  private var consumer: Consumer?

  init(on loop: EventLoop, _ names: LoadNames, _ place: LoadPlace, owner: LoadCore) {
    (self.loop, self.names, self.place, self.owner) = (loop, names, place, owner)
  }

  /// Begins to read, at the present ends of the partitions.
  func begin() async throws {
    let topic = place.topics.events
    let partitions = try await Admin.with(place.kafka) {
      try await $0.describe(topic: topic).partitions.map { TopicPartition(topic, $0.id) }
    }
    let consumer = try Consumer(on: loop, place.kafka, Consumer.Options(), handler: self)
    self.consumer = consumer
    try await consumer.assign(partitions.map { ($0, .latest) })
  }

  func close() async {
    await consumer?.close()
    consumer = nil
  }

  func consumerReceived(_ batch: RecordBatch) { for index in batch.indices { take(batch[index]) } }

  private func take(_ record: RecordView) {
    var (outcome, id, time): (Outcome?, NotificationID?, Int64?)
    record.forEachHeader { name, value in
      guard let value else { return }
      switch String(cString: name) {
      case EventHeader.type.rawValue: outcome = Outcome(cloudEventsType: String(decoding: value, as: UTF8.self))
      case EventHeader.subject.rawValue: id = NotificationID(text: value)
      case EventHeader.time.rawValue: time = Timestamp.parse(value)
      default: break
      }
    }
    guard let outcome, !outcome.isAboutDevice, let id else { return }
    let device = record.key.flatMap { names.device(ofToken: $0) }
    // Only the events of this run's devices are worth a look into their values.
    owner?.eventTold(outcome, of: id, device: device, at: time) { device == nil ? nil : record.value.flatMap(Self.identifier) }
  }

  private static func identifier(_ value: UnsafeRawBufferPointer) -> NotificationID? {
    var scanner = JSONScanner(value)
    do throws(JSONError) {
      try scanner.openObject()
      while let key = try scanner.nextKey() {
        let value = try scanner.skip()
        if scanner.matches(key, "identifier") { return scanner.unescapedBytes(value).flatMap { NotificationID(text: $0) } }
      }
    } catch {}
    return nil
  }

  func consumerAssigned(_ partitions: [AssignedPartition]) {}
  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }
  func consumerFailed(_ error: KafkaError) {}
}
