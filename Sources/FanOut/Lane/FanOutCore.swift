import Calendars
import EventLoop
import HTTP
import Kafka
import Notifications
import Store
import Web
import Worker

/// Builds the parts of a fan-out lane, wires them, and passes on their calls.
final class FanOutCore {
  private let loop: EventLoop
  private let settings: FanOutSettings
  private let logger: Logger
  private let health: Health
  private let clients: ClientMetrics
  private let lag: DeliveriesLag
  /// The offset where the consumer found the end of the partition.
  private var reachedEnd: Int64?
  private let shards: Shards
  private let admin: Admin
  private let clock: ClockWatch
  private let watch: RegistryWatch
  private let membership: LaneMembership
  private let events: EventProducer
  private let applications: ApplicationsReader
  private let awaited = AwaitedEvents()
  private let admission: Admission
  private let sessions: Sessions
  private let registration: DeviceRegistration
  private let responses: Responses
  private let ticker: Timer
  /// Nil before the lane starts and after it ends.
  private var consumer: Consumer?
  /// The index of the lane's partition; nil before the lane reads it.
  private var deliveries: Int?
  /// That of the address that devices are told comes first.
  private var servers: [HTTPServer] = []
  /// Runs the lane's tasks.
  weak var owner: FanOutLane?

  init(on loop: EventLoop, _ settings: FanOutSettings, logger: Logger, health: Health, metrics: FanOutMetrics) throws(KafkaError) {
    admin = try Admin(settings.kafka, timeoutMilliseconds: settings.askMilliseconds)
    self.loop = loop
    self.settings = settings
    self.logger = logger
    self.health = health
    (clients, lag) = (metrics.clients, metrics.lag)
    shards = Shards(on: loop, settings.store, clientName: "carillon-fan-out")
    clock = ClockWatch(shards, metrics: metrics.redis, logger: logger, health: health)
    watch = RegistryWatch(on: loop, settings, shards, admin, clock, metrics: metrics.redis)
    membership = LaneMembership(on: loop, Lanes(shards), name: settings.worker, lifetimeMilliseconds: settings.limits.laneMilliseconds)
    events = EventProducer(on: loop, settings, metrics: metrics)
    let receipts = Receipts(settings.keys)
    admission = Admission(on: loop, settings, logger: logger, metrics: metrics)
    let (people, categories) = (People(topic: settings.topics.people), PublishedCategories(topic: settings.topics.categories))
    applications = ApplicationsReader(
      on: loop, settings.kafka, settings.topics, logger: logger, health: health, following: [people, categories])
    sessions = Sessions(settings, shards, events, receipts, applications, people, categories, logger: logger, metrics: metrics)
    responses = Responses(receipts, events, metrics: metrics)
    let recipients = Recipients(shards)
    let registrations = Registrations(shards, recipients, rememberedMilliseconds: settings.longestLifetime * 1000)
    registration = DeviceRegistration(
      settings, admission, sessions, Registrar(events, registrations, sessions.mailboxes, awaited), recipients, watch, logger: logger,
      metrics: metrics)
    ticker = Timer(on: loop)
    ticker.handler = { [unowned self] in tick() }
    (admission.owner, sessions.owner, watch.owner, membership.owner) = (self, self, self, self)
    applications.owner = self
  }

  // MARK: Starting

  /// Connects, claims a partition, reads it from its end, and admits devices. Answers where they connect.
  func start() async throws -> SocketAddress {
    watchRedis()
    try await events.open(admin, handler: self, logger: logger)
    var options = Consumer.Options()
    // A fetch waits for company, since fetches are most of the work of an idle lane. It waits less than in the transform stage, because
    // deliveries have waited there already, and because takeovers come this way too.
    options.fetch = (bytes: 200_000, waitMilliseconds: 12)
    // The last offsets of a log may have no record, for example after a transaction.
    options.reportsPartitionEnd = true
    let consumer = try Consumer(on: loop, settings.kafka, options, handler: self)
    self.consumer = consumer
    consumer.onLog = { [logger] in logger.log($0) }
    try await shards.waitUntilUp(withinMilliseconds: settings.startMilliseconds)
    let identity = ClusterIdentity(
      kafka: try await admin.describeCluster().id ?? "", topicPrefix: settings.topics.prefix, buckets: settings.store.buckets,
      name: settings.cluster)
    _ = try await identity.join(shards) { [admin, settings] in try await admin.registryEnds(settings.topics).isEmpty }
    watch.identity = identity
    if !DueTimes.hasZones {
      logger.error("the program was linked without the time zone database: quiet hours cannot be set, and count for nothing")
    }
    try await applications.start(admin, withinMilliseconds: settings.startMilliseconds)
    let count = try await admin.describe(topic: settings.topics.deliveries).partitions.count
    let partition = try await membership.claim(partitions: count)
    sessions.begin(partition: partition)
    // An earlier start may have failed with a refusal.
    health.set("writes", ready: true)
    let assigned = try await consumer.assign([(TopicPartition(settings.topics.deliveries, partition), .latest)])
    if let own = assigned.first {
      deliveries = own.index
      lag.begin(
        partition: partition, next: own.startOffset ?? 0, at: WallClock.milliseconds(), end: consumer.knownEndElsewhere(of: own.index))
    }
    let server = try listen(at: settings.listen, settings.tls)
    if let plain = settings.listenPlain {
      let address = try listen(at: plain, nil).localAddress
      logger.info("devices may also connect without TLS", ["address": "\(address)"])
    }
    ticker.start(after: 1000, repeating: 1000)
    health.set("kafka", ready: true)
    logger.info("devices may connect", ["address": "\(server.localAddress)", "deliveries": partition])
    return server.localAddress
  }

  private func watchRedis() {
    let address = settings.store
    health.set("redis", ready: false, "connecting to \(address)")
    health.set("kafka", ready: false, "connecting")
    shards.onUp = { [unowned self] in
      logger.info("Redis answers", ["address": "\(address)"])
      health.set("redis", ready: false, "Redis answers; it has not been compared with Kafka yet")
      admission.suspend(!clock.isRight)
      watch.lost()
      if shards.epoch > 0 { sessions.resyncAll("Redis was away") }
    }
    clock.onJudged = { [unowned self] isRight in
      // Devices stay connected. Their notifications wait in the mailboxes until the sessions resync.
      sessions.isClockRight = isRight
      admission.suspend(!isRight || !shards.isUp)
    }
    shards.onDown = { [unowned self] error in
      admission.suspend(true)
      watch.lost()
      health.set("redis", ready: false, "\(error)")
      logger.warning("the connection to Redis is lost; devices stay connected", ["error": "\(error)"])
    }
    shards.onError = { [clients] in clients.redisFailed($0) }
    shards.onRefusal = { [unowned self] _ in watch.refused() }
    shards.onMended = { [logger] key in logger.warning("removed a key in Redis that held a value of a wrong type", ["key": key]) }
    shards.onAttemptFailed = { [logger] error, wait in
      logger.warning("Redis does not answer", ["error": "\(error)", "retryMs": "\(wait)"])
    }
    shards.start()
  }

  private func listen(at address: SocketAddress, _ tls: TLSServerConfiguration?) throws -> HTTPServer {
    var configuration = HTTPServerConfiguration()
    configuration.tls = tls
    configuration.maximumConnections = settings.limits.connections
    configuration.maximumConnectionsPerAddress = settings.limits.connectionsPerAddress
    configuration.maximumDescriptor = settings.maximumDescriptor
    (configuration.reusePort, configuration.takesAnotherPort) = (settings.sharesPort, settings.takesAnotherPort)
    var routes = HTTPRoutes()
    routes.addWebSocket(DeviceProtocol.path, settings.webSocket) { [unowned self] request in
      admission.refusal(of: request) ?? .accept(sessions.make())
    }
    if settings.servesWeb { WebPages(.embedded, settings).add(to: &routes) }
    let server = try HTTPServer(on: loop, at: address, configuration: configuration, routes: routes)
    servers.append(server)
    return server
  }

  // MARK: Running

  private func tick() {
    sessions.tick()
    events.showQueues(health)
    if let consumer, let deliveries {
      let next = [consumer.position(of: deliveries), reachedEnd].compactMap { $0 }.max()
      lag.told(next: next, taken: consumer.timestamp(of: deliveries), at: WallClock.milliseconds())
    }
    admission.count(servers)
  }

  /// Runs a task that waits for Redis or Kafka.
  func perform(_ task: LaneTask) async {
    switch task {
    case .checkRedis: await watch.check()
    case .askForApplications: await applications.ask(admin)
    case .enter(let generation): await registration.enter(generation)
    case .resync(let generation): await registration.resync(generation)
    case .change(let generation, let change): await registration.change(generation, change)
    case .unregister(let generation, let request): await registration.unregister(generation, request)
    }
  }

  // MARK: The end

  /// Tells each device when to reconnect, closes its session, and waits until Kafka has all acknowledged outcomes.
  func drain(withinMilliseconds milliseconds: Int) async {
    admission.drain()
    for server in servers { server.stopAccepting() }
    let end = Deadline(on: loop, after: milliseconds)
    var drain = Drain(on: loop, sessions, settings, withinMilliseconds: milliseconds)
    await drain.run()
    for server in servers { await server.close(withinMilliseconds: min(end.left, 3_000)) }
    await events.flush(withinMilliseconds: max(0, end.left - Self.partingMilliseconds))
    await membership.leave()
    watch.close()
    await admin.close()
    await applications.close()
    ticker.close()
    lag.end()
    admission.close()
    await consumer?.close(withinMilliseconds: end.left(atLeast: Self.partingMilliseconds / 2))
    await events.close(withinMilliseconds: end.left(atLeast: Self.partingMilliseconds / 2))
    shards.close()
    sessions.outcomes.close()
    (owner, consumer, servers) = (nil, nil, [])
  }

  /// The part of a drain's time that is reserved for leaving Redis and Kafka.
  private static let partingMilliseconds = 2_000
}

// MARK: Calls of the parts

extension FanOutCore {
  /// Process this hello now. `Admission.ended` must follow.
  func admitted(_ generation: UInt64) { run(.enter(generation)) }

  /// There is no free slot for this hello.
  func refused(_ generation: UInt64, retryAfter milliseconds: Int) {
    sessions[generation]?.goAway(.serviceUnavailable, retryAfter: milliseconds)
  }

  /// Whether the hello's connection still exists and waits for admission.
  func isWaiting(_ generation: UInt64) -> Bool { sessions[generation]?.isEntering ?? false }
}

extension FanOutCore {
  /// Admits a session that has said hello, or lets it wait for its turn.
  func greeted(_ generation: UInt64) { admission.arrived(generation) }

  /// Emits what the person did with a notification.
  func responded(_ frame: ResponseFrame, in session: OpenSession) { responses.respond(frame, in: session) }

  func run(_ task: LaneTask) { owner?.run(task) }

  /// Answers when a device that is told to go away may reconnect, in milliseconds from now.
  func retryAfter(atLeast milliseconds: Int) -> Int { admission.retryAfter(atLeast: milliseconds) }
}

extension FanOutCore {
  /// A check is due: call `check` in a task of the lane.
  func redisCheckIsDue() { run(.checkRedis) }

  /// Redis was checked. `missing` is what it lacks now, `before` what it lacked at the check before. What is `usual` soon comes by itself.
  func redisWasChecked(missing: String?, isUsual: Bool, before: String?) {
    health.set("redis", ready: missing == nil, missing ?? "")
    // What does not end soon is logged as a condition that lasts.
    if let missing, missing != before {
      logger.log(isUsual ? .info : .warning, "Redis lacks data or cannot be used", ["reason": missing])
    }
    if missing == nil, before != nil { sessions.resyncAll("Redis has all data again") }
  }

  /// Redis has evicted keys, as the report says.
  func redisHasEvicted(_ report: String) { logger.error("Redis has evicted keys", ["reason": report]) }

  /// The lane had counted as dead, so another lane may have claimed its partition too.
  func laneLapsed() { sessions.resyncAll("the lane's heartbeat had lapsed") }

  /// Redis begins to refuse writes, or with nil accepts them again.
  func redisRefusesWrites(_ refusal: StoreError?) {
    health.set("writes", ready: refusal == nil, refusal.map { "\($0)" } ?? "")
    if let refusal {
      logger.warning("Redis refuses writes; new devices are asked to reconnect later", ["error": "\(refusal)"])
    }
  }
}

extension FanOutCore: ApplicationsReaderOwner {
  func applicationsAreToBeAskedFor() { run(.askForApplications) }

  func applicationsFailed(_ error: KafkaError) { failed(error) }
}

extension FanOutCore: ConsumerHandler, ProducerHandler {
  func consumerReceived(_ batch: RecordBatch) {
    for index in batch.indices { sessions.received(batch[index]) }
  }

  func consumerAssigned(_ partitions: [AssignedPartition]) { reachedEnd = nil }

  func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) { reachedEnd = offset }

  func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
    clients.kafkaFailed(stretch.error.code)
    logger.error(
      "deliveries cannot be read and are skipped; sessions resync with their mailboxes",
      [
        "partition": "\(stretch.partition.topicPartition)", "first": stretch.offsets.lowerBound, "last": stretch.offsets.upperBound - 1,
        "error": "\(stretch.error)",
      ])
    sessions.resyncAll("deliveries cannot be read")
    return true
  }

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }

  func consumerFailed(_ error: KafkaError) { failed(error) }

  func producerDelivered(_ reports: [DeliveryReport]) {
    clients.count(reports)
    var outcomes: [(slot: Int, failed: Bool)] = []
    for report in reports {
      let failed = report.failure != nil
      switch EventPurpose(opaque: report.opaque) {
      case .nothing: break
      case .outcome(let slot): outcomes.append((slot, failed))
      case .response(let slot): responses.reported(slot, failed: failed)
      case .awaited(let number): awaited.reported(number, failed: failed)
      }
    }
    if !outcomes.isEmpty { sessions.outcomes.reported(outcomes) }
  }

  func producerHasRoom() { sessions.outcomes.emitUnsent() }

  func producerFailed(_ error: KafkaError) { failed(error) }

  private func failed(_ error: KafkaError) {
    clients.kafkaFailed(error.code)
    logger.warning("Kafka client error", ["error": "\(error)"])
    guard error.isFatal else { return }
    health.set("client", ready: false, "\(error)")
    owner?.failed(error)
  }
}
