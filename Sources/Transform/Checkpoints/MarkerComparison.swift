import EventLoop
import Kafka
import Store
import Worker

/// Compares the markers until Redis is verified or the lane has to wait, one comparison at a time.
final class MarkerComparison {
  private let lane: LaneContext
  private let checkpoints: Checkpoints
  private let member: GroupMember
  private let admin: Admin
  private let identity: ClusterIdentity
  /// The epoch in which Redis was known to be this cluster's.
  private var identifiedIn: Int?
  private let timer: Timer
  private(set) var isUnderWay = false
  /// Since when no comparison has succeeded, by the loop's milliseconds; nil if the last one did.
  private var heldUpSince: UInt64?
  /// The reported reason.
  private var heldUpBy: String?
  /// How long comparisons may fail before that is reported.
  private static let heldUpMilliseconds: UInt64 = 5_000
  weak var owner: TransformCore?

  init(_ lane: LaneContext, _ checkpoints: Checkpoints, _ member: GroupMember, _ admin: Admin, _ identity: ClusterIdentity) {
    (self.lane, self.checkpoints, self.member, self.admin, self.identity) = (lane, checkpoints, member, admin, identity)
    timer = Timer(on: lane.loop)
    timer.handler = { [unowned self] in owner?.run(.compare) }
  }

  /// Compares the markers after so many milliseconds, or sooner if that was asked before.
  func runAgain(noLaterThan milliseconds: Int) { timer.start(noLaterThan: milliseconds) }

  /// Compares the markers, unless a comparison is running.
  func run() async {
    // While the lane leaves its group, a comparison would miss the partitions that are leaving.
    guard !isUnderWay, !member.isJoiningAgain else { return }
    isUnderWay = true
    var actions: [LanePhase.Action] = []
    repeat {
      guard lane.state.phase.mayCompare else {
        // Redis is away, which another condition reports.
        heldUpSince = nil
        break
      }
      let epoch = lane.state.phase.epoch
      let obstacle = await identify(in: epoch)
      guard lane.state.phase.mayCompare, !member.isJoiningAgain, let consumer = member.consumer else { break }
      let finding =
        if let obstacle { obstacle } else {
          await checkpoints.compare(consumer) { [admin, settings = lane.settings] in
            try await admin.isNewCluster(settings)
          } noted: { [admin, settings = lane.settings] partitions in
            try await admin.committedWithNotes(group: settings.group, of: partitions).mapValues { Marker.incarnation(note: $0.note) }
          }
        }
      owner?.compared()
      notice(finding)
      if case .otherOwner(let partition) = finding, epoch == lane.state.phase.epoch {
        lane.logger.warning("a partition has another owner; joining the group again", ["partition": "\(partition)"])
      }
      actions = lane.state.phase.compared(finding, in: epoch)
    } while actions == [.compare]
    isUnderWay = false
    owner?.perform(actions)
    // A broker that does not answer now is asked with the next comparison.
    if lane.state.phase.mayBegin { try? await member.consumer?.startReplacedAgain() }
  }

  /// Reports comparisons that do not succeed: until one does, partitions may wait.
  private func notice(_ finding: LanePhase.Finding) {
    guard case .again(let milliseconds, let reason) = finding else {
      heldUpSince = nil
      if heldUpBy != nil { owner?.comparisonIsHeldUp(nil) }
      return heldUpBy = nil
    }
    lane.logger.debug("the markers are compared again", ["reason": reason])
    let since = heldUpSince ?? lane.loop.milliseconds()
    heldUpSince = since
    guard milliseconds > 0, reason != heldUpBy, lane.loop.milliseconds() >= since + Self.heldUpMilliseconds else { return }
    heldUpBy = reason
    owner?.comparisonIsHeldUp(reason)
  }

  /// Checks once in each epoch that Redis is this cluster's. Returns the obstacle, if there is one.
  private func identify(in epoch: Int) async -> LanePhase.Finding? {
    guard identifiedIn != epoch else { return nil }
    do {
      // An empty Redis belongs to no cluster until it is rebuilt; the comparison reports that.
      if try await identity.join(lane.shards, isNew: { try await admin.isNewCluster(lane.settings) }) { identifiedIn = epoch }
      return nil
    } catch {
      return .again(afterMilliseconds: 2_000, "\(error)")
    }
  }

  /// Ends the repeated comparisons.
  func close() { timer.close() }
}

extension Admin {
  /// Whether no partition was ever processed, so that an empty Redis is a new one.
  func isNewCluster(_ settings: TransformSettings) async throws -> Bool {
    let known = try await describeCluster().topics
    let names = [settings.topics.requests, settings.topics.devices]
    let partitions = names.flatMap { name in known[name]?.partitions.map { TopicPartition(name, $0.id) } ?? [] }
    return try await committed(group: settings.group, of: partitions).isEmpty
  }
}
