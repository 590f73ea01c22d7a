import EventLoop
import Ingress
import JSON
import Kafka
import Worker

/// Publishes requests, and prints each one that Kafka has acknowledged. An actor on a loop of its own.
actor PublishLane: LoopActor {
  /// The results of all requests so far.
  struct Totals: Sendable {
    var acknowledged = 0
    var failed = 0
    /// The error of the last failure.
    var failure: KafkaError?
    /// The places of the requests to follow, by their apns-ids.
    var followed: [(name: String, partition: Int32, offset: Int64)] = []
  }

  nonisolated let loop: EventLoop
  private let topic: String
  private let isJSON: Bool
  private let followed: Int
  private var core: PublishCore?

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
    core = try PublishCore(on: loop, kafka, topic: topic, isJSON: isJSON, followed: followed, batchBytes, timeoutMilliseconds)
  }

  /// Produces requests. It waits while too many are unacknowledged.
  func publish(_ requests: [RequestToSend]) async {
    for request in requests { await core?.send(request) }
  }

  var totals: Totals { core?.totals ?? Totals() }

  /// Waits for all acknowledgements and closes.
  func finish(withinMilliseconds milliseconds: Int) async -> Totals {
    await core?.close(withinMilliseconds: milliseconds)
    return totals
  }
}

/// The loop-confined half: the producer, and unacknowledged requests.
private final class PublishCore: ProducerHandler {
  private struct Pending {
    let line: Int
    let id: String
  }

  private(set) var totals = PublishLane.Totals()
  private let isJSON: Bool
  private let followed: Int
  private var producer: Producer?
  private let topic: ProducerTopic
  private let headers = RecordHeaders()
  private var pending: [UInt64: Pending] = [:]
  private var lastOpaque: UInt64 = 0
  private var isFull = false
  private var whenRoom: CheckedContinuation<Void, Never>?
  private var json = JSONWriter()

  init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, topic: String, isJSON: Bool, followed: Int, _ batchBytes: Int, _ timeout: Int
  ) throws(KafkaError) {
    self.isJSON = isJSON
    self.followed = followed
    var options = Producer.Options()
    options.batchBytes = batchBytes
    options.maximumRecords = 10_000
    options.maximumBytes = 64 << 20
    options.messageTimeoutMilliseconds = timeout
    // A person who publishes one request does not wait for others.
    options.lingerMilliseconds = 5
    let reports = Reports()
    let producer = try Producer(on: loop, kafka, options, handler: reports)
    self.producer = producer
    self.topic = try producer.topic(topic)
    reports.core = self
  }

  /// The producer keeps its handler while it is open, and this object keeps the producer.
  private final class Reports: ProducerHandler {
    weak var core: PublishCore?
    func producerDelivered(_ reports: [DeliveryReport]) { core?.producerDelivered(reports) }
    func producerHasRoom() { core?.producerHasRoom() }
    func producerFailed(_ error: KafkaError) { core?.producerFailed(error) }
  }

  func send(_ request: RequestToSend) async {
    guard let producer else { return }
    lastOpaque += 1
    pending[lastOpaque] = Pending(line: request.line, id: request.id)
    for (name, value) in request.headers { headers.append(name, value) }
    while true {
      let outcome = request.key.withUnsafeBytes { key in
        withOptionalBytes(request.value) { value in
          producer.produce(topic, key: key.isEmpty ? nil : key, value: value, headers: headers, opaque: lastOpaque)
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

  func close(withinMilliseconds milliseconds: Int) async {
    await producer?.close(withinMilliseconds: milliseconds)
    producer = nil
    StandardOutput.flush()
  }

  // MARK: Reports

  func producerDelivered(_ reports: [DeliveryReport]) {
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

  private func answer(_ request: Pending, _ report: DeliveryReport) {
    guard isJSON else { return StandardOutput.line(request.id) }
    json.reset()
    json.openObject()
    json.member("apnsId", request.id)
    json.member("topic", topic.name)
    json.member("partition", Int(report.partition))
    if report.offset >= 0 { json.member("offset", report.offset) }
    if request.line > 0 { json.member("line", request.line) }
    json.closeObject()
    StandardOutput.json(json.text)
  }

  private func failed(_ opaque: UInt64, _ error: KafkaError) {
    guard let request = pending.removeValue(forKey: opaque) else { return }
    totals.failed += 1
    totals.failure = error
    // For a single request the command's end reports the error.
    if request.line > 0 { StandardError.line("line \(request.line): \(request.id): \(error)") }
  }

  func producerHasRoom() {
    isFull = false
    let waiting = whenRoom
    whenRoom = nil
    waiting?.resume()
  }

  func producerFailed(_ error: KafkaError) {
    if error.isFatal { StandardError.line("\(error)") }
  }
}
