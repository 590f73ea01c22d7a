import EventLoop
import JSON
import Kafka
import Notifications
import Store
import Worker

/// Produces the events of a lane, and its records for other topics.
final class EventProducer {
  /// The lane's topics.
  private struct TopicHandles {
    let promptEvents: ProducerTopic
    let patientEvents: ProducerTopic
    let deliveries: ProducerTopic
    let devices: ProducerTopic
    let people: ProducerTopic
    let requests: ProducerTopic
  }

  private let loop: EventLoop
  private let settings: FanOutSettings
  private let metrics: FanOutMetrics
  /// Nil before `open` and after `close`.
  private var opened: (producers: LaneProducers, topics: TopicHandles)?
  private var writer: EventWriter
  private let headers = RecordHeaders()
  private var record = ByteBuffer(capacity: 64)
  private var removal = JSONWriter(capacity: 256)
  /// The registrations of each device that wait for its former one to reach Kafka.
  private var publishing: [String: [CheckedContinuation<Void, Never>]] = [:]

  init(on loop: EventLoop, _ settings: FanOutSettings, metrics: FanOutMetrics) {
    self.loop = loop
    self.settings = settings
    self.metrics = metrics
    writer = EventWriter(source: "/carillon/\(settings.cluster)", worker: settings.worker, requestsTopic: settings.topics.requests)
  }

  /// Opens Kafka's producers.
  ///
  /// - Parameter handler: gets the delivery reports.
  func open(_ admin: Admin, handler: any ProducerHandler, logger: Logger) async throws(KafkaError) {
    let names = settings.topics
    let (prompt, patient) = ([names.events, names.deliveries, names.devices, names.people, names.requests], [names.events])
    let limits = try await admin.writeLimits(of: prompt, logger: logger)
    let producers = try await LaneProducers(on: loop, settings.kafka, limits, topics: (prompt, patient), handler: handler) {
      logger.log($0)
    }
    do throws(KafkaError) {
      opened = (
        producers,
        TopicHandles(
          promptEvents: try producers.prompt.topic(settings.topics.events),
          patientEvents: try producers.patient.topic(settings.topics.events),
          deliveries: try producers.prompt.topic(settings.topics.deliveries), devices: try producers.prompt.topic(settings.topics.devices),
          people: try producers.prompt.topic(settings.topics.people), requests: try producers.prompt.topic(settings.topics.requests))
      )
    } catch {
      await producers.close(withinMilliseconds: 1_000)
      throw error
    }
  }

  /// Emits an event; false when Kafka's queue is full.
  func emit(_ facts: EventFacts, key: UnsafeRawBufferPointer, for purpose: EventPurpose) -> Bool {
    guard let (producers, topics) = opened else { return false }
    writer.write(facts, at: loop.wallMilliseconds())
    writer.forEachHeader { header, value in headers.append(header.name, value) }
    let (producer, topic) =
      switch purpose {
      case .response, .awaited: (producers.prompt, topics.promptEvents)
      case .outcome, .nothing: (producers.patient, topics.patientEvents)
      }
    let (outcome, bytes) = writer.withValue {
      (producer.produce(topic, key: key, value: $0, headers: headers, opaque: purpose.opaque), $0.count)
    }
    if case .taken = outcome { metrics.clients.emitted(facts.type, bytes: bytes) }
    return isTaken(outcome)
  }

  private func isTaken(_ outcome: Producer.Outcome) -> Bool {
    if case .taken = outcome { return true }
    headers.removeAll()
    metrics.limited(.events)
    return false
  }

  /// Publishes a request that removes an opened notification from the devices of its person; false when Kafka's queue is full.
  ///
  /// It removes no newer notification. It needs no signature: everyone who may write to `requests` may publish any removal. It goes into
  /// the partition of the opened notification's request, so that it is judged after that. Nobody can publish its apns-id beforehand, since
  /// that depends on the response's id; a response that is sent again removes once.
  func remove(_ receipt: ReceiptView, of user: Name, openedBy token: String, in response: String, for purpose: EventPurpose) -> Bool {
    guard let (producers, topics) = opened else { return false }
    let target = "user:\(user.text)"
    headers.append(RequestHeader.target.name, text: target)
    headers.append(RequestHeader.topic.name, receipt.application)
    let id = Array("\(RequestHeader.whenOpened.name)\n\(token)\n\(response)".utf8).withUnsafeBytes { receipt.id.derived($0) }
    headers.append(RequestHeader.id.name, text: "\(id)")
    headers.append(RequestHeader.operation.name, text: "remove")
    if !receipt.traceparent.isEmpty { headers.append(RequestHeader.traceparent.name, receipt.traceparent) }
    removal.reset()
    removal.openObject()
    removal.key("identifiers")
    removal.openArray()
    receipt.withIdentifier { removal.string(utf8: $0) }
    removal.closeArray()
    removal.key("notNewerThan")
    receipt.revision.withText { removal.string(utf8: $0) }
    removal.closeObject()
    var key = target
    let outcome = key.withUTF8 { key in
      removal.withUnsafeBytes {
        producers.prompt.produce(
          topics.requests, partition: receipt.sourceTopic.isEmpty ? receipt.source.partition : nil, key: UnsafeRawBufferPointer(key),
          value: $0,
          headers: headers, opaque: purpose.opaque)
      }
    }
    return isTaken(outcome)
  }

  /// Sends the former session's lane a record that ends the session. If the record is lost, the former session's resync finds out.
  func takeOver(_ presence: Presence, token: String) {
    guard let (producers, topics) = opened else { return }
    record.reset()
    var token = token
    token.withUTF8 { DeviceToken.append(packed: UnsafeRawBufferPointer($0), to: &record) }
    let key = record.count
    DeliveryRecord.appendTakeover(of: presence.generation, to: &record)
    record.withUnsafeBytes {
      _ = producers.prompt.produce(
        topics.deliveries, partition: presence.partition, key: UnsafeRawBufferPointer(rebasing: $0.prefix(key)),
        value: UnsafeRawBufferPointer(rebasing: $0[key...]),
        opaque: EventPurpose.nothing.opaque)
    }
  }

  /// Publishes a device's registration, or its end, and waits for Kafka's report.
  ///
  /// It sends a registration of a refused batch once more. An older registration must never follow a newer one, so each waits for the
  /// report of the one before.
  func publish(_ registration: [UInt8]?, of token: String) async throws(KafkaError) -> (partition: Int32, offset: Int64) {
    await turn(of: token)
    defer { endTurn(of: token) }
    guard let (producers, topics) = opened else { throw KafkaError(.closed, "publish a registration") }
    return try await producers.prompt.send(topics.devices, key: Array(token.utf8), value: registration, mayGoAlone: true)
  }

  /// Publishes a person's settings, or with nil that there are none, and waits until Kafka has the record.
  ///
  /// The settings of a person wait for the report of those before, as registrations do.
  func publish(person settings: [UInt8]?, of user: Name) async throws(KafkaError) {
    let turn = "person \(StableHash.hash(user.text))"
    await self.turn(of: turn)
    defer { endTurn(of: turn) }
    guard let (producers, topics) = opened else { throw KafkaError(.closed, "publish a person's settings") }
    _ = try await producers.prompt.send(topics.people, key: Array(user.utf8), value: settings, mayGoAlone: true)
  }

  private func turn(of token: String) async {
    guard publishing[token] != nil else { return publishing[token] = [] }
    await withCheckedContinuation { continuation in
      // Checked again, since other tasks may run between the guard and the await.
      if publishing[token] == nil {
        publishing[token] = []
        continuation.resume()
      } else {
        publishing[token]?.append(continuation)
      }
    }
  }

  private func endTurn(of token: String) {
    guard publishing[token]?.isEmpty == false else { return publishing[token] = nil }
    publishing[token]?.removeFirst().resume()
  }

  /// Shows how full the producers are, and whether Kafka acknowledges records. Called once a second.
  func showQueues(_ health: Health) { opened?.producers.show(in: metrics.clients, health) }

  /// Waits until Kafka has all records, or until the time is over.
  func flush(withinMilliseconds milliseconds: Int) async {
    await opened?.producers.flush(withinMilliseconds: milliseconds)
  }

  /// Closes the producers.
  func close(withinMilliseconds milliseconds: Int) async {
    await opened?.producers.close(withinMilliseconds: milliseconds)
    opened = nil
  }
}

/// Calls the body with the bytes of some texts, in their order.
func withBytes<Result>(of texts: String..., do body: ([UnsafeRawBufferPointer]) -> Result) -> Result {
  var bytes: [UInt8] = []
  let ends = texts.map { text in
    bytes += text.utf8
    return bytes.count
  }
  return bytes.withUnsafeBytes { all in body(zip([0] + ends, ends).map { UnsafeRawBufferPointer(rebasing: all[$0..<$1]) }) }
}
