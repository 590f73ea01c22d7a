import EventLoop
import Kafka
import Notifications
import Worker

/// What a comparison asks of its lane.
protocol MarkerComparisonOwner: LanePhaseOwner, TransformTaskRunner {
  /// Markers were compared, and partitions may have begun.
  func compared()
}

/// Has the markers compared, one comparison at a time, until Redis is verified or there is something to wait for. Loop-confined.
final class MarkerComparison {
  private let checkpoints: Checkpoints
  private let state: LaneState
  private let member: GroupMember
  private let admin: Admin
  private let topics: Topics
  private let logger: Logger
  private let timer: Timer
  private(set) var isUnderWay = false
  weak var owner: (any MarkerComparisonOwner)?

  init(
    on loop: EventLoop, _ checkpoints: Checkpoints, _ state: LaneState, _ member: GroupMember, _ admin: Admin, _ topics: Topics,
    logger: Logger
  ) {
    (self.checkpoints, self.state, self.member, self.admin, self.topics) = (checkpoints, state, member, admin, topics)
    self.logger = logger
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in owner?.run(.compare) }
  }

  /// Has them compared after so many milliseconds, or sooner where that was asked for before.
  func runAgain(noLaterThan milliseconds: Int) { timer.start(noLaterThan: milliseconds) }

  /// Compares them, unless somebody does that already.
  func run() async {
    // What is compared while the lane leaves its group would be found without the partitions that are going.
    guard !isUnderWay, !member.isJoiningAgain else { return }
    isUnderWay = true
    var actions: [LanePhase.Action] = []
    repeat {
      guard state.phase.mayCompare, let consumer = member.consumer else { break }
      let epoch = state.phase.epoch
      let finding = await checkpoints.compare(consumer) { [self] in try await isNewCluster() }
      owner?.compared()
      if case .again(_, let reason) = finding { logger.debug("the markers are compared again", ["reason": reason]) }
      if case .otherOwner(let partition) = finding, epoch == state.phase.epoch {
        logger.warning("a partition has another owner; joining the group again", ["partition": "\(partition)"])
      }
      actions = state.phase.compared(finding.phase, in: epoch)
    } while actions == [.compare]
    isUnderWay = false
    owner?.perform(actions)
    // A broker that does not answer now is asked with the next comparison.
    if state.phase.mayBegin { try? await member.consumer?.startReplacedAgain() }
  }

  /// Whether no partition was ever worked on, so that an empty Redis is a new one.
  private func isNewCluster() async throws -> Bool {
    guard let consumer = member.consumer else { return false }
    let known = try await admin.describeCluster().topics
    let partitions = [topics.requests, topics.devices].flatMap { name in known[name]?.partitions.map { TopicPartition(name, $0.id) } ?? [] }
    return try await consumer.committed(partitions).isEmpty
  }

  /// Nothing is compared any more by itself.
  func close() { timer.close() }
}
