import EventLoop
import Kafka
import Worker

/// Shows once a second how far the lane is behind, mostly from facts that it has anyway.
///
/// It asks the brokers where a log begins and ends when the partition has just begun, and while it is behind: without fetches a lane gets
/// no new ends.
final class LaneLag {
  private struct Partition {
    let assigned: AssignedPartition
    var behind = PartitionBehind()
    /// Where the log begins and ends, as a broker has answered.
    var log: Range<Int64>?
    /// The end that the consumer has reached.
    var reachedEnd: Int64 = -1
    /// Whether an open transaction holds back the records after that.
    var heldBack = HeldBack()
    /// Whether the beginning of the log was compared with the offset at which reading began: the worker may have come too late.
    var isBeginningKnown = false
  }

  private let lane: LaneContext
  private let checkpoints: Checkpoints
  private let timer: Timer
  private var partitions: [Int: Partition] = [:]
  private var secondsSinceQuestion = 0
  private var isAsking = false
  private var consumer: Consumer?
  private var committer: OffsetCommitter?
  private var intake: Intake?
  /// The producers whose queues are shown, too.
  var producers: LaneProducers?
  /// Calls `ask` in a task of the lane.
  weak var owner: TransformCore?

  /// How often the brokers are asked, in seconds, and how far behind a partition is for that, in milliseconds.
  private static let (questionSeconds, questionMilliseconds): (Int, Int64) = (5, 2_000)

  init(_ lane: LaneContext, _ checkpoints: Checkpoints) {
    (self.lane, self.checkpoints) = (lane, checkpoints)
    timer = Timer(on: lane.loop)
    timer.handler = { [unowned self] in tick() }
    lane.metrics.inFlightLimit.set(lane.settings.inFlight)
    lane.metrics.inFlightBytesLimit.set(lane.settings.inFlightBytes)
  }

  /// A consumer has joined the group.
  func attach(_ consumer: Consumer, _ committer: OffsetCommitter, _ intake: Intake) {
    (self.consumer, self.committer, self.intake) = (consumer, committer, intake)
    timer.start(after: 1_000, repeating: 1_000)
  }

  /// The consumer leaves the group.
  func detach() {
    timer.stop()
    (consumer, committer, intake) = (nil, nil, nil)
    partitions = [:]
    show()
  }

  /// Ends the display.
  func close() {
    detach()
    timer.close()
    producers = nil
  }

  /// The consumer has delivered all records below an offset.
  func reachedEnd(of partition: AssignedPartition, at offset: Int64) {
    guard known(partition) else { return }
    partitions[partition.index]?.reachedEnd = offset
  }

  // MARK: Once a second

  private func tick() {
    guard let consumer else { return }
    let assignment = consumer.assignment
    let indexes = Set(assignment.map(\.index))
    partitions = partitions.filter { indexes.contains($0.key) }
    for partition in assignment {
      _ = known(partition)
      observe(partition.index)
    }
    show()
    secondsSinceQuestion += 1
    guard !isAsking, !questionable.isEmpty else { return }
    isAsking = true
    owner?.run(.askForLogs)
  }

  /// Makes a partition of this assignment known. Returns false without a consumer.
  private func known(_ partition: AssignedPartition) -> Bool {
    guard consumer != nil else { return false }
    if partitions[partition.index]?.assigned.generation != partition.generation {
      partitions[partition.index] = Partition(assigned: partition)
    }
    return true
  }

  private func observe(_ index: Int) {
    guard var partition = partitions[index], let progress = committer?.progress(of: index) else { return }
    let wanted = checkpoints.table.wanted(index)
    let read = max(progress.newest.map { $0 + 1 } ?? wanted?.offset ?? 0, partition.reachedEnd)
    let finished = max(progress.committable ?? wanted?.offset ?? 0, partition.log?.lowerBound ?? 0)
    // Records that wait to be begun are not finished.
    let isLeft = intake?.isEmpty != true
    let next = progress.oldest ?? (isLeft ? finished : max(finished, partition.reachedEnd))
    let stamp = progress.committable == nil ? wanted?.timestamp ?? -1 : progress.committableTimestamp
    // Kafka delivers no record after the last stable offset: it belongs to an open transaction, or was written after one.
    let end = consumer?.knownEnd(of: index) ?? next
    // A consumer that takes no records does not learn of a later end either.
    let isListening = consumer?.isHeld == false && consumer?.isPaused(index) == false
    let isAtEnd = isListening && next == partition.reachedEnd
    report(partition.heldBack.observe(next, records: isAtEnd ? max(0, end - next) : 0, at: SteadyClock.milliseconds()), partition.assigned)
    partition.behind.observe(
      .init(
        next: next, end: max(isAtEnd ? next : end, partition.log?.upperBound ?? next),
        oldest: progress.oldestTimestamp.flatMap { $0 >= 0 ? $0 : nil }, finished: stamp >= 0 ? stamp : nil,
        now: WallClock.milliseconds()))
    // Nothing is missing from a partition that was never processed.
    if let log = partition.log, wanted != nil || progress.newest != nil {
      if !partition.isBeginningKnown, let begun = checkpoints.table.begun(index) {
        partition.isBeginningKnown = true
        _ = partition.behind.missed(reading: begun, logStart: log.lowerBound)
      }
      if let missed = partition.behind.missed(reading: read, logStart: log.lowerBound) { report(missed, partition.assigned) }
    }
    partitions[index] = partition
  }

  private func report(_ missed: Range<Int64>, _ partition: AssignedPartition) {
    lane.metrics.missed.increment(by: missed.count)
    lane.logger.error(
      "records are gone: Kafka deleted them before they were read",
      ["partition": "\(partition.topicPartition)", "first": missed.lowerBound, "last": missed.upperBound - 1])
  }

  private func report(_ change: HeldBack.Change?, _ partition: AssignedPartition) {
    let name = "\(partition.topicPartition)"
    switch change {
    case .found(let offset, let records):
      lane.logger.warning(
        "a transaction is open: its records, and all after its first one, are read when its producer or Kafka ends it",
        ["partition": name, "offset": offset, "records": records])
    case .ended: lane.logger.info("the transaction has ended", ["partition": name])
    case nil: break
    }
  }

  private func show() {
    var (seconds, records): ([[String]: Double], [[String]: Double]) = ([:], [:])
    for partition in partitions.values {
      let labels = [partition.assigned.topicPartition.topic, String(partition.assigned.topicPartition.partition)]
      seconds[labels] = partition.behind.milliseconds.map { Double($0) / 1000 }
      records[labels] = Double(partition.behind.records)
    }
    lane.metrics.lagSeconds.replace(with: seconds)
    lane.metrics.lagRecords.replace(with: records)
    lane.metrics.assignedPartitions.set(partitions.count)
    lane.metrics.inFlight.set(committer?.inFlight ?? 0)
    lane.metrics.inFlightBytes.set(intake?.bytesInFlight ?? 0)
    producers?.show(in: lane.metrics.clients, lane.health)
  }

  // MARK: The brokers

  /// The partitions about which to ask a broker now.
  private var questionable: [TopicPartition] {
    let isTime = secondsSinceQuestion >= Self.questionSeconds
    return partitions.values.filter { partition in
      partition.log == nil || isTime && partition.behind.milliseconds ?? .max > Self.questionMilliseconds
    }.map(\.assigned.topicPartition)
  }

  /// Asks the brokers. One that does not answer is asked again.
  func ask(_ admin: Admin) async {
    let wanted = questionable
    let generations = partitions.mapValues(\.assigned.generation)
    let ends = (try? await admin.ends(of: wanted)) ?? [:]
    (isAsking, secondsSinceQuestion) = (false, 0)
    for (index, partition) in partitions where generations[index] == partition.assigned.generation {
      if let log = ends[partition.assigned.topicPartition] { partitions[index]?.log = log }
    }
  }
}
