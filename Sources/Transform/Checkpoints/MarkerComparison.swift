import EventLoop
import Kafka
import Notifications
import Worker

/// What a comparison asks of its lane.
protocol MarkerComparisonOwner: LanePhaseOwner, TransformTaskRunner {
  /// Markers were compared, and partitions may have begun.
  func compared()
  /// Comparisons have not come to an end for seconds, for this reason; nil: they have again.
  func comparisonIsHeldUp(_ reason: String?)
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
  private let loop: EventLoop
  /// Since when each comparison has asked for another, by the loop's milliseconds; nil where the last one came to an end.
  private var heldUpSince: UInt64?
  /// The reason that was told.
  private var heldUpBy: String?
  /// After so long it is told.
  private static let heldUpMilliseconds: UInt64 = 5_000
  weak var owner: (any MarkerComparisonOwner)?

  init(
    on loop: EventLoop, _ checkpoints: Checkpoints, _ state: LaneState, _ member: GroupMember, _ admin: Admin, _ topics: Topics,
    logger: Logger
  ) {
    (self.checkpoints, self.state, self.member, self.admin, self.topics) = (checkpoints, state, member, admin, topics)
    (self.loop, self.logger) = (loop, logger)
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
      notice(finding)
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

  /// Tells of comparisons that do not come to an end: until they do, partitions may wait.
  private func notice(_ finding: Checkpoints.Finding) {
    guard case .again(let milliseconds, let reason) = finding else {
      heldUpSince = nil
      if heldUpBy != nil { owner?.comparisonIsHeldUp(nil) }
      return heldUpBy = nil
    }
    logger.debug("the markers are compared again", ["reason": reason])
    let since = heldUpSince ?? loop.milliseconds()
    heldUpSince = since
    guard milliseconds > 0, reason != heldUpBy, loop.milliseconds() >= since + Self.heldUpMilliseconds else { return }
    heldUpBy = reason
    owner?.comparisonIsHeldUp(reason)
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
