import Kafka
import Worker

/// The consumer's batches until their records begin: what waits for a slot, for the registry, or for the record that ends workers to be
/// found. Loop-confined.
final class Intake {
  private let settings: TransformSettings
  private let state: LaneState
  private let checkpoints: Checkpoints
  private let crashes: CrashLoopDetector
  private let pipeline: Pipeline
  private let journal: Journal
  private let logger: Logger
  private var consumer: Consumer?
  private var committer: OffsetCommitter?
  private var bisection = Bisection()
  private var isMarking = false
  /// What is to know of the consumer's partitions for each record, by index.
  private var partitions: [Partition] = []
  /// The partitions that the log knows of.
  private var logged: Set<TopicPartition> = []
  /// Batches, or the rest of them, that found no slot.
  private var backlog: [(batch: RecordBatch, next: Int)] = []

  private struct Partition {
    var isRegistry = false
    var incarnation: UInt32 = 0
  }

  init(
    _ settings: TransformSettings, state: LaneState, checkpoints: Checkpoints, crashes: CrashLoopDetector, pipeline: Pipeline,
    journal: Journal,
    logger: Logger
  ) {
    self.settings = settings
    self.state = state
    self.checkpoints = checkpoints
    self.crashes = crashes
    self.pipeline = pipeline
    self.journal = journal
    self.logger = logger
  }

  /// A consumer has joined the group.
  func attach(_ consumer: Consumer, _ committer: OffsetCommitter) { (self.consumer, self.committer) = (consumer, committer) }

  /// The consumer is being closed: what waits is left to the next owner.
  func detach() {
    backlog = []
    (consumer, committer) = (nil, nil)
    restTurn()
  }

  /// Nothing more is begun.
  func discard() {
    backlog = []
    restTurn()
    hold()
  }

  /// Takes nothing more of what is fetched.
  func hold() { consumer?.hold() }

  /// Whether nothing waits.
  var isEmpty: Bool { backlog.isEmpty }

  /// What the records in flight retain.
  var bytesInFlight: Int { pipeline.bytesInFlight }

  // MARK: Partitions

  /// Partitions have come; those that have to wait are paused.
  func assigned(_ assigned: [AssignedPartition]) {
    for partition in assigned {
      while partitions.count <= partition.index { partitions.append(Partition()) }
      partitions[partition.index].isRegistry = partition.topicPartition.topic == settings.topics.devices
    }
    if state.phase.isRegistryBehind { pauseRequests() }
  }

  /// Only registrations flow from now on.
  func pauseRequests() { consumer?.pause(owned { !partitions[$0].isRegistry }) }

  /// Requests flow again.
  func resumeRequests() { consumer?.resume(owned { _ in true }) }

  private func owned(_ isWanted: (_ index: Int) -> Bool) -> [Int] { consumer?.assignment.map(\.index).filter(isWanted) ?? [] }

  /// Partitions are going.
  func revoked(_ partitions: [AssignedPartition], isLost: Bool) {
    logged.subtract(partitions.map(\.topicPartition))
    logger.info(isLost ? "partitions lost" : "partitions revoked", numbers(partitions))
  }

  /// The markers were compared: they say how often each topic was made again. Partitions begin one by one; the log has one line for all
  /// that came together.
  func compared() {
    let assignment = consumer?.assignment ?? []
    for partition in assignment { partitions[partition.index].incarnation = checkpoints.table.incarnation(partition.index) }
    guard consumer?.offers.isEmpty == true, !logged.isSuperset(of: assignment.map(\.topicPartition)) else { return }
    logged = Set(assignment.map(\.topicPartition))
    logger.info("partitions assigned", numbers(assignment))
  }

  private func numbers(_ partitions: [AssignedPartition]) -> KeyValuePairs<String, any LogValue> {
    func numbers(_ topic: String) -> String {
      PartitionNames.text(partitions.map(\.topicPartition).filter { $0.topic == topic }.map(\.partition))
    }
    return ["requests": numbers(settings.topics.requests), "devices": numbers(settings.topics.devices)]
  }

  /// Partitions were begun, and this is known of the workers before.
  func note(_ suspicion: CrashLoopDetector.Suspicion) {
    bisection.note(suspicion)
    guard suspicion.isBisecting else { return }
    logger.warning(
      "workers have ended at these records again and again: they are begun in small groups", ["records": CrashLoopDetector.bisectedRecords])
  }

  // MARK: Records

  /// Takes a batch.
  func received(_ batch: RecordBatch) {
    backlog.append((batch, 0))
    if backlog.count == 1 { advance() } else { consumer?.hold() }
  }

  /// Begins what finds a slot; when there is none left, or nothing may be begun, the partitions wait.
  func advance() {
    guard let committer, let consumer else { return }
    guard state.phase.mayBegin else {
      restTurn()
      return consumer.hold()
    }
    while let (batch, first) = backlog.first {
      guard pipeline.hasRoom else { return consumer.hold() }
      if bisection.isNeeded { return advanceByGroup(batch, first, committer) }
      let (begun, next) = begin(batch, first..<batch.count, committer)
      if !begun.isEmpty { pipeline.take(batch, begun) }
      // What is judged and not yet in the journal takes slots, too.
      if committer.inFlight >= settings.inFlight / 2 { journal.flush() }
      if next < batch.count { return consumer.hold() }
    }
    consumer.release()
    restTurn()
  }

  /// A record is finished, or Redis has caught up: goes on when that makes room.
  func madeRoom() {
    guard let committer, !backlog.isEmpty else { return restTurn() }
    // Half of the slots, so that a batch is worth its turn.
    let hasRoom = pipeline.hasRoom && committer.hasRoom && committer.inFlight <= settings.inFlight / 2
    if bisection.isNeeded ? mayBeginGroup : hasRoom { advance() }
  }

  /// Begins the first batch's records in this range, until there is no slot left: what was begun, and where it stopped.
  private func begin(_ batch: RecordBatch, _ range: Range<Int>, _ committer: OffsetCommitter) -> (begun: [BegunRecord], next: Int) {
    var begun: [BegunRecord] = []
    begun.reserveCapacity(range.count)
    var next = range.lowerBound
    scan: while next < range.upperBound {
      let record = batch[next]
      if !checkpoints.table.hasUnconfirmed || isWork(record, committer) {
        switch committer.begin(record) {
        case .begun(let ticket):
          let partition = partitions[record.partitionIndex]
          begun.append(BegunRecord(index: next, ticket: ticket, isRegistration: partition.isRegistry, incarnation: partition.incarnation))
        case .ignored: break
        case .full: break scan
        }
      }
      next += 1
    }
    if next == batch.count { backlog.removeFirst() } else { backlog[0].next = next }
    return (begun, next)
  }

  // MARK: Groups

  /// Whether the group before is finished. While the registry is behind requests wait for registrations, and these come in groups, too.
  private var mayBeginGroup: Bool { !isMarking && (pipeline.isIdle || !state.phase.mayResolveRecipients) }

  /// Begins a group of one partition's records, after Redis has noted which; the next comes when it is finished.
  private func advanceByGroup(_ batch: RecordBatch, _ first: Int, _ committer: OffsetCommitter) {
    consumer?.hold()
    guard mayBeginGroup else { return }
    if bisection.isOver { return endBisection() }
    guard crashes.takeTurn() else { return }
    let partition = checkpoints.table.marked(TopicPartition(batch[first].topic, batch[first].partition))
    let (begun, next) = begin(batch, first..<bisection.groupEnd(batch, from: first, partition), committer)
    // The next batch holds it again, and its first group waits for this one.
    if backlog.isEmpty { consumer?.release() }
    guard let start = begun.first else {
      if next > first { advance() }
      return
    }
    let group = CrashLoopDetector.Group(first: batch[start.index].offset, count: Int64(begun.count))
    bisection.began(begun.count)
    isMarking = true
    crashes.mark(partition, group) { [self] _ in
      isMarking = false
      switch bisection.takeDeadly(partition, group.first) {
      case nil: pipeline.take(batch, begun)
      case .withoutExtensions: pipeline.take(batch, begun.map(\.withoutExtensions))
      case .deadLetter: pipeline.deadLetter(batch, start, tries: CrashLoopDetector.tries)
      }
    }
  }

  /// All groups are finished: the lane goes on as usual.
  private func endBisection() {
    bisection.end()
    crashes.endTurn()
    crashes.cleared(consumer?.assignment.map { checkpoints.table.marked($0.topicPartition) } ?? [])
    advance()
  }

  /// The lane's turn with a group has come; it may have nothing to do with it any more.
  func turnCame() {
    guard crashes.turnCame() else { return }
    if bisection.isNeeded, !backlog.isEmpty, state.phase.mayBegin, mayBeginGroup { advance() } else { crashes.endTurn() }
  }

  /// Leaves the turn to others while there is nothing to begin, or nothing may be begun.
  private func restTurn() {
    if crashes.hasTurn, backlog.isEmpty || !state.phase.mayBegin, mayBeginGroup { crashes.endTurn() }
  }

  /// Whether a record is to be begun: the first one that is read of a partition shows whether the marker fits at which reading began.
  private func isWork(_ record: RecordView, _ committer: OffsetCommitter) -> Bool {
    let index = record.partitionIndex
    guard checkpoints.table.isUnconfirmed(index) else { return true }
    guard let assigned = consumer?.assignment.first(where: { $0.index == index }), assigned.generation == record.generation else {
      return false
    }
    let partition = assigned.topicPartition
    switch checkpoints.judge(partition, index, offset: record.offset, timestamp: record.timestamp) {
    case .work: return true
    case .skip:
      // The group may not know that it is applied: whoever raised the marker may have ended before its commit. Without this the group
      // would be behind for as long as nothing new is published.
      if case .begun(let ticket) = committer.begin(record) { committer.finish(ticket) }
      return false
    case .madeAgain:
      logger.warning("the topic was deleted and made again: its markers begin again", ["partition": "\(partition)"])
      consumer?.startAgain(index)
      return false
    }
  }
}
