import EventLoop
import Ingress
import JSON
import Kafka

/// Publishes requests, and prints each one that Kafka has acknowledged. An actor on a loop of its own.
actor PublishLane: LoopActor, ProducerHandler {
  /// The results of all requests so far.
  struct Totals: Sendable {
    var acknowledged = 0
    var failed = 0
    /// The error of the last failure.
    var failure: KafkaError?
    /// The places of the requests to follow, with their apns-ids.
    var followed: [(id: String, partition: Int32, offset: Int64)] = []
  }

  nonisolated let loop: EventLoop
  private(set) var totals = Totals()
  private let topic: String
  private let isJSON: Bool
  private let followed: Int
  private var producer: (client: Producer, topic: ProducerTopic)?
  private let headers = RecordHeaders()
  /// The unacknowledged requests, by their opaques.
  private var pending: [UInt64: (line: Int, id: String)] = [:]
  private var lastOpaque: UInt64 = 0
  private var isFull = false
  private var whenRoom: CheckedContinuation<Void, Never>?

  /// - Parameter followed: the most requests to follow.
  init(on loop: EventLoop, topic: String, isJSON: Bool, followed: Int = 0) {
    self.loop = loop
    self.topic = topic
    self.isJSON = isJSON
    self.followed = followed
  }

  /// Opens the producer.
  ///
  /// - Parameter batchBytes: the brokers' limit of a batch of the topic.
  func start(_ kafka: KafkaConfiguration, batchBytes: Int, timeoutMilliseconds: Int) throws {
    var options = Producer.Options()
    options.batchBytes = batchBytes
    options.maximumRecords = 10_000
    options.maximumBytes = 64 << 20
    options.messageTimeoutMilliseconds = timeoutMilliseconds
    // A person who publishes one request does not wait for others.
    options.lingerMilliseconds = 5
    let client = try Producer(on: loop, kafka, options, handler: self)
    producer = (client, try client.topic(topic))
  }

  /// Produces requests. It waits while too many are unacknowledged.
  func publish(_ requests: [RequestToSend]) async {
    for request in requests { await send(request) }
  }

  /// Waits for all acknowledgements and closes.
  func finish(withinMilliseconds milliseconds: Int) async -> Totals {
    await producer?.client.close(withinMilliseconds: milliseconds)
    producer = nil
    StandardOutput.flush()
    return totals
  }

  private func send(_ request: RequestToSend) async {
    guard let (client, topic) = producer else { return }
    lastOpaque += 1
    pending[lastOpaque] = (request.line, request.id)
    for (name, value) in request.headers { headers.append(name, value) }
    while true {
      let outcome = request.key.withUnsafeBytes { key in
        withOptionalBytes(request.value) { value in
          client.produce(topic, key: key.isEmpty ? nil : key, value: value, headers: headers, opaque: lastOpaque)
        }
      }
      switch outcome {
      case .taken: return
      case .full:
        isFull = true
        await withCheckedContinuation { continuation in
          // Checked here, since other tasks may run between a check and an await.
          if isFull { whenRoom = continuation } else { continuation.resume() }
        }
      case .refused(let error):
        headers.removeAll()
        return failed(lastOpaque, error)
      }
    }
  }

  // MARK: Reports

  nonisolated func producerDelivered(_ reports: [DeliveryReport]) { assumeIsolated { $0.delivered(reports) } }
  nonisolated func producerHasRoom() { assumeIsolated { $0.hasRoom() } }
  nonisolated func producerFailed(_ error: KafkaError) { if error.isFatal { StandardError.line("\(error)") } }

  private func delivered(_ reports: [DeliveryReport]) {
    for report in reports {
      if let error = report.error {
        failed(report.opaque, error)
      } else if let request = pending.removeValue(forKey: report.opaque) {
        totals.acknowledged += 1
        if totals.followed.count < followed, report.offset >= 0 {
          totals.followed.append((request.id, report.partition, report.offset))
        }
        answer(request, report)
      }
    }
    StandardOutput.flush()
  }

  private func answer(_ request: (line: Int, id: String), _ report: DeliveryReport) {
    guard isJSON else { return StandardOutput.line(request.id) }
    let json = JSONValue.object(present: [
      "apnsId": request.id, "topic": topic, "partition": report.partition, "offset": report.offset >= 0 ? report.offset : nil,
      "line": request.line > 0 ? request.line : nil,
    ])
    StandardOutput.json(json.text)
  }

  private func failed(_ opaque: UInt64, _ error: KafkaError) {
    guard let request = pending.removeValue(forKey: opaque) else { return }
    totals.failed += 1
    totals.failure = error
    // For a single request the command's end reports the error.
    if request.line > 0 { StandardError.line("line \(request.line): \(request.id): \(error)") }
  }

  private func hasRoom() {
    isFull = false
    let waiting = whenRoom
    whenRoom = nil
    waiting?.resume()
  }
}
