import EventLoop
import Kafka
import Notifications
import Redis
import Worker

/// What the lane consists of: loop-confined.
final class TransformCore: ConsumerHandler, ProducerHandler {
  private let loop: EventLoop
  private let settings: TransformSettings
  private let logger: Logger
  private let health: Health
  private let metrics: TransformMetrics
  private let redis: RedisConnection
  private var producer: Producer?
  private var pipeline: Pipeline?
  private var consumer: Consumer?
  private var committer: OffsetCommitter?
  /// Batches, or the rest of them, that found no place.
  private var backlog: [(batch: RecordBatch, next: Int)] = []
  private var isClosing = false
  private var whenIdle: CheckedContinuation<Void, Never>?

  init(on loop: EventLoop, _ settings: TransformSettings, logger: Logger, health: Health, metrics: TransformMetrics) {
    self.loop = loop
    self.settings = settings
    self.logger = logger
    self.health = health
    self.metrics = metrics
    let scripts = [JudgeScript.script, JudgeScript.evict]
    redis = RedisConnection(
      on: loop, RedisConfiguration(settings.redis, clientName: "carillon-transform", maximumInFlight: 65_536, scripts: scripts))
  }

  func start() async throws {
    watchRedis()
    let producer = try Producer(on: loop, settings.kafka, handler: self)
    self.producer = producer
    let pipeline = Pipeline(on: loop, settings, redis: redis, outcomes: try Outcomes(settings, producer: producer), metrics: metrics)
    pipeline.onDone = { [unowned self] in done($0) }
    self.pipeline = pipeline
    let consumer = try Consumer(on: loop, settings.kafka, Consumer.Options(group: settings.group), handler: self)
    self.consumer = consumer
    producer.onLog = { [logger] in logger.log($0) }
    consumer.onLog = { [logger] in logger.log($0) }
    committer = OffsetCommitter(on: loop, consumer, limit: settings.inFlight) { [logger] in
      logger.warning("an offset was not committed; it is tried again", ["error": "\($0)"])
    }
    try await redis.waitUntilUp(withinMilliseconds: settings.startMilliseconds)
    try consumer.subscribe([settings.topics.requests])
  }

  private func watchRedis() {
    let (logger, health, address) = (logger, health, settings.redis)
    health.set("redis", ready: false, "connecting to \(address)")
    health.set("kafka", ready: false, "no partition is assigned yet")
    redis.onUp = { [unowned self] in
      health.set("redis", ready: true)
      logger.info("Redis answers", ["address": "\(address)"])
      advance()
    }
    redis.onDown = { [unowned self] error in
      health.set("redis", ready: false, "\(error)")
      logger.warning("Redis is gone; consumption pauses", ["error": "\(error)"])
      consumer?.pauseAll()
    }
    redis.onAttemptFailed = { error, wait in logger.warning("Redis does not answer", ["error": "\(error)", "retryMs": "\(wait)"]) }
    redis.start()
  }

  // MARK: Records

  func consumerReceived(_ batch: RecordBatch) {
    guard !isClosing else { return }
    backlog.append((batch, 0))
    if backlog.count == 1 { advance() } else { consumer?.hold() }
  }

  /// Begins what finds a place; when there is none left, or Redis is gone, the partitions wait.
  private func advance() {
    guard let committer, let consumer, let pipeline else { return }
    while let (batch, first) = backlog.first {
      guard redis.isUp else { return consumer.pauseAll() }
      var begun: [(Int, RecordTicket)] = []
      begun.reserveCapacity(batch.count - first)
      var next = first
      scan: while next < batch.count {
        switch committer.begin(batch[next]) {
        case .begun(let ticket): begun.append((next, ticket))
        case .ignored: break
        case .full: break scan
        }
        next += 1
      }
      let isWhole = next == batch.count
      if isWhole { backlog.removeFirst() } else { backlog[0].next = next }
      if !begun.isEmpty { pipeline.take(batch, begun) }
      if !isWhole { return consumer.hold() }
    }
    if redis.isUp, !isClosing {
      consumer.release()
      consumer.resumeAll()
    }
  }

  private func done(_ ticket: RecordTicket) {
    committer?.finish(ticket)
    guard let committer, let pipeline else { return }
    // Half of the places, so that a batch is worth its turn.
    if !backlog.isEmpty, committer.span <= settings.inFlight / 2 { advance() }
    if pipeline.isIdle, let waiting = whenIdle {
      whenIdle = nil
      waiting.resume()
    }
  }

  // MARK: Reports

  func producerDelivered(_ reports: [DeliveryReport]) {
    for report in reports {
      switch OutcomeToken(report.token) {
      case .work(let place): pipeline?.reported(place, failed: report.failure != nil)
      case .eviction(let number): pipeline?.evictionReported(number, failed: report.failure != nil)
      case nil: if report.failure != nil { metrics.deliveriesLost.increment() }
      }
    }
  }

  func producerHasRoom() {}

  func producerFailed(_ error: KafkaError) { failed(error) }

  // MARK: Partitions

  func consumerAssigned(_ partitions: [AssignedPartition]) {
    committer?.assigned(partitions)
    health.set("kafka", ready: true)
    logger.info("partitions assigned", ["partitions": names(partitions)])
    if !redis.isUp || !backlog.isEmpty { consumer?.pauseAll() }
  }

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) {
    logger.info(isLost ? "partitions lost" : "partitions revoked", ["partitions": names(partitions)])
    guard let committer else { return revocation.finish() }
    committer.revoked(partitions, isLost: isLost, revocation: revocation)
  }

  private func names(_ partitions: [AssignedPartition]) -> String {
    partitions.map { String($0.topicPartition.partition) }.joined(separator: ",")
  }

  func consumerFailed(_ error: KafkaError) { failed(error) }

  private func failed(_ error: KafkaError) {
    if error.isFatal { health.set("kafka", ready: false, "\(error)") }
    logger.warning("Kafka has a complaint", ["error": "\(error)"])
  }

  // MARK: The end

  func close(withinMilliseconds milliseconds: Int) async {
    isClosing = true
    consumer?.pauseAll()
    backlog = []
    if pipeline?.isIdle == false {
      let deadline = Timer(on: loop) { [self] in
        whenIdle?.resume()
        whenIdle = nil
      }
      deadline.start(after: milliseconds)
      await withCheckedContinuation { continuation in
        // The loop may have turned since the question above.
        if pipeline?.isIdle == false { whenIdle = continuation } else { continuation.resume() }
      }
      deadline.close()
    }
    await consumer?.close()
    committer?.close()
    await producer?.close(withinMilliseconds: 5_000)
    redis.close()
    pipeline?.close()
    (consumer, committer, producer, pipeline) = (nil, nil, nil, nil)
  }
}
