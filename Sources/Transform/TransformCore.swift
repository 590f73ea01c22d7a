import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// What the lane consists of: makes the parts, hands each its neighbours, and does what the lane's phase asks for. Loop-confined.
final class TransformCore: TransformTaskRunner {
  private let loop: EventLoop
  private let settings: TransformSettings
  private let logger: Logger
  private let health: Health
  private let metrics: TransformMetrics
  private let state = LaneState()
  private let shards: Shards
  private let watch: RedisWatch
  private let markers: Markers
  private let checkpoints: Checkpoints
  private let crashes: CrashLoopDetector
  private let lag: LaneLag
  private let groupWatch: GroupWatch
  private let applications: ApplicationsReader
  private var plan: GroupPlan?
  private var admin: Admin?
  private var producers: LaneProducers?
  private var journal: Journal?
  private var pipeline: Pipeline?
  private var intake: Intake?
  private var consumer: Consumer?
  private var committer: OffsetCommitter?
  private let comparisonTimer: Timer
  /// Runs while partitions were begun and have not been idle yet.
  private let healthyTimer: Timer
  /// Comparisons of the markers and waits for the registry that are under way.
  private var isComparing = false
  private var isRejoining = false
  private var registryWaits = 0
  private var whenIdle: CheckedContinuation<Void, Never>?
  weak var owner: (any TransformCoreOwner)?
  private var hasFailed = false

  init(on loop: EventLoop, _ settings: TransformSettings, logger: Logger, health: Health, metrics: TransformMetrics) {
    self.loop = loop
    self.settings = settings
    self.logger = logger
    self.health = health
    self.metrics = metrics
    shards = Shards(on: loop, settings.store, clientName: "carillon-transform")
    watch = RedisWatch(on: loop, settings.store, shards, state, logger: logger, health: health, metrics: metrics)
    markers = Markers(shards)
    crashes = CrashLoopDetector(CrashLoops(shards))
    checkpoints = Checkpoints(markers, crashes, settings.topics)
    lag = LaneLag(on: loop, settings, checkpoints, logger: logger, metrics: metrics)
    groupWatch = GroupWatch(on: loop, settings)
    applications = ApplicationsReader(on: loop, settings.kafka, settings.topics, logger: logger, health: health)
    comparisonTimer = Timer(on: loop)
    healthyTimer = Timer(on: loop)
    comparisonTimer.handler = { [unowned self] in run(.compare) }
    healthyTimer.handler = { [unowned self] in clearHealthy() }
    lag.owner = self
    groupWatch.owner = self
  }

  func start() async throws {
    watch.owner = self
    checkpoints.owner = self
    applications.owner = self
    watch.start()
    health.set("kafka", ready: false, Self.waitsForPartitions)
    // A delivery may come twice, and late: the mailbox knows better.
    let producers = try await LaneProducers(on: loop, settings.kafka, promptMayRepeat: true, handler: self) { [logger] in logger.log($0) }
    self.producers = producers
    lag.producers = producers
    let admin = try Admin(settings.kafka)
    self.admin = admin
    let journal = try Journal(on: loop, settings, producer: producers.patient, metrics: metrics)
    self.journal = journal
    journal.owner = self
    let outcomes = try Outcomes(settings, events: producers.patient, deliveries: producers.prompt, metrics: metrics.clients)
    let pipeline = Pipeline(
      on: loop, settings, state: state, shards: shards, checkpoints: checkpoints, applications: applications, outcomes: outcomes,
      journal: journal, logger: logger, metrics: metrics)
    pipeline.owner = self
    self.pipeline = pipeline
    intake = Intake(
      settings, state: state, checkpoints: checkpoints, crashes: crashes, pipeline: pipeline, journal: journal, logger: logger)
    try await shards.waitUntilUp(withinMilliseconds: settings.startMilliseconds)
    let identity = ClusterIdentity(kafka: try await admin.describeCluster().id ?? "", topicPrefix: settings.topics.prefix)
    try await identity.claim(shards)
    plan = try await GroupPlan(settings, admin, logger)
    plan?.show(settings, in: metrics)
    try await applications.start(admin, withinMilliseconds: settings.startMilliseconds)
    try join()
    // Redis has answered before there was a consumer to compare for, and a lane that gets no partition would never say so.
    run(.compare)
  }

  /// Makes a consumer, and joins the group.
  private func join() throws {
    guard let plan, let intake else { return }
    let consumer = try Consumer(on: loop, settings.kafka, plan.options(settings), handler: self)
    self.consumer = consumer
    consumer.onLog = { [logger] in logger.log($0) }
    // A Redis that is rebuilt has to know it: revisions have it in them.
    consumer.commitNote = { [unowned self] in Marker.note(incarnation: checkpoints.table.incarnation($0)) }
    let committer = OffsetCommitter(on: loop, consumer, limit: settings.inFlight) { [logger, metrics] in
      metrics.clients.kafkaFailed($0.code)
      logger.warning("an offset was not committed; it is tried again", ["error": "\($0)"])
    }
    // Markers stand for what is durable, so they are raised first; then the group may know.
    committer.prepare = { [unowned self] offsets, then in
      journal?.flush()
      if state.phase.mayCheckpoint { checkpoints.raise(offsets, then) } else { then([]) }
    }
    self.committer = committer
    intake.attach(consumer, committer)
    lag.attach(consumer, committer, intake)
    groupWatch.attach(consumer)
    try consumer.subscribe([settings.topics.requests])
  }

  private static let waitsForPartitions = "no partition is assigned yet"

  /// Leaves the group and joins it again.
  private func rejoin() async {
    guard !isRejoining else { return }
    isRejoining = true
    defer {
      isRejoining = false
      run(.compare)
    }
    perform(state.phase.distrust())
    while true {
      await leave()
      guard !state.phase.isEnding else { return }
      do {
        try join()
        health.set("kafka", ready: false, Self.waitsForPartitions)
        if !state.phase.mayBegin { intake?.hold() }
        return
      } catch {
        health.set("kafka", ready: false, "\(error)")
        logger.error("the group could not be joined again; it is tried again", ["error": "\(error)"])
        await loop.sleep(milliseconds: 1_000)
      }
    }
  }

  /// Gives up the partitions, and the consumer.
  private func leave() async {
    intake?.detach()
    lag.detach()
    groupWatch.detach()
    await consumer?.close()
    committer?.close()
    (consumer, committer) = (nil, nil)
  }

  /// Joins the group again when it has partitions for the lane that nobody has.
  private func askForMembers() async {
    guard let admin, case let partitions = await groupWatch.ask(admin), !partitions.isEmpty, !state.phase.isEnding else { return }
    logger.warning(
      "partitions have no owner; joining the group again",
      ["topic": "\(settings.topics.requests)", "partitions": partitions.map { "\($0.partition)" }.joined(separator: ",")])
    await rejoin()
  }

  // MARK: The phase

  func perform(_ actions: [LanePhase.Action]) {
    for action in actions {
      switch action {
      case .hold: intake?.hold()
      case .pauseRequests: intake?.pauseRequests()
      case .resumeRequests: intake?.resumeRequests()
      case .advance:
        pipeline?.dropEnded()
        if state.phase.mayResolveRecipients { pipeline?.registryRestored() }
        intake?.advance()
      case .distrustMarkers: checkpoints.distrust()
      case .probeWrites: checkpoints.probe()
      case .compare: run(.compare)
      case .compareAfter(let milliseconds): comparisonTimer.start(noLaterThan: milliseconds)
      case .restoreRegistry: run(.restoreRegistry)
      case .rejoin: run(.rejoin)
      case .ready: health.set("redis", ready: true)
      case .askForRebuild:
        let what: StaticString = "Redis has lost what it had, though Kafka has committed offsets: run 'carillon rebuild'"
        health.set("redis", ready: false, "\(what)")
        logger.error(what)
      }
    }
  }

  func run(_ task: TransformTask) { owner?.run(task) }

  /// Runs what takes more than a turn of the loop; on the lane's actor.
  func perform(_ task: TransformTask) async {
    switch task {
    case .compare: await compare()
    case .restoreRegistry: await restoreRegistry()
    case .rejoin: await rejoin()
    case .inspectRedis: await watch.inspect()
    case .askForApplications: if let admin { await applications.ask(admin) }
    case .askForLogs: if let admin { await lag.ask(admin) }
    case .askForMembers: await askForMembers()
    }
  }

  /// Compares the markers, one comparison at a time, until they are verified or there is something to wait for.
  private func compare() async {
    // What is compared while the lane leaves its group would be found without the partitions that are going.
    guard !isComparing, !isRejoining else { return }
    isComparing = true
    var actions: [LanePhase.Action] = []
    repeat {
      guard state.phase.mayCompare, let consumer else { break }
      let epoch = state.phase.epoch
      let finding = await checkpoints.compare(consumer) { [self] in try await isNewCluster() }
      intake?.compared()
      if case .again(_, let reason) = finding { logger.debug("the markers are compared again", ["reason": reason]) }
      if case .otherOwner(let partition) = finding, epoch == state.phase.epoch {
        logger.warning("a partition has another owner; joining the group again", ["partition": "\(partition)"])
      }
      actions = state.phase.compared(finding.phase, in: epoch)
    } while actions == [.compare]
    isComparing = false
    if checkpoints.hasCounted, state.phase.mayBegin { healthyTimer.start(after: Self.healthyMilliseconds) }
    perform(actions)
    // A broker that does not answer now is asked with the next comparison.
    if state.phase.mayBegin { try? await consumer?.startReplacedAgain() }
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

  /// Waits until Redis has all registrations that Kafka has now, whoever applies them; until then no person's devices are looked up.
  private func restoreRegistry() async {
    let epoch = state.phase.epoch
    registryWaits += 1
    defer { registryWaits -= 1 }
    while state.phase.restoresRegistry(since: epoch), let admin {
      do {
        let ends = try await admin.registryEnds(settings.topics)
        while state.phase.restoresRegistry(since: epoch) {
          if await markers.hasRegistry(upTo: ends) == true { return perform(state.phase.registryRestored(in: epoch)) }
          perform(state.phase.registryIsBehind(in: epoch))
          committer?.commit()
          await loop.sleep(milliseconds: 50)
        }
      } catch {
        logger.warning("the registry's end is not known", ["error": "\(error)"])
        await loop.sleep(milliseconds: 500)
      }
    }
  }

  /// Partitions that have been idle once were begun without harm.
  private func clearHealthy() {
    guard state.phase.mayBegin, let committer else { return }
    if intake?.isEmpty == true { crashes.cleared(checkpoints.takeHealthy { committer.inFlight(of: $0) == 0 }) }
    if checkpoints.hasCounted { healthyTimer.start(after: Self.healthyMilliseconds) }
  }

  /// A record that takes its worker's process down does so sooner, or is under way.
  private static let healthyMilliseconds = 2_000

  // MARK: The end

  /// Whether nothing is in flight.
  private var isIdle: Bool { pipeline?.isIdle != false && journal?.isDurable != false }

  func close(withinMilliseconds milliseconds: Int) async {
    perform(state.phase.drain())
    intake?.discard()
    let end = Deadline(on: loop, after: milliseconds)
    journal?.hurry(forMilliseconds: milliseconds)
    // Giving the partitions up, and telling Kafka what was done, takes a while, too.
    if !hasFailed { await untilIdle(withinMilliseconds: milliseconds - min(milliseconds / 2, Self.partingMilliseconds)) }
    comparisonTimer.stop()
    watch.close()
    healthyTimer.close()
    let partitions = consumer?.assignment.map { checkpoints.table.marked($0.topicPartition) } ?? []
    let leaving = end.left(atLeast: 2 * Self.flushMilliseconds) - Self.flushMilliseconds
    // With the partitions goes what is finished: the markers and the group's offsets are raised to it, and no record of it comes again.
    await consumer?.close(withinMilliseconds: min(leaving, Self.partingMilliseconds))
    state.phase.close()
    lag.close()
    groupWatch.close()
    crashes.cleared(partitions)
    committer?.close()
    while registryWaits > 0 || isComparing || isRejoining { await loop.sleep(milliseconds: 20) }
    await admin?.close()
    await applications.close()
    await producers?.close(withinMilliseconds: end.left(atLeast: Self.flushMilliseconds))
    shards.close()
    await pipeline?.close()
    journal?.close()
    intake?.detach()
    comparisonTimer.close()
    owner = nil
    (consumer, committer, producers, pipeline, journal, intake, admin) = (nil, nil, nil, nil, nil, nil, nil)
  }

  private func untilIdle(withinMilliseconds milliseconds: Int) async {
    guard !isIdle else { return }
    let deadline = Timer(on: loop) { [self] in
      whenIdle?.resume()
      whenIdle = nil
    }
    deadline.start(after: milliseconds)
    await withCheckedContinuation { continuation in
      // The loop may have turned since the question above.
      if isIdle { continuation.resume() } else { whenIdle = continuation }
    }
    deadline.close()
  }

  /// How long what is in flight may take to come to its end where partitions are given up.
  private static let revocationMilliseconds = 3_000
  /// What is kept of a drain's time for the parting, and what that leaves for Kafka's producer at least.
  private static let (partingMilliseconds, flushMilliseconds) = (10_000, 1_000)
}

extension TransformCore: RedisWatchOwner {
  func redisInspectionIsDue() { run(.inspectRedis) }
}

extension TransformCore: PipelineOwner {
  func finished(_ ticket: RecordTicket) {
    committer?.finish(ticket)
    intake?.finished()
    resumeWhenIdle()
  }

  private func resumeWhenIdle() {
    guard let waiting = whenIdle, isIdle else { return }
    whenIdle = nil
    waiting.resume()
  }

  func isCurrent(_ ticket: RecordTicket) -> Bool { committer?.isCurrent(ticket) ?? false }

  func redisLostBucket() { watch.distrust("Redis does not have a bucket any more") }

  func redisRefusedWrites(_ error: StoreError) { watch.refusedWrites(error) }
}

extension TransformCore: CheckpointsOwner {
  func suspected(_ suspicion: CrashLoopDetector.Suspicion) { intake?.note(suspicion) }

  func rewinds(_ partition: TopicPartition, from: Int64, to: Int64) {
    metrics.rewinds.increment()
    logger.warning("Redis has lost something: rewinding", ["partition": "\(partition)", "from": from, "to": to])
  }

  func markersDiffer() { watch.distrust("the markers are not as they were left") }

  func markersNotSent() { perform(state.phase.markersNotSent()) }

  func markersRaised(_ partitions: Int) { metrics.markersRaised.increment(by: partitions) }
}

extension TransformCore: ApplicationsReaderOwner {
  func applicationsAreToBeAskedFor() { run(.askForApplications) }

  func applicationsFailed(_ error: KafkaError) { failed(error) }
}

extension TransformCore: JournalOwner {
  func journaled(_ tickets: [RecordTicket]) { for ticket in tickets { finished(ticket) } }

  /// Without a journal no request is finished, so intake stops by itself when all slots are taken.
  func journalFailed(_ error: KafkaError.Code?) {
    health.set("journal", ready: error == nil, error.map { "Kafka does not take the journal: \($0)" } ?? "")
    if let error { logger.warning("Kafka does not take the journal; it is sent again", ["error": "\(error)"]) }
  }
}

extension TransformCore: ProducerHandler {
  func producerDelivered(_ reports: [DeliveryReport]) {
    metrics.clients.count(reports)
    for report in reports {
      switch OutcomePurpose(opaque: report.opaque) {
      case .record(let slot): pipeline?.reported(slot, failure: report.failure)
      case .eviction(let number): pipeline?.evictionReported(number, failed: report.failure != nil)
      case .journal(let number): journal?.reported(number, failure: report.failure)
      case nil: if report.failure != nil { metrics.deliveriesLost.increment() }
      }
    }
    pipeline?.askWaiting()
    resumeWhenIdle()
  }

  func producerHasRoom() {}

  func producerFailed(_ error: KafkaError) { failed(error) }
}

extension TransformCore: ConsumerHandler {
  func consumerReceived(_ batch: RecordBatch) {
    if !state.phase.isEnding { intake?.received(batch) }
  }

  func consumerOffered(_ partitions: [AssignedPartition]) { run(.compare) }

  func consumerAssigned(_ assigned: [AssignedPartition]) {
    committer?.assigned(assigned)
    health.set("kafka", ready: true)
    intake?.assigned(assigned)
  }

  func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) { lag.reachedEnd(of: partition, at: offset) }

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) {
    intake?.revoked(partitions, isLost: isLost)
    guard let committer else { return revocation.finish() }
    if isLost { checkpoints.revoked(partitions) } else { crashes.cleared(partitions.map { checkpoints.table.marked($0.topicPartition) }) }
    // What is in flight cannot come to its end: the next lane reads it again.
    committer.revoked(partitions, isLost: isLost, revocation: revocation, withinMilliseconds: hasFailed ? 0 : Self.revocationMilliseconds)
    journal?.hurry(forMilliseconds: Self.partingMilliseconds)
  }

  func consumerFailed(_ error: KafkaError) { failed(error) }

  private func failed(_ error: KafkaError) {
    metrics.clients.kafkaFailed(error.code)
    logger.warning("Kafka has a complaint", ["error": "\(error)"])
    guard error.isFatal else { return }
    hasFailed = true
    health.set("client", ready: false, "\(error)")
    owner?.failed(error)
  }
}
