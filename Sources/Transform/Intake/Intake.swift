import JSON
import Kafka
import Store
import Worker

/// Begins the records of the consumer's batches. They wait here for a slot, for the registry, or for a crash loop to be found.
///
/// `advance` alone begins records. Each event notes what it changes, and then calls it; the end of a record is no such event (`EndNotes`).
final class Intake {
  private let lane: LaneContext
  private let checkpoints: Checkpoints
  private let groups: CrashGroups
  private let pipeline: Pipeline
  private let journal: Journal
  private let rates: RateLimits
  private var consumer: Consumer?
  private var committer: OffsetCommitter?
  /// The facts about partitions that each record needs, by the partition's index.
  private var partitions: [Partition] = []
  /// The partitions whose assignment was logged.
  private var logged: Set<TopicPartition> = []
  /// Batches with records that have not begun, each with the index of the first of these.
  private var backlog: [(batch: RecordBatch, next: Int)] = []
  /// Ends of partitions, by the partitions' indexes. They are reached after the records of the backlog.
  private var ends: [Int: (partition: AssignedPartition, offset: Int64)] = [:]
  /// Batches that cannot be read. They are begun after the records of the backlog, and their partitions stand still until then.
  private var stretches: [UnreadableStretch] = []
  private let unreadable: UnreadableStretches

  private struct Partition {
    var isRegistry = false
    /// The journal has no partition of this number, so the partition stays paused.
    var isUnjournaled = false
    /// The requests of the last window are not counted yet, so the partition stays paused.
    var isUncounted = false
    var incarnation: UInt32 = 0
    /// The partition was revoked: no further record of it is begun.
    var isLeaving = false
  }

  init(
    _ lane: LaneContext, _ checkpoints: Checkpoints, _ groups: CrashGroups, _ pipeline: Pipeline, _ journal: Journal,
    _ rates: RateLimits, _ unreadable: UnreadableStretches
  ) {
    (self.lane, self.checkpoints, self.groups, self.pipeline) = (lane, checkpoints, groups, pipeline)
    (self.journal, self.rates, self.unreadable) = (journal, rates, unreadable)
    groups.owner = self
  }

  /// A consumer has joined the group.
  func attach(_ consumer: Consumer, _ committer: OffsetCommitter) {
    (self.consumer, self.committer) = (consumer, committer)
    for index in partitions.indices { partitions[index].isLeaving = false }
  }

  /// The consumer is being closed. The next owner begins the records that wait.
  func detach() {
    clear()
    (consumer, committer) = (nil, nil)
    yieldPermit()
  }

  /// The lane drains: the records that wait are not begun.
  func discard() {
    clear()
    yieldPermit()
    hold()
  }

  private func clear() {
    (backlog, ends, stretches) = ([], [:], [])
    groups.giveUp()
  }

  /// Stops taking fetched records.
  func hold() { consumer?.hold() }

  /// Whether no record waits to be begun.
  var isEmpty: Bool { backlog.isEmpty }

  /// How many bytes the records in flight retain.
  var bytesInFlight: Int { pipeline.bytesInFlight }

  // MARK: Partitions

  /// Partitions are assigned. Those that have to wait are paused.
  ///
  /// - Parameters:
  ///   - unjournaled: the indexes of partitions for which the journal has none.
  ///   - uncounted: the indexes of partitions whose requests of the last window must be counted first.
  func assigned(_ assigned: [AssignedPartition], unjournaled: Set<Int>, uncounted: Set<Int>) {
    for partition in assigned {
      while partitions.count <= partition.index { partitions.append(Partition()) }
      partitions[partition.index].isLeaving = false
      partitions[partition.index].isRegistry = partition.topicPartition.topic == lane.settings.topics.devices
      partitions[partition.index].isUnjournaled = unjournaled.contains(partition.index)
      partitions[partition.index].isUncounted = uncounted.contains(partition.index)
    }
    // No record of the partition was given yet, so a later assignment reads it from the same offset.
    consumer?.pause(unjournaled.union(uncounted))
    if lane.state.phase.isRegistryBehind { pauseRequests() }
  }

  /// Takes only registrations from now on.
  func pauseRequests() { consumer?.pause(owned { !partitions[$0].isRegistry }) }

  /// Takes requests again.
  func resumeRequests() { consumer?.resume(owned(mayFlow)) }

  private func mayFlow(_ index: Int) -> Bool { !partitions[index].isUnjournaled && !partitions[index].isUncounted }

  /// The requests of the last windows of these partitions are counted.
  func counted(_ indexes: Set<Int>) {
    for index in indexes where index < partitions.count { partitions[index].isUncounted = false }
    if !lane.state.phase.isRegistryBehind { consumer?.resume(owned { indexes.contains($0) && mayFlow($0) }) }
  }

  private func owned(_ isWanted: (_ index: Int) -> Bool) -> [Int] { consumer?.assignment.map(\.index).filter(isWanted) ?? [] }

  /// Partitions are revoked: no further record of them is begun.
  func revoked(_ partitions: [AssignedPartition], isLost: Bool) {
    for partition in partitions where partition.index < self.partitions.count { self.partitions[partition.index].isLeaving = true }
    // They belong to the assignment that ends.
    for partition in partitions { ends[partition.index] = nil }
    groups.revoked(partitions.map(\.topicPartition))
    stretches.removeAll { stretch in partitions.contains { $0.index == stretch.partition.index } }
    logged.subtract(partitions.map(\.topicPartition))
    lane.logger.info(isLost ? "partitions lost" : "partitions revoked", numbers(partitions))
  }

  /// Partitions have left: their records are finished, or the lane waits for these no longer.
  func left(_ partitions: [AssignedPartition], isLost: Bool) {
    // A partition that is assigned again meanwhile may be suspected again.
    let gone = partitions.filter { gone in
      consumer?.assignment.contains { $0.index == gone.index && $0.generation != gone.generation } != true
    }
    groups.left(gone.map(\.topicPartition), isLost: isLost)
  }

  /// The markers were compared: they have the incarnation of each topic. Partitions begin one by one, and one log line names them all.
  func compared() {
    let assignment = consumer?.assignment ?? []
    for partition in assignment { partitions[partition.index].incarnation = checkpoints.table.incarnation(partition.index) }
    guard consumer?.offers.isEmpty == true, !logged.isSuperset(of: assignment.map(\.topicPartition)) else { return }
    logged = Set(assignment.map(\.topicPartition))
    lane.logger.info("partitions assigned", numbers(assignment))
  }

  private func numbers(_ partitions: [AssignedPartition]) -> KeyValuePairs<String, any JSONRepresentable> {
    func numbers(_ topic: String) -> String {
      PartitionNames.text(partitions.map(\.topicPartition).filter { $0.topic == topic }.map(\.partition))
    }
    return ["requests": numbers(lane.settings.topics.requests), "devices": numbers(lane.settings.topics.devices)]
  }

  // MARK: Records

  /// Takes a batch.
  func received(_ batch: RecordBatch) {
    backlog.append((batch, 0))
    if backlog.count == 1 { advance() } else { consumer?.hold() }
  }

  /// Records have ended, or Redis has caught up: continues if there is enough room.
  func madeRoom() {
    // Half of the slots, so that a batch is worth its turn.
    let hasRoom = committer.map { $0.inFlight <= lane.settings.inFlight / 2 } ?? true
    if backlog.isEmpty || groups.isBisecting || hasRoom { advance() }
  }

  /// Begins the records that may be begun now, and takes no batches while others wait.
  func advance() {
    guard let committer, let consumer else { return yieldPermit() }
    let mayBegin = lane.state.phase.mayBegin
    if mayBegin {
      groups.takeNoted(committer)
      while beginNext(committer) {}
    }
    if backlog.isEmpty { takeEnds(consumer, committer) }
    if mayBegin, backlog.isEmpty {
      groups.endSuspicionsWhenIdle()
      consumer.release()
    } else {
      consumer.hold()
    }
    yieldPermit()
  }

  /// Begins records of the first batch that waits. Returns whether more may be begun at once.
  private func beginNext(_ committer: OffsetCommitter) -> Bool {
    guard let (batch, first) = backlog.first, pipeline.hasRoom else { return false }
    if groups.isNeeded { return groups.begin(batch, first) { begin(batch, $0, committer) } }
    groups.end()
    let (begun, next) = begin(batch, first..<batch.count, committer)
    if !begun.isEmpty { pipeline.take(batch, begun) }
    // Judged requests that the journal does not have yet take slots, too.
    if committer.inFlight >= lane.settings.inFlight / 2 { journal.flush() }
    return next == batch.count
  }

  /// Begins records in this range of the first batch until no slot is left. Returns them, and the index of the next record.
  private func begin(_ batch: RecordBatch, _ range: Range<Int>, _ committer: OffsetCommitter) -> (begun: [BegunRecord], next: Int) {
    var begun: [BegunRecord] = []
    begun.reserveCapacity(range.count)
    var next = range.lowerBound
    let isLimited = rates.isActive
    scan: while next < range.upperBound {
      let record = batch[next]
      if !partitions[record.partitionIndex].isLeaving, !checkpoints.table.hasUnconfirmed || isWork(record, committer) {
        switch committer.begin(record) {
        case .begun(let ticket):
          let partition = partitions[record.partitionIndex]
          var each = BegunRecord(index: next, ticket: ticket, isRegistration: partition.isRegistry, incarnation: partition.incarnation)
          if isLimited, !partition.isRegistry { each.excess = rates.count(record) }
          begun.append(each)
        case .ignored: break
        case .full: break scan
        }
      }
      next += 1
    }
    if next == batch.count { backlog.removeFirst() } else { backlog[0].next = next }
    return (begun, next)
  }

  /// Begins unreadable batches, and lets markers and committed offsets reach the ends of partitions.
  ///
  /// All records of the backlog lie below these, and are begun before. An end may have no record below it.
  private func takeEnds(_ consumer: Consumer, _ committer: OffsetCommitter) {
    takeStretches(consumer, committer)
    // Records of a partition that is leaving were not begun.
    for (index, end) in ends where !partitions[index].isLeaving {
      committer.reachedEnd(of: end.partition, at: end.offset, timestamp: checkpoints.reachedEnd(index, at: end.offset))
    }
    ends = [:]
  }

  private func takeStretches(_ consumer: Consumer, _ committer: OffsetCommitter) {
    let waiting = stretches
    stretches = []
    for stretch in waiting where !partitions[stretch.partition.index].isLeaving {
      let index = stretch.partition.index
      // Records below the marker were applied when they could be read.
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

  /// A batch of a partition cannot be read.
  func foundUnreadable(_ stretch: UnreadableStretch) {
    stretches.append(stretch)
    madeRoom()
  }

  /// A partition was read up to its present end.
  func reachedEnd(of partition: AssignedPartition, at offset: Int64) {
    ends[partition.index] = (partition, offset)
    groups.reachedEnd(of: partition.topicPartition, at: offset)
    madeRoom()
  }

  /// Whether a partition has records that were read and have not begun.
  func isWaiting(_ partition: MarkedPartition) -> Bool {
    backlog.contains { batch, first in
      (first..<batch.count).contains { checkpoints.table.marked(TopicPartition(batch[$0].topic, batch[$0].partition)) == partition }
    }
  }

  /// The lane gets the permit for a group.
  func permitCame() { if groups.permitCame(mayBegin: !backlog.isEmpty && lane.state.phase.mayBegin) { advance() } }

  private func yieldPermit() { if backlog.isEmpty || !lane.state.phase.mayBegin { groups.yieldPermit() } }

  // MARK: The first record

  /// Whether to begin a record. The first record of a partition shows whether the marker fits at which reading began.
  private func isWork(_ record: RecordView, _ committer: OffsetCommitter) -> Bool {
    let index = record.partitionIndex
    guard checkpoints.table.isUnconfirmed(index) else { return true }
    guard let assigned = consumer?.assignment.first(where: { $0.index == index }), assigned.generation == record.generation else {
      return false
    }
    let partition = assigned.topicPartition
    switch checkpoints.compareFirstRecord(of: partition, index, offset: record.offset, timestamp: record.timestamp) {
    case .work: return true
    case .skip:
      // The group may not know that the record is applied: the lane that raised the marker may have ended before its commit. Without this
      // the group would be behind until a new record is published.
      if case .begun(let ticket) = committer.begin(record) { lane.notes.finished(ticket) }
      return false
    case .madeAgain:
      groups.madeAgain(partition)
      lane.logger.warning("the topic was deleted and made again: its markers begin again", ["partition": "\(partition)"])
      consumer?.startAgain(index)
      return false
    }
  }
}
