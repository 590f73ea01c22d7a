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
  private let ownership: Ownership
  private let crashes: CrashWatch
  private var requestPartitions = 0
  private var devicePartitions = 0
  private var sessionMilliseconds = TransformCore.leastSessionByDefault
  private var careful = CarefulWork()
  private var isMarking = false
  private let markers: MarkerStore
  private var admin: Admin?
  private var producer: Producer?
  private var pipeline: Pipeline?
  private var consumer: Consumer?
  private var committer: OffsetCommitter?
  /// What is to know of the consumer's partitions for each record, by index.
  private var partitions: [(isRegistry: Bool, era: UInt32)] = []
  /// The partitions that the log knows of.
  private var logged: Set<TopicPartition> = []
  /// Whether Redis has what was written to it: the markers were compared since its connection came up.
  private var isSound = false
  /// Counts what makes the markers doubtful, so that a comparison knows whether it still holds.
  private var doubts = 0
  private var isChecking = false
  private let checkTimer: Timer
  /// Runs while partitions were begun and have not been idle yet.
  private var calmTimer: Timer?
  /// Tasks that wait for the registry.
  private var registryWaits = 0
  /// Runs the asynchronous part of the lane's work on its actor.
  var runTask: ((TransformTask) -> Void)?
  /// Batches, or the rest of them, that found no place.
  private var backlog: [(batch: RecordBatch, next: Int)] = []
  private var isClosing = false
  private var whenIdle: CheckedContinuation<Void, Never>?
  /// Told when a client of Kafka can do nothing any more; only a new lane can.
  var onFatal: ((KafkaError) -> Void)?
  private var hasFailed = false

  init(on loop: EventLoop, _ settings: TransformSettings, logger: Logger, health: Health, metrics: TransformMetrics) {
    self.loop = loop
    self.settings = settings
    self.logger = logger
    self.health = health
    self.metrics = metrics
    let scripts = [
      JudgeScript.script, JudgeScript.evict, AudienceCalls.script, CrashWatch.script, CrashWatch.clearScript, RegistryScript.apply,
      MarkerStore.script,
    ]
    redis = RedisConnection(
      on: loop, RedisConfiguration(settings.redis, clientName: "carillon-transform", maximumInFlight: 65_536, scripts: scripts))
    markers = MarkerStore(redis, settings.keys)
    crashes = CrashWatch(redis)
    ownership = Ownership(markers, crashes, settings.topics)
    var fire: () -> Void = {}
    checkTimer = Timer(on: loop) { fire() }
    fire = { [unowned self] in runTask?(.check) }
    calmTimer = Timer(on: loop) { [unowned self] in lookForCalm() }
  }

  func start() async throws {
    watchRedis()
    watchMarkers()
    let producer = try Producer(on: loop, settings.kafka, handler: self)
    self.producer = producer
    producer.onLog = { [logger] in logger.log($0) }
    admin = try Admin(settings.kafka)
    let pipeline = Pipeline(
      on: loop, settings, redis: redis, outcomes: try Outcomes(settings, producer: producer), logger: logger, metrics: metrics)
    pipeline.onDone = { [unowned self] in done($0) }
    pipeline.onLost = { [unowned self] in doubt("Redis does not have a bucket any more") }
    pipeline.onRefusal = { [unowned self] in refused($0) }
    pipeline.mayWork = { [unowned self] in isSound }
    pipeline.isCurrent = { [unowned self] in committer?.isCurrent($0) ?? false }
    self.pipeline = pipeline
    try await redis.waitUntilUp(withinMilliseconds: settings.startMilliseconds)
    sessionMilliseconds = await sessionTimeout()
    try await countPartitions()
    try join()
  }

  /// A partition of `devices` belongs to the owner of the partition of requests with the same number, modulo their count: the group's
  /// strategy would balance both topics as if their partitions were alike.
  private func countPartitions() async throws {
    guard let admin else { return }
    requestPartitions = try await admin.describe(topic: settings.topics.requests).partitions.count
    devicePartitions = try await admin.describe(topic: settings.topics.devices).partitions.count
  }

  /// The wanted session timeout, or the shortest that the brokers allow.
  private func sessionTimeout() async -> Int {
    let wanted = settings.sessionMilliseconds
    guard let admin, let cluster = try? await admin.describeCluster(), let broker = cluster.brokers.keys.min() else { return wanted }
    // The embedded broker forgets members that are silent while their group forms, which takes it three seconds.
    if cluster.isEmbedded { return max(wanted, Self.leastSessionByDefault) }
    let text = try? await admin.settings(ofBroker: broker)["group.min.session.timeout.ms"]
    // Where the brokers do not tell, the value that they have by default is the safe one.
    let least = text.flatMap { Int($0) } ?? Self.leastSessionByDefault
    guard wanted < least else { return wanted }
    logger.warning(
      "the brokers allow no shorter session: a worker that was killed is noticed later; set group.min.session.timeout.ms there",
      ["wantedMs": wanted, "ms": least])
    return least
  }

  private static let leastSessionByDefault = 6_000

  /// Makes a consumer, and joins the group.
  private func join() throws {
    var options = Consumer.Options(group: settings.group)
    options.offersPartitions = true
    let (requests, devices) = (requestPartitions, devicePartitions)
    options.companions = { [topics = settings.topics] partition in
      guard partition.topic == topics.requests else { return [] }
      return stride(from: Int(partition.partition), to: devices, by: max(requests, 1)).map { TopicPartition(topics.devices, Int32($0)) }
    }
    options.sessionTimeoutMilliseconds = sessionMilliseconds
    let consumer = try Consumer(on: loop, settings.kafka, options, handler: self)
    self.consumer = consumer
    consumer.onLog = { [logger] in logger.log($0) }
    // A Redis that is rebuilt has to know it: revisions have it in them.
    consumer.commitNote = { [unowned self] in Marker.note(era: ownership.era($0)) }
    let committer = OffsetCommitter(on: loop, consumer, limit: settings.inFlight) { [logger] in
      logger.warning("an offset was not committed; it is tried again", ["error": "\($0)"])
    }
    // Markers stand for what is durable, so they are raised first; then the group may know.
    committer.prepare = { [unowned self] offsets, then in
      if isSound { ownership.raise(offsets, then) } else { then([]) }
    }
    self.committer = committer
    try consumer.subscribe([settings.topics.requests])
  }

  private func watchRedis() {
    let (logger, health, address) = (logger, health, settings.redis)
    health.set("redis", ready: false, "connecting to \(address)")
    health.set("kafka", ready: false, "no partition is assigned yet")
    redis.onUp = { [unowned self] in
      logger.info("Redis answers", ["address": "\(address)"])
      runTask?(.check)
    }
    redis.onDown = { [unowned self] error in
      health.set("redis", ready: false, "\(error)")
      logger.warning("Redis is gone; consumption pauses", ["error": "\(error)"])
      doubt(nil)
    }
    redis.onAttemptFailed = { error, wait in logger.warning("Redis does not answer", ["error": "\(error)", "retryMs": "\(wait)"]) }
    redis.start()
  }

  // MARK: Markers

  private func watchMarkers() {
    ownership.onSuspicion = { [unowned self] suspicion in
      careful.note(suspicion)
      guard suspicion.isCareful else { return }
      logger.warning("workers have ended at these records again and again: they are worked on in small groups", ["records": careful.left])
    }
    ownership.onDoubt = { [unowned self] in doubt("the markers are not as they were left") }
    ownership.onRefusal = { [unowned self] in refused($0) }
    ownership.onRaised = { [metrics] in metrics.markersRaised.increment(by: $0) }
    ownership.onReturn = { [unowned self] partition, from, to in
      metrics.returns.increment()
      logger.warning("Redis has lost something: going back", ["partition": "\(partition)", "from": from, "to": to])
    }
  }

  /// Redis may have lost something: nothing is judged until the markers were compared.
  private func doubt(_ reason: String?) {
    guard !isClosing else { return }
    isSound = false
    doubts += 1
    ownership.doubt()
    pipeline?.isRegistryWhole = false
    consumer?.pauseAll()
    if let reason { logger.warning("the markers are compared", ["reason": reason]) }
    if redis.isUp { runTask?(.check) }
  }

  /// Redis takes nothing that writes: nothing is lost, and nothing is done until it does.
  private func refused(_ error: RedisError) {
    guard isSound, !isClosing else { return }
    isSound = false
    // A comparison that is under way has not tried to write.
    doubts += 1
    ownership.probe()
    consumer?.pauseAll()
    health.set("redis", ready: false, "\(error)")
    logger.warning("Redis refuses what writes; consumption pauses", ["error": "\(error)"])
    checkTimer.start(after: 500)
  }

  /// Compares the markers, one comparison at a time, until they are sound or there is something to wait for.
  func check() async {
    guard !isChecking, !isClosing else { return }
    isChecking = true
    defer { isChecking = false }
    while redis.isUp, !isClosing, let consumer {
      let before = doubts
      let finding = await ownership.check(consumer) { [self] in try await isNewCluster() }
      guard before == doubts else { continue }
      for partition in consumer.assignment { partitions[partition.index].era = ownership.era(partition.index) }
      switch finding {
      case .sound:
        if !isSound { sound() }
        logAssignment(consumer)
        if ownership.hasCounted { calmTimer?.start(after: Self.calmMilliseconds) }
        return checkTimer.start(after: Self.checkMilliseconds)
      case .again(0, _): continue
      case .again(let milliseconds, let reason):
        logger.debug("the markers are compared again", ["reason": reason])
        return checkTimer.start(after: milliseconds)
      case .empty:
        isSound = false
        consumer.pauseAll()
        health.set("redis", ready: false, "Redis has lost what it had, though Kafka has committed offsets: run 'carillon rebuild'")
        logger.error("Redis has lost what it had, though Kafka has committed offsets; run 'carillon rebuild'")
        return checkTimer.start(after: 2_000)
      case .foreign(let partition):
        logger.warning("a partition has another owner; joining the group again", ["partition": "\(partition)"])
        await rejoin()
      }
    }
  }

  /// How often the markers are compared without a reason, which finds out that an idle Redis was emptied.
  private static let checkMilliseconds = 15_000

  /// What has been idle for once was begun without harm.
  private func lookForCalm() {
    guard isSound, redis.isUp, !isClosing, let committer else { return }
    if backlog.isEmpty { crashes.cleared(ownership.takeCalm { committer.inFlight(of: $0) == 0 }) }
    if ownership.hasCounted { calmTimer?.start(after: Self.calmMilliseconds) }
  }

  /// A record that takes its worker's process down does so sooner, or is under way.
  private static let calmMilliseconds = 2_000

  private func sound() {
    isSound = true
    health.set("redis", ready: true)
    pipeline?.dropOver()
    runTask?(.awaitRegistry)
    advance()
  }

  /// Whether no partition was ever worked on, so that an empty Redis is a new one.
  private func isNewCluster() async throws -> Bool {
    guard let admin, let consumer else { return false }
    let topics = try await admin.describeCluster().topics
    let partitions = [settings.topics.requests, settings.topics.devices].flatMap { name in
      topics[name]?.partitions.map { TopicPartition(name, $0.id) } ?? []
    }
    return try await consumer.committed(partitions).isEmpty
  }

  /// Waits until Redis has all registrations that Kafka has now, whoever applies them; until then no audience is looked up.
  func awaitRegistry() async {
    let before = doubts
    registryWaits += 1
    defer { registryWaits -= 1 }
    while before == doubts, isSound, !isClosing, let admin {
      do {
        let ends = try await admin.registryEnds(settings.topics)
        while before == doubts, isSound, !isClosing {
          if await markers.hasRegistry(upTo: ends) == true, before == doubts, isSound {
            pipeline?.isRegistryWhole = true
            return advance()
          }
          committer?.commit()
          await pause(50)
        }
      } catch {
        logger.warning("the registry's end is not known", ["error": "\(error)"])
        await pause(500)
      }
    }
  }

  private func pause(_ milliseconds: Int) async {
    var timer: Timer?
    await withCheckedContinuation { continuation in
      timer = Timer(on: loop) { continuation.resume() }
      timer?.start(after: milliseconds)
    }
    timer?.close()
  }

  /// Leaves the group and joins it again.
  private func rejoin() async {
    doubt(nil)
    backlog = []
    await consumer?.close()
    committer?.close()
    (consumer, committer) = (nil, nil)
    guard !isClosing else { return }
    do {
      try join()
      if !isSound { consumer?.pauseAll() }
    } catch {
      health.set("kafka", ready: false, "\(error)")
      logger.error("the group could not be joined again", ["error": "\(error)"])
    }
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
      guard redis.isUp, isSound else { return consumer.pauseAll() }
      guard pipeline.hasRoom else { return consumer.hold() }
      if careful.isNeeded { return advanceCarefully(batch, first, committer, pipeline) }
      let (begun, next) = begin(batch, first..<batch.count, committer)
      if !begun.isEmpty { pipeline.take(batch, begun) }
      if next < batch.count { return consumer.hold() }
    }
    if redis.isUp, isSound, !isClosing {
      consumer.release()
      consumer.resumeAll { [self] in waitsForRegistry($0) }
    }
  }

  /// Until the registry is whole only registrations flow: requests for people would wait for it, and take all the places meanwhile.
  private func waitsForRegistry(_ index: Int) -> Bool { pipeline?.isRegistryWhole == false && !partitions[index].isRegistry }

  /// Begins the first batch's records in this range, until there is no place left: what was begun, and where it stopped.
  private func begin(_ batch: RecordBatch, _ range: Range<Int>, _ committer: OffsetCommitter) -> (begun: [BegunRecord], next: Int) {
    var begun: [BegunRecord] = []
    begun.reserveCapacity(range.count)
    var next = range.lowerBound
    scan: while next < range.upperBound {
      let record = batch[next]
      if !ownership.hasUnconfirmed || isWork(record) {
        switch committer.begin(record) {
        case .begun(let ticket):
          let place = partitions[record.partitionIndex]
          begun.append(BegunRecord(index: next, ticket: ticket, isRegistration: place.isRegistry, era: place.era))
        case .ignored: break
        case .full: break scan
        }
      }
      next += 1
    }
    if next == batch.count { backlog.removeFirst() } else { backlog[0].next = next }
    return (begun, next)
  }

  /// Works on a group of one partition's records, after Redis has noted which; the next comes when it is done.
  private func advanceCarefully(_ batch: RecordBatch, _ first: Int, _ committer: OffsetCommitter, _ pipeline: Pipeline) {
    consumer?.hold()
    guard !isMarking, pipeline.isIdle else { return }
    let partition = TopicPartition(batch[first].topic, batch[first].partition)
    let field = ownership.field(partition)
    let (begun, next) = begin(batch, first..<careful.groupEnd(batch, from: first, field), committer)
    guard let start = begun.first else {
      if next > first { advance() }
      return
    }
    let group = CrashWatch.Group(first: batch[start.index].offset, count: Int64(begun.count))
    isMarking = true
    crashes.mark(field, group) { [self] isNoted in
      isMarking = false
      if careful.isOver(after: begun.count), isNoted {
        crashes.cleared(consumer?.assignment.map { ownership.field($0.topicPartition) } ?? [])
      }
      guard careful.takeCondemned(field, group.first) else { return pipeline.take(batch, begun) }
      pipeline.condemn(batch, start, tries: CrashWatch.tries)
    }
  }

  /// Whether the first record that is read of a partition fits the marker at which reading began.
  private func isWork(_ record: RecordView) -> Bool {
    let index = record.partitionIndex
    guard let assigned = consumer?.assignment.first(where: { $0.index == index }), assigned.generation == record.generation else {
      return false
    }
    let partition = assigned.topicPartition
    switch ownership.judge(partition, index, offset: record.offset, timestamp: record.timestamp) {
    case .work: return true
    case .skip: return false
    case .madeAnew:
      logger.warning("the topic was made anew: its markers begin again", ["partition": "\(partition)"])
      consumer?.startAgain(index)
      return false
    }
  }

  private func done(_ ticket: RecordTicket) {
    committer?.finish(ticket)
    guard let committer, let pipeline else { return }
    // Half of the places, so that a batch is worth its turn.
    if !backlog.isEmpty, careful.isNeeded ? pipeline.isIdle : pipeline.hasRoom && committer.span <= settings.inFlight / 2 { advance() }
    if pipeline.isIdle, let waiting = whenIdle {
      whenIdle = nil
      waiting.resume()
    }
  }

  // MARK: Reports

  func producerDelivered(_ reports: [DeliveryReport]) {
    for report in reports {
      switch OutcomeToken(report.token) {
      case .work(let place): pipeline?.reported(place, failure: report.failure)
      case .eviction(let number): pipeline?.evictionReported(number, failed: report.failure != nil)
      case nil: if report.failure != nil { metrics.deliveriesLost.increment() }
      }
    }
  }

  func producerHasRoom() {}

  func producerFailed(_ error: KafkaError) { failed(error) }

  // MARK: Partitions

  func consumerOffered(_ partitions: [AssignedPartition]) { runTask?(.check) }

  func consumerAssigned(_ assigned: [AssignedPartition]) {
    committer?.assigned(assigned)
    for partition in assigned {
      while partitions.count <= partition.index { partitions.append((false, 0)) }
      partitions[partition.index].isRegistry = partition.topicPartition.topic == settings.topics.devices
    }
    health.set("kafka", ready: true)
    consumer?.pause(assigned.map(\.index).filter { waitsForRegistry($0) })
    if !redis.isUp || !isSound || !backlog.isEmpty { consumer?.pauseAll() }
  }

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) {
    logged.subtract(partitions.map(\.topicPartition))
    logger.info(isLost ? "partitions lost" : "partitions revoked", names(partitions))
    guard let committer else { return revocation.finish() }
    if isLost { ownership.revoked(partitions) } else { crashes.cleared(partitions.map { ownership.field($0.topicPartition) }) }
    committer.revoked(partitions, isLost: isLost, revocation: revocation)
  }

  /// They begin one by one; the log has one line for all that came together.
  private func logAssignment(_ consumer: Consumer) {
    let assignment = consumer.assignment
    guard !logged.isSuperset(of: assignment.map(\.topicPartition)) else { return }
    logged = Set(assignment.map(\.topicPartition))
    logger.info("partitions assigned", names(assignment))
  }

  private func names(_ partitions: [AssignedPartition]) -> KeyValuePairs<String, any LogValue> {
    func numbers(_ topic: String) -> String {
      PartitionNames.text(partitions.map(\.topicPartition).filter { $0.topic == topic }.map(\.partition))
    }
    return ["requests": numbers(settings.topics.requests), "devices": numbers(settings.topics.devices)]
  }

  func consumerFailed(_ error: KafkaError) { failed(error) }

  private func failed(_ error: KafkaError) {
    logger.warning("Kafka has a complaint", ["error": "\(error)"])
    guard error.isFatal else { return }
    hasFailed = true
    health.set("client", ready: false, "\(error)")
    onFatal?(error)
  }

  // MARK: The end

  func close(withinMilliseconds milliseconds: Int) async {
    isClosing = true
    let end = Deadline(on: loop, after: milliseconds)
    consumer?.pauseAll()
    backlog = []
    if pipeline?.isIdle == false, !hasFailed {
      let deadline = Timer(on: loop) { [self] in
        whenIdle?.resume()
        whenIdle = nil
      }
      // Giving the partitions up, and telling Kafka what was done, takes a while, too.
      deadline.start(after: milliseconds - min(milliseconds / 2, Self.partingMilliseconds))
      await withCheckedContinuation { continuation in
        // The loop may have turned since the question above.
        if pipeline?.isIdle == false { whenIdle = continuation } else { continuation.resume() }
      }
      deadline.close()
    }
    checkTimer.stop()
    calmTimer?.close()
    calmTimer = nil
    let fields = consumer?.assignment.map { ownership.field($0.topicPartition) } ?? []
    let leaving = end.left(atLeast: 2 * Self.flushMilliseconds) - Self.flushMilliseconds
    await consumer?.close(withinMilliseconds: min(leaving, Self.partingMilliseconds))
    crashes.cleared(fields)
    committer?.close()
    while registryWaits > 0 || isChecking { await pause(20) }
    await admin?.close()
    await producer?.close(withinMilliseconds: end.left(atLeast: Self.flushMilliseconds))
    redis.close()
    pipeline?.close()
    checkTimer.close()
    runTask = nil
    onFatal = nil
    (consumer, committer, producer, pipeline, admin) = (nil, nil, nil, nil, nil)
  }

  /// What is kept of a drain's time for the parting, and what that leaves for Kafka's producer at least.
  private static let (partingMilliseconds, flushMilliseconds) = (10_000, 1_000)
}
