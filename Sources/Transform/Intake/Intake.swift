import Kafka
import Notifications
import Store
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
  /// Where records are begun in groups: which partitions are suspected, and what has become of the group that was begun last.
  private var groups = RecordGroups<(batch: RecordBatch, begun: [BegunRecord])>()
  /// What is to know of the consumer's partitions for each record, by index.
  private var partitions: [Partition] = []
  /// The partitions that the log knows of.
  private var logged: Set<TopicPartition> = []
  /// Batches, or the rest of them, that found no slot.
  private var backlog: [(batch: RecordBatch, next: Int)] = []
  /// Ends of partitions that were reached behind the records of the backlog, by the partitions' indexes.
  private var ends: [Int: (partition: AssignedPartition, offset: Int64)] = [:]
  /// Batches that cannot be read, behind the records of the backlog. Their partitions stand still until they are begun.
  private var stretches: [UnreadableStretch] = []
  private let unreadable: UnreadableStretches
  private let notes: EndNotes

  private struct Partition {
    var isRegistry = false
    /// The journal has no partition of its number: it stays paused.
    var isUnjournaled = false
    var incarnation: UInt32 = 0
    /// It is going: nothing more of it is begun.
    var isLeaving = false
  }

  init(
    _ settings: TransformSettings, state: LaneState, checkpoints: Checkpoints, crashes: CrashLoopDetector, pipeline: Pipeline,
    journal: Journal, unreadable: UnreadableStretches, notes: EndNotes, logger: Logger
  ) {
    self.settings = settings
    self.state = state
    self.checkpoints = checkpoints
    self.crashes = crashes
    self.pipeline = pipeline
    self.journal = journal
    self.unreadable = unreadable
    self.notes = notes
    self.logger = logger
  }

  /// A consumer has joined the group.
  func attach(_ consumer: Consumer, _ committer: OffsetCommitter) {
    (self.consumer, self.committer) = (consumer, committer)
    for index in partitions.indices { partitions[index].isLeaving = false }
  }

  /// The consumer is being closed: what waits is left to the next owner.
  func detach() {
    (backlog, ends, stretches) = ([], [:], [])
    groups.giveUp()
    (consumer, committer) = (nil, nil)
    restTurn()
  }

  /// Nothing more is begun.
  func discard() {
    (backlog, ends, stretches) = ([], [:], [])
    groups.giveUp()
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
  ///
  /// - Parameter unjournaled: those that the journal has no partition for, by index.
  func assigned(_ assigned: [AssignedPartition], unjournaled: Set<Int>) {
    for partition in assigned {
      while partitions.count <= partition.index { partitions.append(Partition()) }
      partitions[partition.index].isLeaving = false
      partitions[partition.index].isRegistry = partition.topicPartition.topic == settings.topics.devices
      partitions[partition.index].isUnjournaled = unjournaled.contains(partition.index)
    }
    // Nothing of a partition was given yet, so it is read from where it begins when it comes again.
    consumer?.pause(unjournaled)
    if state.phase.isRegistryBehind { pauseRequests() }
  }

  /// Only registrations flow from now on.
  func pauseRequests() { consumer?.pause(owned { !partitions[$0].isRegistry }) }

  /// Requests flow again.
  func resumeRequests() { consumer?.resume(owned { !partitions[$0].isUnjournaled }) }

  private func owned(_ isWanted: (_ index: Int) -> Bool) -> [Int] { consumer?.assignment.map(\.index).filter(isWanted) ?? [] }

  /// Partitions are going: nothing more of them is begun.
  func revoked(_ partitions: [AssignedPartition], isLost: Bool) {
    for partition in partitions where partition.index < self.partitions.count { self.partitions[partition.index].isLeaving = true }
    // They belong to the assignment that ends.
    for partition in partitions { ends[partition.index] = nil }
    stretches.removeAll { stretch in partitions.contains { $0.index == stretch.partition.index } }
    logged.subtract(partitions.map(\.topicPartition))
    logger.info(isLost ? "partitions lost" : "partitions revoked", numbers(partitions))
  }

  /// Partitions have gone, and what was in flight of them is finished, or nobody waits for it any more.
  func left(_ partitions: [AssignedPartition], isLost: Bool) {
    // One that has come back meanwhile may be suspected again.
    let gone = partitions.filter { gone in
      consumer?.assignment.contains { $0.index == gone.index && $0.generation != gone.generation } != true
    }
    let marked = gone.map { checkpoints.table.marked($0.topicPartition) }
    let noted = groups.leave(marked, isLost: isLost)
    if !noted.isEmpty { crashes.bisects(groups.isNeeded) }
    if isLost { crashes.leftToAnother(noted) } else { crashes.left(marked, suspected: noted) }
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

  /// A partition was begun that is suspected, and this is known of it.
  func note(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion) {
    groups.suspect(partition, suspicion)
    crashes.bisects(true)
    logger.warning(
      "workers have ended at these records again and again: they are begun in small groups",
      ["partition": name(of: partition), "records": CrashLoopDetector.bisectedRecords])
  }

  private func name(of partition: MarkedPartition) -> String {
    switch partition {
    case .requests(let number): "\(TopicPartition(settings.topics.requests, number))"
    case .devices(let number): "\(TopicPartition(settings.topics.devices, number))"
    }
  }

  /// A partition was begun once more, since Redis was unverified: it is suspected as it was.
  func startedAgain(_ partition: MarkedPartition) {
    if groups.startedAgain(partition) { crashes.bisects(true) }
  }

  /// Partitions are suspected no more.
  ///
  /// - Returns: those of them that were.
  @discardableResult func forget(_ partitions: [MarkedPartition]) -> [MarkedPartition] {
    let forgotten = groups.forget(partitions)
    if !forgotten.isEmpty { crashes.bisects(groups.isNeeded) }
    return forgotten
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
    takeNoted()
    while let (batch, first) = backlog.first {
      guard pipeline.hasRoom else { return consumer.hold() }
      // Of a group that is being noted the answer is waited for: what comes behind it is not worked on before it.
      if crashes.isBisecting || !groups.isFree { return advanceByGroup(batch, first, committer) }
      endGroups()
      let (begun, next) = begin(batch, first..<batch.count, committer)
      // Before they are taken: what ends at once makes room, and whoever goes on with that releases it.
      if next < batch.count { consumer.hold() }
      if !begun.isEmpty { pipeline.take(batch, begun) }
      // What is judged and not yet in the journal takes slots, too.
      if committer.inFlight >= settings.inFlight / 2 { journal.flush() }
      if next < batch.count { return }
    }
    takeEnds()
    consumer.release()
    restTurn()
  }

  /// A record is finished, or Redis has caught up: goes on when that makes room.
  func madeRoom() {
    guard let committer else { return restTurn() }
    if backlog.isEmpty {
      takeStretches()
      // A partition's end is told together with its last batch, before that is finished.
      if groups.isNeeded, pipeline.isIdle, mayBeginGroup { endSuspicions() }
      return restTurn()
    }
    // Half of the slots, so that a batch is worth its turn.
    let hasRoom = pipeline.hasRoom && committer.hasRoom && committer.inFlight <= settings.inFlight / 2
    if crashes.isBisecting ? mayBeginGroup : hasRoom { advance() }
  }

  /// Begins the first batch's records in this range, until there is no slot left: what was begun, and where it stopped.
  private func begin(_ batch: RecordBatch, _ range: Range<Int>, _ committer: OffsetCommitter) -> (begun: [BegunRecord], next: Int) {
    var begun: [BegunRecord] = []
    begun.reserveCapacity(range.count)
    var next = range.lowerBound
    scan: while next < range.upperBound {
      let record = batch[next]
      if !partitions[record.partitionIndex].isLeaving, !checkpoints.table.hasUnconfirmed || isWork(record, committer) {
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

  /// Has the markers and the group's offsets reach the ends of partitions, which may have no record below them.
  ///
  /// A record that waits in the backlog lies below its partition's end and is not begun yet: the ends are taken after all of them.
  private func takeEnds() {
    guard backlog.isEmpty, let committer else { return }
    takeStretches()
    // Records of a partition that is leaving were not begun.
    for (index, end) in ends where !partitions[index].isLeaving {
      committer.reachedEnd(of: end.partition, at: end.offset, timestamp: checkpoints.reachedEnd(index, at: end.offset))
    }
    ends = [:]
  }

  /// A batch of a partition cannot be read.
  func foundUnreadable(_ stretch: UnreadableStretch) {
    stretches.append(stretch)
    takeStretches()
  }

  /// Begins batches that cannot be read, once all records before them are begun, and has their partitions go on.
  private func takeStretches() {
    guard backlog.isEmpty, let consumer, let committer else { return }
    let waiting = stretches
    stretches = []
    for stretch in waiting where !partitions[stretch.partition.index].isLeaving {
      let index = stretch.partition.index
      // What lies below the marker was applied when it could be read.
      guard let rest = stretch.from(checkpoints.table.wanted(index)?.offset ?? 0) else {
        _ = checkpoints.reachedEnd(index, at: stretch.offsets.upperBound)
        consumer.skip(stretch)
        continue
      }
      switch committer.begin(rest) {
      case .full: stretches.append(stretch)
      case .begun(let ticket):
        _ = checkpoints.reachedEnd(index, at: rest.offsets.upperBound)
        unreadable.take(rest, ticket, incarnation: partitions[index].incarnation)
        consumer.skip(stretch)
      case .ignored: consumer.skip(stretch)
      }
    }
  }

  // MARK: Groups

  /// Whether the group before is finished. While the registry is behind requests wait for registrations, and these come in groups, too.
  private var mayBeginGroup: Bool {
    guard groups.isFree else { return false }
    return pipeline.isIdle || state.phase.isRegistryBehind && pipeline.onlyWaitsForRegistry
  }

  /// Begins a group of one partition's records, after Redis has noted which; the next comes when it is finished.
  private func advanceByGroup(_ batch: RecordBatch, _ first: Int, _ committer: OffsetCommitter) {
    consumer?.hold()
    guard mayBeginGroup else { return }
    if endSuspicions() { return advance() }
    guard crashes.takeTurn() else { return }
    let partition = checkpoints.table.marked(TopicPartition(batch[first].topic, batch[first].partition))
    let (begun, next) = begin(batch, first..<groupEnd(batch, from: first, partition), committer)
    takeEnds()
    // The next batch holds it again, and its first group waits for this one.
    if backlog.isEmpty { consumer?.release() }
    guard let start = begun.first, let last = begun.last else {
      // Without a slot the turn is of no use; whoever makes room asks for it again.
      if next > first { advance() } else { crashes.endTurn() }
      return
    }
    let offsets = batch[start.index].offset..<batch[last.index].offset + 1
    let tag = groups.begin((batch, begun), count: begun.count, offsets: offsets, of: partition)
    crashes.mark(partition, CrashLoopDetector.Group(first: offsets.lowerBound, width: Int64(offsets.count))) { [self] in
      // It may have been given up meanwhile, and with it the consumer. Where nothing may be begun now it waits until something may.
      if groups.noted(tag) { advance() }
    }
  }

  /// Where in the batch the group ends that begins with this record of it, at the partition's end in it at last.
  private func groupEnd(_ batch: RecordBatch, from first: Int, _ partition: MarkedPartition) -> Int {
    let end = groups.end(from: batch[first].offset, of: partition)
    return (first + 1..<batch.count).first {
      batch[$0].partitionIndex != batch[first].partitionIndex || batch[$0].offset >= end
    } ?? batch.count
  }

  /// Works on the group that is noted.
  private func takeNoted() {
    guard let committer, let group = groups.take() else { return }
    // Meanwhile its partition may have gone, or begun again.
    let (batch, begun) = (group.records.batch, group.records.begun.filter { committer.isCurrent($0.ticket) })
    guard let first = begun.first else { return }
    switch group.remedy {
    case nil: pipeline.take(batch, begun)
    case .withoutExtensions: pipeline.take(batch, begun.map(\.withoutExtensions))
    case .deadLetter: pipeline.take(batch, [first], poison: (CrashLoopDetector.tries, DeadLetter.workersEnded))
    }
  }

  /// Every group is finished: partitions of which all was begun that is suspected, or that was there, go on as usual. Answers whether there are
  /// such.
  @discardableResult private func endSuspicions() -> Bool {
    let through = groups.takeThrough { partition in
      backlog.contains { batch, first in
        (first..<batch.count).contains { checkpoints.table.marked(TopicPartition(batch[$0].topic, batch[$0].partition)) == partition }
      }
    }
    if through.isEmpty { return false }
    crashes.cleared(through)
    crashes.bisects(groups.isNeeded)
    return true
  }

  /// A partition was read up to its end, as it is now.
  func reachedEnd(of partition: AssignedPartition, at offset: Int64) {
    ends[partition.index] = (partition, offset)
    takeEnds()
    guard groups.isNeeded else { return }
    groups.reachedEnd(of: checkpoints.table.marked(partition.topicPartition), at: offset)
    madeRoom()
  }

  /// Records are begun as usual: nothing need be known of the groups any more.
  private func endGroups() {
    if crashes.hasTurn || crashes.isWaiting { crashes.endTurn() }
    crashes.cleared(groups.takeUnsuspected())
  }

  /// The lane's turn with a group has come; it may have nothing to do with it any more.
  func turnCame() {
    guard crashes.isWaiting else { return }
    if crashes.isBisecting, !backlog.isEmpty, state.phase.mayBegin, mayBeginGroup { return advance() }
    crashes.endTurn()
    madeRoom()
  }

  /// Leaves the turn to others while there is nothing to begin, or nothing may be begun.
  private func restTurn() {
    guard backlog.isEmpty || !state.phase.mayBegin else { return }
    if crashes.hasTurn ? mayBeginGroup : crashes.isWaiting { crashes.endTurn() }
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
      if case .begun(let ticket) = committer.begin(record) { notes.finished(ticket) }
      return false
    case .madeAgain:
      // What is known of its offsets is of other records.
      let marked = checkpoints.table.marked(partition)
      forget([marked])
      crashes.cleared([marked])
      logger.warning("the topic was deleted and made again: its markers begin again", ["partition": "\(partition)"])
      consumer?.startAgain(index)
      return false
    }
  }
}
