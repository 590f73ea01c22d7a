import EventLoop
import Kafka
import Worker

/// Shows once a second how far the lane is behind, from what it knows anyway. Loop-confined.
///
/// The brokers are asked where a log begins and ends when its partition has just begun, and as long as it is behind: a lane that takes no
/// records is told no ends by its fetches.
final class LaneLag {
  private struct Partition {
    let assigned: AssignedPartition
    var behind = PartitionBehind()
    /// Where its log begins and ends, as a broker has said.
    var log: Range<Int64>?
    /// Where the consumer has found nothing more.
    var reachedEnd: Int64 = -1
    /// What lies behind that, which no reader is given.
    var heldBack = HeldBack()
    /// Where its log began was held against where its reading was to begin: the worker may have come too late.
    var isBeginningKnown = false
  }

  private let checkpoints: Checkpoints
  private let logger: Logger
  private let health: Health
  private let metrics: TransformMetrics
  private let timer: Timer
  private var partitions: [Int: Partition] = [:]
  private var secondsSinceQuestion = 0
  private var isAsking = false
  private var consumer: Consumer?
  private var committer: OffsetCommitter?
  private var intake: Intake?
  /// Those whose queues are shown, too.
  var producers: LaneProducers?
  /// Has `ask` called.
  weak var owner: (any TransformTaskRunner)?

  /// How often the brokers are asked, in seconds, and of which partitions: those that are so far behind, in milliseconds.
  private static let (questionSeconds, questionMilliseconds): (Int, Int64) = (5, 2_000)

  init(
    on loop: EventLoop, _ settings: TransformSettings, _ checkpoints: Checkpoints, logger: Logger, health: Health,
    metrics: TransformMetrics
  ) {
    (self.checkpoints, self.logger, self.health, self.metrics) = (checkpoints, logger, health, metrics)
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in tick() }
    metrics.inFlightLimit.set(settings.inFlight)
    metrics.inFlightBytesLimit.set(settings.inFlightBytes)
  }

  /// A consumer has joined the group.
  func attach(_ consumer: Consumer, _ committer: OffsetCommitter, _ intake: Intake) {
    (self.consumer, self.committer, self.intake) = (consumer, committer, intake)
    timer.start(after: 1_000, repeating: 1_000)
  }

  /// The consumer has no partition any more.
  func detach() {
    timer.stop()
    (consumer, committer, intake) = (nil, nil, nil)
    partitions = [:]
    show()
  }

  /// Nothing is shown any more.
  func close() {
    detach()
    timer.close()
    producers = nil
  }

  /// The consumer has given everything below an offset.
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

  /// Whether a partition is of the assignment that is known, which it is from now on.
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
    // What was given and waits for its turn is not finished.
    let isLeft = intake?.isEmpty != true
    let next = progress.oldest ?? (isLeft ? finished : max(finished, partition.reachedEnd))
    let stamp = progress.committable == nil ? wanted?.timestamp ?? -1 : progress.committableTimestamp
    // What lies behind the last stable offset is given to nobody: it belongs to an open transaction, or was written behind one.
    let end = consumer?.knownEnd(of: index) ?? next
    // A consumer that takes nothing does not hear of a later end either.
    let isListening = consumer?.isHeld == false && consumer?.isPaused(index) == false
    let isAtEnd = isListening && next == partition.reachedEnd
    report(partition.heldBack.observe(next, records: isAtEnd ? max(0, end - next) : 0, at: SteadyClock.milliseconds()), partition.assigned)
    partition.behind.observe(
      .init(
        next: next, end: max(isAtEnd ? next : end, partition.log?.upperBound ?? next),
        oldest: progress.oldestTimestamp.flatMap { $0 >= 0 ? $0 : nil }, finished: stamp >= 0 ? stamp : nil,
        now: WallClock.milliseconds()))
    // Of a partition that nobody has worked through nothing was wanted.
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
    metrics.missed.increment(by: missed.count)
    logger.error(
      "records are gone that were not read: the log begins behind them",
      ["partition": "\(partition.topicPartition)", "first": missed.lowerBound, "last": missed.upperBound - 1])
  }

  private func report(_ change: HeldBack.Change?, _ partition: AssignedPartition) {
    let name = "\(partition.topicPartition)"
    switch change {
    case .found(let offset, let records):
      logger.warning(
        "a transaction is open: its records, and those behind it, are read when its producer or Kafka ends it",
        ["partition": name, "offset": offset, "records": records])
    case .ended: logger.info("the transaction has ended", ["partition": name])
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
    metrics.lagSeconds.replace(with: seconds)
    metrics.lagRecords.replace(with: records)
    metrics.assignedPartitions.set(partitions.count)
    metrics.inFlight.set(committer?.inFlight ?? 0)
    metrics.inFlightBytes.set(intake?.bytesInFlight ?? 0)
    producers?.show(in: metrics.clients, health)
  }

  // MARK: What the brokers know

  /// Those that a broker has to be asked about now.
  private var questionable: [TopicPartition] {
    let isTime = secondsSinceQuestion >= Self.questionSeconds
    return partitions.values.filter { partition in
      partition.log == nil || isTime && partition.behind.milliseconds ?? .max > Self.questionMilliseconds
    }.map(\.assigned.topicPartition)
  }

  /// Asks the brokers; one that does not answer now is asked again.
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
