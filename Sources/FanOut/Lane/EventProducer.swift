import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Says to Kafka what happens at devices. Loop-confined.
final class EventProducer {
  /// What a record's report is for, in the upper bits of its token.
  enum Tag {
    static let acknowledgement: UInt64 = 1 << 32
    static let response: UInt64 = 2 << 32
    static let awaited: UInt64 = 3 << 32
    static let mask: UInt64 = 0xFFFF_FFFF
  }

  private let producers: LaneProducers
  private let events: (prompt: ProducerTopic, patient: ProducerTopic)
  private let deliveries: ProducerTopic
  private let devices: ProducerTopic
  private var writer: EventWriter
  private let headers = RecordHeaders()
  private var record = ByteBuffer(capacity: 64)
  /// An event was not taken.
  var onFull: (() -> Void)?

  init(_ settings: FanOutSettings, _ producers: LaneProducers) throws(KafkaError) {
    self.producers = producers
    events = (try producers.prompt.topic(settings.topics.events), try producers.patient.topic(settings.topics.events))
    deliveries = try producers.prompt.topic(settings.topics.deliveries)
    devices = try producers.prompt.topic(settings.topics.devices)
    writer = EventWriter(source: "/carillon/\(settings.cluster)", worker: settings.worker, requestsTopic: settings.topics.requests)
  }

  /// Produces an event; false when Kafka's queue is full.
  func say(_ facts: EventFacts, key: UnsafeRawBufferPointer, token: UInt64) -> Bool {
    writer.write(facts, at: WallClock.milliseconds())
    writer.forEachHeader { header, value in headers.append(header.name, value) }
    let (producer, topic) =
      switch token & ~Tag.mask {
      case Tag.response, Tag.awaited: (producers.prompt, events.prompt)
      default: (producers.patient, events.patient)
      }
    let outcome = writer.withValue { producer.produce(topic, key: key, value: $0, headers: headers, token: token) }
    if case .taken = outcome { return true }
    headers.removeAll()
    onFull?()
    return false
  }

  /// Tells the lane of a partition that a session there is over, since its device has a newer one. It may be lost: the session finds out.
  func takeOver(_ presence: Presence, token: String) {
    record.reset()
    DeliveryRecord.appendTakeover(of: presence.generation, to: &record)
    var token = token
    token.withUTF8 { key in
      record.withUnsafeBytes {
        _ = producers.prompt.produce(deliveries, partition: presence.partition, key: UnsafeRawBufferPointer(key), value: $0, token: 0)
      }
    }
  }

  /// Publishes a device's registration, or its end, and waits until Kafka has it.
  func publish(_ registration: [UInt8]?, of token: String) async throws(KafkaError) -> (partition: Int32, offset: Int64) {
    try await producers.prompt.send(devices, key: Array(token.utf8), value: registration)
  }
}
