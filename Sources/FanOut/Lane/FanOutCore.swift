import Cryptography
import EventLoop
import HTTP
import JSON
import Kafka
import Notifications
import Store
import Worker

/// What a fan-out lane consists of: loop-confined.
final class FanOutCore: ConsumerHandler, ProducerHandler {
  let loop: EventLoop
  let settings: FanOutSettings
  let logger: Logger
  let health: Health
  let metrics: FanOutMetrics
  let shards: Shards
  let mailboxes: Mailboxes
  let presences: Presences
  let recipients: Recipients
  let registrations: Registrations
  let membership: LaneMembership
  let receipts: Receipts
  let expiration: ExpirationRule
  private var producers: LaneProducers?
  private(set) var eventProducer: EventProducer?
  private(set) var acknowledgementsOrNil: Acknowledgements?
  private var registrarOrNil: Registrar?
  private var consumer: Consumer?
  private var server: HTTPServer?
  private let sweepTimer: Timer
  let gateTimer: Timer
  /// Who may say hello, and when.
  var gate: AdmissionGate
  /// What the server had counted at the last look.
  var counted = HTTPServerStatistics()
  private(set) var watchOrNil: RedisWatch?

  /// The partition of `deliveries` that this lane reads.
  private(set) var partition: Int32 = -1
  /// All connections by their generation.
  var sessions: [UInt64: Session] = [:]
  /// Sessions by the second of the refresh period in which they look after themselves.
  private var wheel: [[UInt64]]
  /// Sessions that look after themselves out of turn, a part of them each second.
  private var overdue: [UInt64] = []
  /// Seconds since the lane's start.
  private(set) var seconds: UInt32 = 0
  var frames = JSONWriter(capacity: 8192)
  /// Responses whose events are on the way to Kafka.
  var responses = PendingResponses()
  /// Events whose durability something waits for.
  let awaited = AwaitedEvents()
  /// Runs the asynchronous part of a hello and of other rare frames on the lane's actor.
  var runTask: ((LaneTask) -> Void)?
  private(set) var isDraining = false
  /// Told when a client of Kafka can do nothing any more; only a new lane can.
  var onFatal: ((KafkaError) -> Void)?

  init(on loop: EventLoop, _ settings: FanOutSettings, logger: Logger, health: Health, metrics: FanOutMetrics) {
    self.loop = loop
    self.settings = settings
    self.logger = logger
    self.health = health
    self.metrics = metrics
    shards = Shards(on: loop, settings.store, clientName: "carillon-fan-out")
    mailboxes = Mailboxes(shards)
    presences = Presences(shards, keptMilliseconds: settings.longestLifetime * 1000)
    recipients = Recipients(shards)
    registrations = Registrations(shards, recipients, rememberedMilliseconds: settings.longestLifetime * 1000)
    membership = LaneMembership(on: loop, Lanes(shards), name: settings.worker, lifetimeMilliseconds: settings.laneMilliseconds)
    receipts = Receipts(key: settings.receiptKey)
    expiration = ExpirationRule(oneAttemptSeconds: settings.oneAttemptSeconds)
    wheel = Array(repeating: [], count: max(1, settings.refreshSeconds))
    gate = AdmissionGate(perSecond: settings.reconnectsPerSecond, waitMilliseconds: settings.helloSeconds * 500)
    var sweep: () -> Void = {}
    var advance: () -> Void = {}
    sweepTimer = Timer(on: loop) { sweep() }
    gateTimer = Timer(on: loop) { advance() }
    sweep = { [unowned self] in self.sweep() }
    advance = { [unowned self] in advanceGate() }
  }

  var acknowledgements: Acknowledgements {
    guard let acknowledgementsOrNil else { preconditionFailure("a session has acknowledged something, so the lane was started") }
    return acknowledgementsOrNil
  }

  var registrar: Registrar {
    guard let registrarOrNil else { preconditionFailure("a device has said something, so the lane was started") }
    return registrarOrNil
  }

  /// Whether Redis has what it should.
  var watch: RedisWatch {
    guard let watchOrNil else { preconditionFailure("a device has said something, so the lane was started") }
    return watchOrNil
  }

  // MARK: Starting

  /// Connects, takes a partition, reads it from its end, and only then lets devices in.
  func start() async throws {
    // The watch closes it.
    let admin = try Admin(settings.kafka, timeoutMilliseconds: 3_000)
    let watch = RedisWatch(on: loop, shards, settings.topics, admin) { [unowned self] in runTask?(.look) }
    watchOrNil = watch
    watchRedis(watch)
    let producers = try LaneProducers(on: loop, settings.kafka, handler: self) { [logger] in logger.log($0) }
    self.producers = producers
    let events = try EventProducer(settings, producers)
    eventProducer = events
    let acknowledgements = Acknowledgements(events, mailboxes)
    acknowledgements.onDeleted = { [unowned self] in deleted($0, $1) }
    acknowledgementsOrNil = acknowledgements
    registrarOrNil = Registrar(events, registrations, mailboxes, awaited)
    events.onFull = { [metrics] in metrics.limited(.events) }
    var options = Consumer.Options()
    // For company, as in the transform stage; shorter, since takeovers come this way, too, and a delivery has waited before.
    options.fetch = (bytes: 200_000, waitMilliseconds: 10)
    let consumer = try Consumer(on: loop, settings.kafka, options, handler: self)
    self.consumer = consumer
    consumer.onLog = { [logger] in logger.log($0) }
    try await shards.waitUntilUp(withinMilliseconds: settings.startMilliseconds)
    let count = try await admin.describe(topic: settings.topics.deliveries).partitions.count
    partition = try await membership.claim(partitions: count)
    // An earlier attempt to start may have found otherwise.
    health.set("writes", ready: true)
    membership.onRefusal = { [unowned self] refusal in
      health.set("writes", ready: refusal == nil, refusal.map { "\($0)" } ?? "")
      if let refusal { logger.warning("Redis refuses what writes; devices that connect are told to come back", ["error": "\(refusal)"]) }
    }
    membership.onLapse = { [unowned self] in lookAfterAll("the lane's heartbeat had lapsed") }
    let position = TopicPartition(settings.topics.deliveries, partition)
    try await consumer.assign([(position, .latest)])
    try listen()
    sweepTimer.start(after: 1000, repeating: 1000)
    health.set("kafka", ready: true)
    logger.info("devices may connect", ["address": "\(localAddress)", "deliveries": partition])
  }

  private func watchRedis(_ watch: RedisWatch) {
    let (logger, health, address) = (logger, health, settings.store)
    health.set("redis", ready: false, "connecting to \(address)")
    health.set("kafka", ready: false, "connecting")
    shards.onUp = { [unowned self] in
      logger.info("Redis answers", ["address": "\(address)"])
      watch.lost()
      if shards.epoch > 0 { lookAfterAll("Redis was away") }
    }
    var wasMissing = false
    watch.onFinding = { [unowned self] missing in
      health.set("redis", ready: missing == nil, missing ?? "")
      if let missing { logger.warning("something is missing in Redis", ["reason": missing]) }
      if missing == nil, wasMissing { lookAfterAll("nothing is missing in Redis any more") }
      wasMissing = missing != nil
    }
    shards.onDown = { error in
      watch.lost()
      health.set("redis", ready: false, "\(error)")
      logger.warning("Redis is gone; devices stay connected", ["error": "\(error)"])
    }
    shards.onAttemptFailed = { error, wait in logger.warning("Redis does not answer", ["error": "\(error)", "retryMs": "\(wait)"]) }
    shards.start()
  }

  private func listen() throws {
    var configuration = HTTPServerConfiguration()
    configuration.maximumConnections = settings.connections
    configuration.maximumConnectionsPerAddress = settings.connectionsPerAddress
    configuration.reusePort = settings.sharesPort
    var webSocket = WebSocketConfiguration()
    webSocket.subprotocols = [DeviceProtocol.subprotocol]
    webSocket.maximumMessageBytes = settings.frameBytes
    webSocket.tooBigCode = WebSocketCloseCode(rawValue: CloseCode.messageTooLarge.rawValue)
    webSocket.maximumOutboxBytes = settings.outboxBytes
    webSocket.outboxFullCode = WebSocketCloseCode(rawValue: CloseCode.slowConsumer.rawValue)
    webSocket.outboxFullReason = CloseCode.slowConsumer.reason
    webSocket.tooManyFramesCode = WebSocketCloseCode(rawValue: CloseCode.tooManyFrames.rawValue)
    webSocket.tooManyFramesReason = CloseCode.tooManyFrames.reason
    webSocket.pingMilliseconds = settings.pingSeconds * 1000
    var routes = HTTPRoutes()
    routes.addWebSocket(DeviceProtocol.path, webSocket) { [unowned self] request in admit(request) }
    server = try HTTPServer(on: loop, at: settings.listen, configuration: configuration, routes: routes)
  }

  /// Where devices connect, with the port that was taken for 0.
  var localAddress: SocketAddress { server?.localAddress ?? settings.listen }

  // MARK: Sessions

  func connected(_ session: Session) {
    sessions[session.generation] = session
    metrics.connections.set(Double(sessions.count))
  }

  func ended(_ session: Session, _ former: Session.Phase, _ end: WebSocketEnd) {
    sessions[session.generation] = nil
    metrics.connections.set(Double(sessions.count))
    metrics.ended(end)
    responses.forget(session.generation)
    if case .open(let open) = former { leave(open.token, session.generation) }
  }

  /// Puts a session into the wheel at a random place, so that those that came together do not all look at once.
  func watch(_ session: Session) { wheel[Int.random(in: wheel.indices)].append(session.generation) }

  private func sweep() {
    seconds += 1
    let now = WallClock.seconds()
    for session in sessions.values {
      switch session.phase {
      case .greeting(let deadline) where deadline <= seconds: session.close(.helloTimeout)
      case .open(let open) where open.expiration <= now && !open.isLeaving:
        open.isLeaving = true
        goAway(session, .credentialExpired, retryAfter: gate.retryAfter(now: loop.milliseconds(), atLeast: 0))
      default: break
      }
    }
    let slot = Int(seconds) % wheel.count
    wheel[slot].removeAll { sessions[$0] == nil }
    for generation in wheel[slot] { lookAfter(generation) }
    for generation in overdue.suffix(max(Self.overduePerSecond, overdue.count / 5)) { lookAfter(generation) }
    overdue.removeLast(min(overdue.count, max(Self.overduePerSecond, overdue.count / 5)))
    if acknowledgements.hasUnsaid { acknowledgements.sayAgain() }
    metrics.acknowledgements.set(acknowledgements.count)
    if let server { countRefusals(server.statistics) }
  }

  private static let overduePerSecond = 500

  private func lookAfter(_ generation: UInt64) {
    guard let session = sessions[generation], let open = session.open else { return }
    if let oldest = open.flow.oldestUnacknowledged, seconds - oldest > UInt32(settings.acknowledgeSeconds) {
      return session.close(.acknowledgementTimeout)
    }
    runTask?(.refresh(generation))
  }

  /// Something may have been missed: every session looks after its presence and its mailbox, spread over a few seconds.
  private func lookAfterAll(_ reason: String) {
    guard !sessions.isEmpty else { return }
    logger.warning("sessions look after their mailboxes", ["reason": reason])
    overdue = sessions.keys.shuffled()
  }

  // MARK: Kafka

  func consumerReceived(_ batch: RecordBatch) {
    for index in batch.indices { received(batch[index]) }
  }

  func consumerAssigned(_ partitions: [AssignedPartition]) {}

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }

  func consumerFailed(_ error: KafkaError) { failed(error) }

  func producerDelivered(_ reports: [DeliveryReport]) {
    var settled: [(place: Int, failed: Bool)] = []
    for report in reports {
      let number = Int(report.token & EventProducer.Tag.mask)
      switch report.token & ~EventProducer.Tag.mask {
      case EventProducer.Tag.acknowledgement: settled.append((number, report.failure != nil))
      case EventProducer.Tag.response: responded(number, failed: report.failure != nil)
      case EventProducer.Tag.awaited: awaited.reported(number, failed: report.failure != nil)
      default: break
      }
    }
    if !settled.isEmpty { acknowledgements.reported(settled) }
  }

  func producerHasRoom() { acknowledgementsOrNil?.sayAgain() }

  func producerFailed(_ error: KafkaError) { failed(error) }

  private func failed(_ error: KafkaError) {
    logger.warning("Kafka has a complaint", ["error": "\(error)"])
    guard error.isFatal else { return }
    health.set("client", ready: false, "\(error)")
    onFatal?(error)
  }

  // MARK: The end

  /// Tells each device when to come back, closes its session, and waits until Kafka has what was acknowledged.
  func drain(withinMilliseconds milliseconds: Int) async {
    isDraining = true
    server?.stopAccepting()
    let end = Deadline(on: loop, after: milliseconds)
    await allGoAway(withinMilliseconds: milliseconds)
    await server?.close(withinMilliseconds: min(end.left, 3_000))
    await producers?.flush(withinMilliseconds: max(0, end.left - Self.partingMilliseconds))
    await membership.leave()
    await watchOrNil?.close()
    sweepTimer.close()
    gateTimer.close()
    await consumer?.close(withinMilliseconds: end.left(atLeast: Self.partingMilliseconds / 2))
    await producers?.close(withinMilliseconds: end.left(atLeast: Self.partingMilliseconds / 2))
    shards.close()
    runTask = nil
    (consumer, producers, eventProducer, server) = (nil, nil, nil, nil)
  }

  /// What is kept of a drain's time for leaving Redis and Kafka.
  private static let partingMilliseconds = 2_000
}
