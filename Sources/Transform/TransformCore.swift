import EventLoop
import Kafka
import Store
import Worker

/// Builds the parts of a lane, wires them, and runs the actions of its phase.
final class TransformCore {
  private let lane: LaneContext
  private let watch: RedisWatch
  private let markers: Markers
  private let checkpoints: Checkpoints
  private let crashes: CrashLoopDetector
  private let lag: LaneLag
  private let applications: ApplicationsReader
  private let rates: RateLimits
  private var admin: Admin?
  private var producers: LaneProducers?
  private var journal: Journal?
  private var unreadable: UnreadableStretches?
  private var pipeline: Pipeline?
  private var groups: CrashGroups?
  private var intake: Intake?
  private var member: GroupMember?
  private var comparison: MarkerComparison?
  private var registry: RegistryRestoration?
  private var scheduleRestoration: ScheduleRestoration?
  private var windows: WindowRestoration?
  private var whenIdle: CheckedContinuation<Void, Never>?
  /// Whether partitions have left since the notes were drained. Their parked records are dropped then.
  private var hasLeft = false
  weak var owner: TransformLane?
  private var hasFailed = false
  private let newer: NewerLayouts
  /// Ends the condition `layouts` when no record has waited for a newer worker lately.
  private let newerTimer: Timer

  init(on loop: EventLoop, _ settings: TransformSettings, logger: Logger, health: Health, metrics: TransformMetrics) {
    let shards = Shards(on: loop, settings.store, clientName: "carillon-transform")
    lane = LaneContext(
      loop: loop, settings: settings, state: LaneState(), shards: shards, notes: EndNotes(on: loop), health: health, logger: logger,
      metrics: metrics)
    newer = NewerLayouts(metrics.newer, logger: logger)
    newerTimer = Timer(on: loop) { health.set("layouts", ready: true) }
    watch = RedisWatch(lane)
    markers = Markers(shards)
    crashes = CrashLoopDetector(on: loop, CrashLoops(shards), settings.permit, healthyMilliseconds: settings.healthyMilliseconds)
    checkpoints = Checkpoints(markers, crashes, settings.topics)
    lag = LaneLag(lane, checkpoints)
    applications = ApplicationsReader(on: loop, settings.kafka, settings.topics, logger: logger, health: health)
    rates = RateLimits(applications, settings)
    crashes.owner = self
    lag.owner = self
    lane.notes.drain = { [unowned self] in drainNotes() }
  }

  func start() async throws {
    watch.owner = self
    checkpoints.owner = self
    applications.owner = self
    watch.start()
    lane.health.set("kafka", ready: false, GroupMember.waitsForPartitions)
    let admin = try Admin(lane.settings.kafka, timeoutMilliseconds: lane.settings.askMilliseconds)
    self.admin = admin
    let names = lane.settings.topics
    let (prompt, patient) = ([names.deliveries, names.requests], [names.schedule, names.events, names.journal, names.deadLetters])
    let limits = try await admin.writeLimits(of: prompt + patient, logger: lane.logger)
    // A delivery record or a firing may arrive twice or late. The device's mailbox, or the schedule, decides what is shown.
    let producers = try await LaneProducers(
      on: lane.loop, lane.settings.kafka, limits, topics: (prompt, patient), promptMayRepeat: true, handler: self
    ) { [logger = lane.logger] in logger.log($0) }
    self.producers = producers
    lag.producers = producers
    let journal = try Journal(lane, producers.patient, limit: limits.batchBytes(of: names.journal))
    self.journal = journal
    journal.owner = self
    let outcomes = try Outcomes(
      on: lane.loop, lane.settings, events: producers.patient, deliveries: producers.prompt, metrics: lane.metrics.clients)
    let schedules = try ScheduleWriter(producers, names, ExpirationRule(oneAttemptSeconds: lane.settings.oneAttemptSeconds))
    let pipeline = Pipeline(lane, for: .serving(schedules, journal), applications, outcomes)
    pipeline.owner = self
    self.pipeline = pipeline
    let unreadable = try UnreadableStretches(lane, producers.patient, journal)
    unreadable.owner = self
    self.unreadable = unreadable
    let groups = CrashGroups(lane, checkpoints, crashes, pipeline)
    self.groups = groups
    intake = Intake(lane, checkpoints, groups, pipeline, journal, rates, unreadable)
    let windows = WindowRestoration(lane, rates, checkpoints, admin)
    windows.owner = self
    self.windows = windows
    try await lane.shards.waitUntilUp(withinMilliseconds: lane.settings.startMilliseconds)
    let identity = ClusterIdentity(
      kafka: try await admin.describeCluster().id ?? "", topicPrefix: lane.settings.topics.prefix, buckets: lane.settings.store.buckets,
      name: lane.settings.cluster)
    _ = try await identity.join(lane.shards) { [settings = lane.settings] in try await admin.isNewCluster(settings) }
    let plan = try await GroupPlan(lane.settings, admin, lane.logger)
    plan.show(lane.settings, in: lane.metrics)
    try await applications.start(admin, withinMilliseconds: lane.settings.startMilliseconds)
    let member = GroupMember(lane, plan, checkpoints)
    member.owner = self
    self.member = member
    let comparison = MarkerComparison(lane, checkpoints, member, admin, identity)
    comparison.owner = self
    self.comparison = comparison
    if let condition = pipeline.firings?.condition {
      scheduleRestoration = ScheduleRestoration(lane, markers, member, admin, condition)
    }
    let registry = RegistryRestoration(lane, markers, member, admin)
    registry.owner = self
    self.registry = registry
    try member.join()
  }

  // MARK: The phase

  func perform(_ actions: [LanePhase.Action]) {
    for action in actions {
      switch action {
      case .hold: intake?.hold()
      case .pauseRequests: intake?.pauseRequests()
      case .resumeRequests: intake?.resumeRequests()
      case .advance:
        crashes.resumed()
        pipeline?.dropRevoked()
        if lane.state.phase.mayResolveRecipients { pipeline?.registryRestored() }
        intake?.advance()
        if lane.state.phase.phase == .running, pipeline?.firings?.isHeld == true { run(.restoreSchedules) }
      case .distrustMarkers:
        checkpoints.distrust()
        pipeline?.firings?.hold()
      case .probeWrites: checkpoints.probe()
      case .compare: run(.compare)
      case .compareAfter(let milliseconds): comparison?.runAgain(noLaterThan: milliseconds)
      case .restoreRegistry: run(.restoreRegistry)
      case .rejoin: run(.rejoin)
      case .ready: lane.health.set("redis", ready: true)
      case .askForRebuild:
        let what: StaticString = "Redis has lost what it had, though Kafka has committed offsets: run 'carillon rebuild'"
        let foreign = markers.foreignKeys.prefix(10).joined(separator: ", ")
        lane.health.set("redis", ready: false, "\(what)" + (foreign.isEmpty ? "" : ". Something else lies under \(foreign)"))
        lane.logger.error(what, foreign.isEmpty ? [:] : ["foreignKeys": foreign])
      }
    }
  }

  func run(_ task: TransformTask) { owner?.run(task) }

  /// Runs a task, on the lane's actor.
  func perform(_ task: TransformTask) async {
    switch task {
    case .compare: await comparison?.run()
    case .restoreRegistry: await registry?.run()
    case .restoreWindows: await windows?.run()
    case .restoreSchedules: if await scheduleRestoration?.run() == true { pipeline?.firings?.goOn() }
    case .rejoin: await member?.joinAgain()
    case .inspectRedis: await watch.inspect()
    case .askForApplications: if let admin { await applications.ask(admin) }
    case .askForLogs: if let admin { await lag.ask(admin) }
    case .askForPartitions:
      if let admin, let producers { await member?.askForPartitions(admin, journal: producers.patient) }
    case .askForMembers: if let admin { await member?.askForMembers(admin) }
    case .takePermit: intake?.permitCame()
    }
  }

  // MARK: The turn's end

  /// Finishes the records that have ended in this turn and begins further ones, before a revocation is answered.
  private func drainNotes() {
    pipeline?.drainNotes()
    // After the notes, so that records that have failed in this turn are dropped, too.
    if hasLeft {
      hasLeft = false
      pipeline?.dropRevoked()
    }
    let finished = lane.notes.take()
    if let committer = member?.committer {
      committer.finish(finished) { intake?.madeRoom() }
    } else {
      intake?.madeRoom()
    }
    resumeWhenIdle()
  }

  private func resumeWhenIdle() {
    guard let waiting = whenIdle, isIdle else { return }
    whenIdle = nil
    waiting.resume()
  }

  // MARK: The end

  /// Whether no record, letter or entry of the journal is in flight.
  private var isIdle: Bool { pipeline?.isIdle != false && unreadable?.isEmpty != false && journal?.isDurable != false }

  func close(withinMilliseconds milliseconds: Int) async {
    perform(lane.state.phase.drain())
    pipeline?.firings?.hold()
    intake?.discard()
    windows?.close()
    let end = Deadline(on: lane.loop, after: milliseconds)
    journal?.hurry(forMilliseconds: milliseconds)
    // Giving up the partitions and committing their offsets needs the rest of the time.
    if !hasFailed { await untilIdle(withinMilliseconds: milliseconds - min(milliseconds / 2, Self.partingMilliseconds)) }
    watch.close()
    let partitions = member?.consumer?.assignment.map { checkpoints.table.marked($0.topicPartition) } ?? []
    let leaving = end.left(atLeast: 2 * Self.flushMilliseconds) - Self.flushMilliseconds
    // This raises the markers and commits the offsets of all finished records, so that no owner reads these again.
    await member?.close(withinMilliseconds: min(leaving, Self.partingMilliseconds))
    lane.state.phase.close()
    lag.close()
    // The partitions that did not leave in time have not crashed this process. Redis may count their begins for the next owner already.
    crashes.leftToAnother(partitions)
    while isTaskUnderWay { await lane.loop.sleep(milliseconds: 20) }
    await admin?.close()
    await applications.close()
    await producers?.close(withinMilliseconds: end.left(atLeast: Self.flushMilliseconds))
    lane.shards.close()
    lane.notes.close()
    await pipeline?.close()
    journal?.close()
    unreadable?.close()
    intake?.detach()
    comparison?.close()
    newerTimer.close()
    crashes.close()
    owner = nil
    (member, comparison, registry, scheduleRestoration, windows) = (nil, nil, nil, nil, nil)
    (producers, pipeline, journal, unreadable, groups, intake, admin) = (nil, nil, nil, nil, nil, nil, nil)
  }

  private var isTaskUnderWay: Bool {
    registry?.isUnderWay == true || scheduleRestoration?.isUnderWay == true || comparison?.isUnderWay == true
      || windows?.isUnderWay == true
      || member?.isJoiningAgain == true
  }

  private func untilIdle(withinMilliseconds milliseconds: Int) async {
    guard !isIdle else { return }
    let deadline = Timer(on: lane.loop) { [self] in
      whenIdle?.resume()
      whenIdle = nil
    }
    deadline.start(after: milliseconds)
    await withCheckedContinuation { continuation in
      // The loop may have turned since the check above.
      if isIdle { continuation.resume() } else { whenIdle = continuation }
    }
    deadline.close()
  }

  /// How long a revocation waits for the records in flight.
  private static let revocationMilliseconds = 3_000
  /// Longer than the pause between two retries of a record that waits.
  private static let newerMilliseconds = 10_000
  /// How much of a drain's time leaving the group may take, and how much of that the producers keep.
  private static let (partingMilliseconds, flushMilliseconds) = (10_000, 1_000)
}

extension TransformCore {
  /// A consumer joins the group; its partitions come later.
  func joined(_ consumer: Consumer, _ committer: OffsetCommitter) {
    guard let intake else { return }
    intake.attach(consumer, committer)
    if !lane.state.phase.mayBegin { intake.hold() }
    lag.attach(consumer, committer, intake)
    // Redis may have answered before there was a consumer. A lane that gets no partition would never become ready otherwise.
    run(.compare)
  }

  /// The consumer begins to leave the group: no more records of its partitions begin.
  func leaves() {
    perform(lane.state.phase.distrust())
    intake?.detach()
    lag.detach()
  }

  /// Raises the markers before the offsets are committed: a marker must not stay below a committed offset.
  func prepare(_ offsets: [CommitOffset], _ prepared: @escaping ([CommitOffset]) -> Void) {
    journal?.flush()
    if lane.state.phase.mayCheckpoint { checkpoints.raise(offsets, prepared) } else { prepared([]) }
  }

  /// Notes in Redis what is applied beyond the requests that wait for a newer program.
  func appliedReadable(below offsets: [CommitOffset]) { if lane.state.phase.mayCheckpoint { checkpoints.writeReadable(offsets) } }
}

extension TransformCore {
  /// A check of every script begins.
  func redisCheckBegins() { pipeline?.checkBegins() }

  /// The check has ended. Returns whether another one is due, because of errors since it began.
  func redisCheckEnded(passed: Bool) -> Bool { pipeline?.checkEnded(passed: passed) ?? false }
}

extension TransformCore {
  /// Markers were compared, and partitions may have begun.
  func compared() {
    intake?.compared()
    fireForOwnPartitions()
  }

  /// Schedules fire from the partitions of requests that the lane has begun.
  private func fireForOwnPartitions() {
    let begun = checkpoints.table.begun(member?.consumer?.assignment ?? [])
    pipeline?.firings?.owns(Set(begun.map(\.topicPartition).filter { $0.topic == lane.settings.topics.requests }.map(\.partition)))
  }

  /// For seconds no comparison has succeeded, for this reason; nil: one has succeeded again.
  func comparisonIsHeldUp(_ reason: String?) {
    // The condition 'redis' says why the phase waits.
    lane.health.set("markers", ready: reason == nil, reason ?? "")
    if let reason { lane.logger.warning("the markers cannot be compared; partitions wait", ["reason": reason]) }
  }
}

extension TransformCore {
  /// The last windows of these partitions are counted, by their indexes: their records may begin.
  func windowsRestored(_ indexes: Set<Int>) { intake?.counted(indexes) }
}

extension TransformCore: CrashLoopDetectorOwner {
  func foundHarmless(_ partitions: [MarkedPartition]) {
    groups?.forget(partitions)
    intake?.madeRoom()
  }

  var waker: @Sendable () -> Void { { [weak owner] in owner?.run(.takePermit) } }

  func isIdle(_ index: Int) -> Bool {
    // While requests are paused, the lane cannot know whether they crash workers.
    lane.state.phase.phase == .running && intake?.isEmpty == true && member?.committer?.inFlight(of: index) == 0
  }
}

extension TransformCore: PipelineOwner {
  func isCurrent(_ ticket: RecordTicket) -> Bool { member?.committer?.isCurrent(ticket) ?? false }

  func redisLostBucket() { watch.distrust("Redis has lost a bucket") }

  func redisRefusedWrites(_ error: StoreError) { watch.refusedWrites(error) }

  func foundNewer(_ error: StoreError) {
    guard case .newer(let layout) = error.code else { return }
    newer.found(layout, error.message)
    lane.health.set("layouts", ready: false, error.message)
    newerTimer.start(after: Self.newerMilliseconds)
  }

  func setAside(_ ticket: RecordTicket) { member?.committer?.setAside(ticket) }
}

extension TransformCore: CheckpointsOwner {
  func suspected(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion) { groups?.suspect(partition, suspicion) }

  func startedAgain(_ partition: MarkedPartition) { groups?.startedAgain(partition) }

  func rewinds(_ partition: TopicPartition, from: Int64, to: Int64) {
    // What was canceled may be pending again. A comparison without another sign leaves the lane running, which advances nothing.
    pipeline?.firings?.hold()
    run(.restoreSchedules)
    lane.metrics.rewinds.increment()
    lane.logger.warning("Redis has lost something: rewinding", ["partition": "\(partition)", "from": from, "to": to])
  }

  func markersUnreadable(_ places: [String]) {
    lane.metrics.unreadableMarkers.increment(by: places.count)
    let shown = places.prefix(10).joined(separator: ", ") + (places.count > 10 ? " and \(places.count - 10) more" : "")
    lane.logger.warning("markers in Redis cannot be read, and count as missing", ["keys": shown])
  }

  func markersDiffer() { watch.distrust("the markers differ from those that this lane wrote") }

  func markersNotSent() { perform(lane.state.phase.markersNotSent()) }

  func markersRaised(_ partitions: Int) { lane.metrics.markersRaised.increment(by: partitions) }
}

extension TransformCore: ApplicationsReaderOwner {
  func applicationsAreToBeAskedFor() { run(.askForApplications) }

  func applicationsFailed(_ error: KafkaError) { failed(error) }
}

extension TransformCore {
  /// The partition's committable offset stays at the stretch until Kafka has the letter.
  func unreadableLettersFailed(_ error: KafkaError?) {
    lane.health.set("dead-letters", ready: error == nil, error.map { "Kafka does not take a dead letter: \($0)" } ?? "")
    if let error { lane.logger.warning("Kafka does not take a dead letter; it is sent again", ["error": "\(error)"]) }
  }

  /// Without the journal no request is finished. So intake stops when all slots are taken.
  func journalFailed(_ error: KafkaError.Code?) {
    let error = error.map { KafkaError($0, "write to \(lane.settings.topics.journal)") }
    lane.health.set("journal", ready: error == nil, error.map { "Kafka does not take the journal: \($0)" } ?? "")
    if let error { lane.logger.warning("Kafka does not take the journal; it is sent again", ["error": "\(error)"]) }
  }
}

extension TransformCore: ProducerHandler {
  func producerDelivered(_ reports: [DeliveryReport]) {
    lane.metrics.clients.count(reports)
    for report in reports {
      if let purpose = OutcomePurpose(opaque: report.opaque) {
        if purpose.kind == .unreadable { unreadable?.reported(purpose.number, failure: report.failure) }
        pipeline?.reported(purpose, failure: report.failure)
      } else if report.failure != nil {
        lane.metrics.deliveriesLost.increment()
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
    if !lane.state.phase.isEnding { intake?.received(batch) }
  }

  func consumerOffered() { run(.compare) }

  func consumerAssigned(_ assigned: [AssignedPartition]) {
    member?.committer?.assigned(assigned)
    lane.health.set("kafka", ready: true)
    let uncounted = rates.assigned(assigned)
    intake?.assigned(assigned, unjournaled: member?.unjournaled(among: assigned) ?? [], uncounted: uncounted)
    if !uncounted.isEmpty { run(.restoreWindows) }
  }

  func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
    lane.metrics.clients.kafkaFailed(stretch.error.code)
    intake?.foundUnreadable(stretch)
    return false
  }

  func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) {
    intake?.reachedEnd(of: partition, at: offset)
    lag.reachedEnd(of: partition, at: offset)
  }

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) {
    intake?.revoked(partitions, isLost: isLost)
    crashes.left(partitions.map(\.index))
    guard let committer = member?.committer else {
      left(partitions, isLost: isLost)
      return revocation.finish()
    }
    // The records of a failed lane cannot end. The next lane reads them again.
    let milliseconds = hasFailed ? 0 : Self.revocationMilliseconds
    committer.revoked(partitions, isLost: isLost, revocation: revocation, withinMilliseconds: milliseconds) { [weak self] in
      // After the deadline the partitions may have another owner already.
      self?.left(partitions, isLost: isLost || revocation.isFinished)
    }
    journal?.hurry(forMilliseconds: Self.partingMilliseconds)
  }

  /// Partitions have left: their records are finished, or the lane no longer waits for them. Until now they might have crashed the process.
  private func left(_ partitions: [AssignedPartition], isLost: Bool) {
    intake?.left(partitions, isLost: isLost)
    member?.tellUnjournaled()
    checkpoints.left(partitions)
    rates.left(partitions)
    fireForOwnPartitions()
    hasLeft = true
    lane.notes.note()
  }

  func consumerFailed(_ error: KafkaError) { failed(error) }

  private func failed(_ error: KafkaError) {
    lane.metrics.clients.kafkaFailed(error.code)
    lane.logger.warning("Kafka client error", ["error": "\(error)"])
    guard error.isFatal else { return }
    hasFailed = true
    lane.health.set("client", ready: false, "\(error)")
    owner?.failed(error)
  }
}
