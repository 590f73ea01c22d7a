public import EventLoop
import Kafka
import Notifications
import Redis
public import Worker

/// One lane of the transform stage: a loop with its own consumer, producer and connection to Redis.
///
/// The actor is the asynchronous face; the work itself is done by loop-confined classes.
public actor TransformLane {
  /// The loop that it lives on.
  public nonisolated let loop: EventLoop
  /// The loop is the actor's executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let settings: TransformSettings
  private let logger: Logger
  private let health: Health
  private let metrics: TransformMetrics
  private var core: TransformCore?

  /// Makes a lane that does nothing yet.
  public init(_ settings: TransformSettings, on loop: EventLoop, logger: Logger, health: Health, metrics: TransformMetrics) {
    self.settings = settings
    self.loop = loop
    self.logger = logger
    self.health = health
    self.metrics = metrics
  }

  /// Connects to Redis and Kafka and takes work; it is ready when both have answered.
  ///
  /// Call it from a task that prefers the loop.
  public func start() async throws {
    let core = try TransformCore(on: loop, settings, logger: logger, health: health, metrics: metrics)
    self.core = core
    try await core.start()
  }

  /// Finishes what is under way, gives the partitions up and closes everything.
  ///
  /// - Parameter milliseconds: what is not done by then is left to the next owner of its partition.
  public func drain(withinMilliseconds milliseconds: Int) async {
    guard let core else { return }
    self.core = nil
    await core.close(withinMilliseconds: milliseconds)
  }
}

/// What the lane consists of: loop-confined.
final class TransformCore: ConsumerHandler {
  private let loop: EventLoop
  private let settings: TransformSettings
  private let logger: Logger
  private let health: Health
  private let redis: RedisConnection
  private let producer: Producer
  private let pipeline: Pipeline
  private var consumer: Consumer?
  private var committer: OffsetCommitter?
  /// Batches, or the rest of them, that found no place.
  private var backlog: [(batch: RecordBatch, next: Int)] = []
  private var whenIdle: CheckedContinuation<Void, Never>?

  init(on loop: EventLoop, _ settings: TransformSettings, logger: Logger, health: Health, metrics: TransformMetrics) throws {
    self.loop = loop
    self.settings = settings
    self.logger = logger
    self.health = health
    redis = RedisConnection(
      on: loop,
      RedisConfiguration(settings.redis, clientName: "carillon-transform", maximumInFlight: 65_536, scripts: [JudgeScript.script, JudgeScript.evict]))
    producer = try Producer(on: loop, settings.kafka)
    let outcomes = Outcomes(settings, producer: producer)
    pipeline = Pipeline(on: loop, settings, redis: redis, outcomes: outcomes, metrics: metrics)
    producer.onReports = { [unowned self] in reported($0) }
    pipeline.onDone = { [unowned self] in done($0) }
  }

  func start() async throws {
    let logger = logger
    let health = health
    redis.onUp = { [unowned self] in
      health.set(.redis, ready: true)
      logger.info("Redis answers", ["address": "\(settings.redis)"])
      resume()
    }
    redis.onDown = { [unowned self] error in
      health.set(.redis, ready: false, "\(error)")
      logger.warning("Redis is gone: consumption pauses", ["error": "\(error)"])
      consumer?.pauseAll()
    }
    redis.onAttemptFailed = { error, wait in logger.warning("Redis does not answer", ["error": "\(error)", "retryMs": "\(wait)"]) }
    health.set(.redis, ready: false, "connecting")
    health.set(.kafka, ready: false, "no partition is assigned yet")
    redis.start()
    let consumer = try Consumer(on: loop, settings.kafka, Consumer.Options(group: settings.group), handler: self)
    consumer.onLog = { [logger] line in logger.log(line) }
    producer.onLog = { [logger] line in logger.log(line) }
    self.consumer = consumer
    committer = OffsetCommitter(consumer, limit: settings.inFlight)
    try await redis.waitUntilUp(withinMilliseconds: 30_000)
    try consumer.subscribe([settings.topics.requests])
  }

  // MARK: Records

  func consumerReceived(_ batch: RecordBatch) {
    backlog.append((batch, 0))
    if backlog.count == 1 { advance() } else { consumer?.pauseAll() }
  }

  /// Begins what finds a place; when there is none left the partitions wait.
  private func advance() {
    guard redis.isUp else {
      consumer?.pauseAll()
      return
    }
    while let (batch, first) = backlog.first {
      var begun: [(Int, RecordTicket)] = []
      begun.reserveCapacity(batch.count - first)
      var next = first
      scan: while next < batch.count {
        let record = batch[next]
        switch committer?.begin(record) ?? .ignored {
        case .begun(let ticket): begun.append((next, ticket))
        case .ignored: break
        case .full: break scan
        }
        next += 1
      }
      if next < batch.count { backlog[0].next = next } else { backlog.removeFirst() }
      if !begun.isEmpty { pipeline.take(batch, begun) }
      if next < batch.count {
        consumer?.pauseAll()
        return
      }
    }
    consumer?.resumeAll()
  }

  private func done(_ ticket: RecordTicket) {
    committer?.finish(ticket)
    if !backlog.isEmpty, pipeline.works.count <= settings.inFlight / 2 { advance() }
    if pipeline.isIdle, backlog.isEmpty, let waiting = whenIdle {
      whenIdle = nil
      waiting.resume()
    }
  }

  private func resume() {
    if backlog.isEmpty { consumer?.resumeAll() } else { advance() }
  }

  private func reported(_ reports: borrowing DeliveryReports) {
    reports.forEach { report in
      guard let token = OutcomeToken(report.token) else { return }
      switch token {
      case .work(let place): pipeline.reported(place, failed: report.error != nil)
      case .eviction(let number): pipeline.evictionReported(number, failed: report.error != nil)
      }
    }
  }

  // MARK: Partitions

  func consumerAssigned(_ partitions: [AssignedPartition]) {
    committer?.assigned(partitions)
    health.set(.kafka, ready: true)
    logger.info("partitions assigned", ["partitions": partitions.map { "\($0.topicPartition.partition)" }.joined(separator: ",")])
    if !redis.isUp || !backlog.isEmpty { consumer?.pauseAll() }
  }

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) {
    logger.info(
      isLost ? "partitions lost" : "partitions revoked",
      ["partitions": partitions.map { "\($0.topicPartition.partition)" }.joined(separator: ",")])
    committer?.revoked(partitions, isLost: isLost, revocation: revocation)
  }

  func consumerFailed(_ error: KafkaError) {
    logger.warning("Kafka", ["error": "\(error)"])
  }

  // MARK: The end

  func close(withinMilliseconds milliseconds: Int) async {
    consumer?.pauseAll()
    backlog = []
    if !pipeline.isIdle {
      let deadline = Timer(on: loop) { [self] in
        whenIdle?.resume()
        whenIdle = nil
      }
      deadline.start(after: milliseconds)
      await withCheckedContinuation { whenIdle = $0 }
      deadline.close()
    }
    await consumer?.close()
    committer?.close()
    await producer.close(withinMilliseconds: 5000)
    redis.close()
    pipeline.close()
    consumer = nil
  }
}
