import Kafka
import Notifications
import Store
import Worker

/// Begins records in groups while workers crash at them, so that the record that does it is found.
///
/// `CrashLoopDetector` counts in Redis and has the permit of the process, `RecordGroups` decides. This connects both with the lane.
final class CrashGroups {
  private let lane: LaneContext
  private let checkpoints: Checkpoints
  private let crashes: CrashLoopDetector
  private let pipeline: Pipeline
  /// The suspected partitions, and the group that was begun last.
  private var groups = RecordGroups<(batch: RecordBatch, begun: [BegunRecord])>()
  /// Begins the records.
  weak var owner: Intake?

  init(_ lane: LaneContext, _ checkpoints: Checkpoints, _ crashes: CrashLoopDetector, _ pipeline: Pipeline) {
    (self.lane, self.checkpoints, self.crashes, self.pipeline) = (lane, checkpoints, crashes, pipeline)
  }

  // MARK: Partitions

  private func marked(_ partition: TopicPartition) -> MarkedPartition { checkpoints.table.marked(partition) }

  /// A partition was begun that is suspected.
  func suspect(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion) {
    groups.suspect(partition, suspicion)
    crashes.bisects(true)
    lane.logger.warning(
      "workers have crashed at these records again and again: the records begin in small groups",
      ["partition": name(of: partition), "records": CrashLoopDetector.bisectedRecords])
  }

  private func name(of partition: MarkedPartition) -> String {
    switch partition {
    case .requests(let number), .readableRequests(let number): "\(TopicPartition(lane.settings.topics.requests, number))"
    case .devices(let number): "\(TopicPartition(lane.settings.topics.devices, number))"
    }
  }

  /// A partition was begun once more, since Redis was unverified. It stays as suspected as before.
  func startedAgain(_ partition: MarkedPartition) {
    if groups.startedAgain(partition) { crashes.bisects(true) }
  }

  /// Partitions are suspected no more.
  func forget(_ partitions: [MarkedPartition]) {
    if !groups.forget(partitions).isEmpty { crashes.bisects(groups.isNeeded) }
  }

  /// A topic was deleted and made again: the facts about these offsets concern other records.
  func madeAgain(_ partition: TopicPartition) {
    forget([marked(partition)])
    crashes.cleared([marked(partition)])
  }

  /// Partitions are revoked: no further record of them is begun.
  func revoked(_ partitions: [TopicPartition]) {
    if groups.isNeeded { groups.revoked(partitions.map(marked)) }
  }

  /// Partitions have left: their records are finished, or the lane waits for these no longer.
  func left(_ partitions: [TopicPartition], isLost: Bool) {
    let marked = partitions.map(marked)
    let noted = groups.leave(marked, isLost: isLost)
    if !noted.isEmpty { crashes.bisects(groups.isNeeded) }
    if isLost { crashes.leftToAnother(noted) } else { crashes.left(marked, suspected: noted) }
  }

  /// A partition was read up to its present end.
  func reachedEnd(of partition: TopicPartition, at offset: Int64) {
    if groups.isNeeded { groups.reachedEnd(of: marked(partition), at: offset) }
  }

  // MARK: Groups

  /// Whether this lane, and all others of the process, begin records in groups.
  var isBisecting: Bool { crashes.isBisecting }

  /// Whether the next records begin in a group: a group that is being noted is processed before the records after it.
  var isNeeded: Bool { crashes.isBisecting || !groups.isFree }

  /// Whether the former group is finished. While the registry is behind, parked requests wait for registrations, which come in groups, too.
  private var mayBegin: Bool {
    guard groups.isFree else { return false }
    return pipeline.isIdle || lane.state.phase.isRegistryBehind && pipeline.onlyWaitsForRegistry
  }

  /// Begins a group of one partition's records, and has Redis note it. Returns whether more may be begun at once.
  ///
  /// - Parameter begin: begins records in a range of the batch; answers them, and the index of the next record.
  func begin(_ batch: RecordBatch, _ first: Int, _ begin: (Range<Int>) -> (begun: [BegunRecord], next: Int)) -> Bool {
    guard mayBegin else { return false }
    if endSuspicions() { return true }
    guard crashes.takePermit() else { return false }
    let partition = marked(TopicPartition(batch[first].topic, batch[first].partition))
    let (begun, next) = begin(first..<end(batch, from: first, partition))
    guard let start = begun.first, let last = begun.last else {
      // Without a slot the permit is of no use. The next end of a record asks for it again.
      if next == first { crashes.returnPermit() }
      return next > first
    }
    let offsets = batch[start.index].offset..<batch[last.index].offset + 1
    let tag = groups.begin((batch, begun), count: begun.count, offsets: offsets, of: partition)
    crashes.note(partition, CrashLoopDetector.Group(first: offsets.lowerBound, width: Int64(offsets.count))) { [self] in
      // The group may have been given up meanwhile, and with it the consumer.
      if groups.noted(tag) { owner?.advance() }
    }
    return false
  }

  /// The index in the batch at which the group of this record ends: at the end of its partition's records there, or before.
  private func end(_ batch: RecordBatch, from first: Int, _ partition: MarkedPartition) -> Int {
    let end = groups.end(from: batch[first].offset, of: partition)
    return (first + 1..<batch.count).first {
      batch[$0].partitionIndex != batch[first].partitionIndex || batch[$0].offset >= end
    } ?? batch.count
  }

  /// Processes the group that Redis has noted.
  func takeNoted(_ committer: OffsetCommitter) {
    guard let group = groups.take() else { return }
    // Meanwhile its partition may have left, or begun again.
    let (batch, begun) = (group.records.batch, group.records.begun.filter { committer.isCurrent($0.ticket) })
    guard let first = begun.first else { return }
    switch group.remedy {
    case nil: pipeline.take(batch, begun)
    case .withoutExtensions: pipeline.take(batch, begun.map(\.withoutExtensions))
    case .deadLetter: pipeline.take(batch, [first], poison: (CrashLoopDetector.tries, DeadLetter.workersEnded))
    }
  }

  /// Ends the suspicion of partitions whose suspected records have all begun, if every group is finished.
  func endSuspicionsWhenIdle() {
    if groups.isNeeded, groups.isFree, pipeline.isIdle { endSuspicions() }
  }

  /// Returns whether there are any.
  @discardableResult private func endSuspicions() -> Bool {
    let through = groups.takeThrough { owner?.isWaiting($0) == true }
    if through.isEmpty { return false }
    crashes.cleared(through)
    crashes.bisects(groups.isNeeded)
    return true
  }

  /// Records are begun as usual: the groups are over.
  func end() {
    if crashes.hasPermit || crashes.isWaiting { crashes.returnPermit() }
    crashes.cleared(groups.takeUnsuspected())
  }

  /// Gives up the group that waits. The next reader of its records begins them again.
  func giveUp() { groups.giveUp() }

  // MARK: The permit

  /// The lane gets the permit. It may not need it any more.
  ///
  /// - Parameter mayBegin: whether there is a record, and it may begin now.
  /// - Returns: whether the lane has waited for it.
  func permitCame(mayBegin: Bool) -> Bool {
    guard crashes.isWaiting else { return false }
    if !crashes.isBisecting || !mayBegin || !self.mayBegin { crashes.returnPermit() }
    return true
  }

  /// Leaves the permit to other lanes while this lane has no record to begin, or may begin none.
  func yieldPermit() {
    if crashes.hasPermit ? mayBegin : crashes.isWaiting { crashes.returnPermit() }
  }
}
