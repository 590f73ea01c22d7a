import EventLoop
import Kafka
import Store
import Worker

/// The lane as a member of its group: its consumer, its commits, leaving and joining again.
final class GroupMember {
  private let lane: LaneContext
  private var plan: GroupPlan
  private let checkpoints: Checkpoints
  private let watch: GroupWatch
  private let timer: Timer
  /// The partitions of the lane that wait for the journal.
  private var unjournaled: [Int32] = []
  /// Whether the lane is leaving to join again, or is joining again.
  private(set) var isJoiningAgain = false
  /// The lane's consumer; nil while the lane is outside the group.
  private(set) var consumer: Consumer?
  /// The consumer's committer.
  private(set) var committer: OffsetCommitter?
  weak var owner: TransformCore? { didSet { watch.owner = owner } }

  init(_ lane: LaneContext, _ plan: GroupPlan, _ checkpoints: Checkpoints) {
    (self.lane, self.plan, self.checkpoints) = (lane, plan, checkpoints)
    watch = GroupWatch(on: lane.loop, lane.settings)
    timer = Timer(on: lane.loop)
    timer.handler = { [unowned self] in owner?.run(.askForPartitions) }
    timer.start(after: Self.questionMilliseconds, repeating: Self.questionMilliseconds)
  }

  /// How often a lane asks how many partitions the topics have.
  private static let questionMilliseconds = 10_000

  /// Makes a consumer, and joins the group.
  func join() throws(KafkaError) {
    guard let owner else { return }
    var options = plan.options(lane.settings)
    if plan.hasStaticMembers {
      options.instanceID = lane.settings.members?.join(lane.settings.worker, sessionMilliseconds: options.sessionTimeoutMilliseconds)
    }
    let consumer = try Consumer(on: lane.loop, lane.settings.kafka, options, handler: owner)
    consumer.onLog = { [logger = lane.logger] in logger.log($0) }
    // A rebuild of Redis needs the incarnation, since revisions contain it.
    consumer.commitNote = { [checkpoints] in Marker.note(incarnation: checkpoints.table.incarnation($0)) }
    let committer = OffsetCommitter(on: lane.loop, consumer, limit: lane.settings.inFlight) { [lane] in
      lane.metrics.clients.kafkaFailed($0.code)
      lane.logger.warning("an offset was not committed; another attempt follows", ["error": "\($0)"])
    }
    committer.prepare = { [weak self] offsets, prepared in
      guard let owner = self?.owner else { return prepared([]) }
      owner.prepare(offsets, prepared)
    }
    committer.onBeyondSetAside = { [weak self] in self?.owner?.appliedReadable(below: $0) }
    (self.consumer, self.committer) = (consumer, committer)
    lane.health.set("kafka", ready: false, Self.waitsForPartitions)
    owner.joined(consumer, committer)
    watch.attach(consumer)
    try consumer.subscribe([lane.settings.topics.requests])
  }

  /// The reason in readiness until the group assigns a partition to the lane.
  static let waitsForPartitions = "no partition is assigned yet"

  /// Leaves the group and joins it again.
  func joinAgain() async {
    guard !isJoiningAgain else { return }
    isJoiningAgain = true
    defer { isJoiningAgain = false }
    while true {
      await leave()
      guard !lane.state.phase.isEnding else { return }
      do {
        return try join()
      } catch {
        lane.health.set("kafka", ready: false, "\(error)")
        lane.logger.error("the group could not be joined again; another attempt follows", ["error": "\(error)"])
        await lane.loop.sleep(milliseconds: 1_000)
      }
    }
  }

  /// Gives up the partitions, and the consumer.
  private func leave() async {
    guard let consumer else { return }
    owner?.leaves()
    watch.detach()
    await close(consumer, withinMilliseconds: Consumer.standardCloseMilliseconds)
    committer?.close()
    (self.consumer, committer) = (nil, nil)
  }

  private func close(_ consumer: Consumer, withinMilliseconds milliseconds: Int) async {
    guard await !consumer.close(withinMilliseconds: milliseconds) else { return }
    lane.logger.warning(
      "the group was not left in time: others get this lane's partitions when its session ends", ["afterMs": milliseconds])
  }

  // MARK: The partitions

  /// The indexes of the assigned partitions that wait for the journal.
  func unjournaled(among assigned: [AssignedPartition]) -> Set<Int> {
    let waiting = assigned.filter { isUnjournaled($0.topicPartition) }
    // Both topics may have got more partitions since they were counted.
    if !waiting.isEmpty { owner?.run(.askForPartitions) }
    return Set(waiting.map(\.index))
  }

  private func isUnjournaled(_ partition: TopicPartition) -> Bool {
    partition.topic == lane.settings.topics.requests && Int(partition.partition) >= plan.partitions.journaled
  }

  /// Reports which partitions of the lane wait for the journal, by its last known size.
  func tellUnjournaled() {
    let waiting = (consumer?.assignment ?? []).map(\.topicPartition).filter(isUnjournaled).map(\.partition).sorted()
    guard waiting != unjournaled else { return }
    unjournaled = waiting
    guard !waiting.isEmpty else {
      lane.health.remove("partitions")
      return lane.logger.info("no partition of this lane waits for the journal any more")
    }
    let (requests, journal) = (lane.settings.topics.requests, lane.settings.topics.journal)
    lane.health.set(
      "partitions", ready: false,
      "\(requests) \(PartitionNames.text(waiting)) wait: \(journal) has only \(ReadableText.count(plan.partitions.journal, "partition")); give it as many as \(requests) has (kafka-topics --alter)"
    )
    lane.logger.error(
      "partitions wait, since the journal has no partitions of the same numbers: give it as many as the requests have",
      ["topic": requests, "partitions": PartitionNames.text(waiting), "journal": journal, "count": plan.partitions.journal])
  }

  /// Asks how many partitions the topics have. If partitions now belong together differently, the lane joins the group again.
  func askForPartitions(_ admin: Admin, journal producer: Producer) async {
    guard !isJoiningAgain, !lane.state.phase.isEnding, let cluster = try? await admin.describeCluster(),
      let found = try? TopicPartitions(lane.settings.topics, cluster)
    else { return }
    guard found != plan.partitions else { return tellUnjournaled() }
    let before = plan.partitions
    plan = plan.with(found)
    plan.show(lane.settings, in: lane.metrics)
    lane.logger.info(
      "partitions were added",
      ["requests": found.requests, "journal": found.journal, "devices": found.devices])
    if found.journal != before.journal {
      // Otherwise the producer would refuse the new partitions for minutes.
      do throws(KafkaError) { try await producer.refresh() } catch {
        lane.logger.warning("the journal's partitions could not be asked for", ["error": "\(error)"])
      }
    }
    guard found.journaled != before.journaled || found.devices != before.devices, !lane.state.phase.isEnding else {
      return tellUnjournaled()
    }
    await joinAgain()
  }

  /// Joins the group again if partitions have no owner.
  func askForMembers(_ admin: Admin) async {
    let partitions = await watch.ask(admin)
    guard !partitions.isEmpty, !lane.state.phase.isEnding else { return }
    lane.logger.warning(
      "partitions have no owner; joining the group again",
      ["topic": "\(lane.settings.topics.requests)", "partitions": partitions.map { "\($0.partition)" }.joined(separator: ",")])
    await joinAgain()
  }

  /// Leaves the group for good. The owner is asked for the last offsets.
  func close(withinMilliseconds milliseconds: Int) async {
    if let consumer { await close(consumer, withinMilliseconds: milliseconds) }
    watch.close()
    timer.close()
    committer?.close()
    // A lane that is joining again releases them itself.
    if !isJoiningAgain { (consumer, committer) = (nil, nil) }
  }
}
