import EventLoop
import Kafka
import Store
import Worker

/// Waits until Redis has all schedules, replacements and cancels. Until then nothing fires.
///
/// Several lanes apply `requests` to the schedules in Redis. After a possible loss, a canceled schedule may be pending again until its
/// cancel is applied once more. So firings wait until the markers of all partitions reach the ends that `requests` had at that moment. A
/// request that waits for a schedule of a newer program does not count: this lane cannot fire that schedule.
final class ScheduleRestoration {
  private let lane: LaneContext
  private let markers: Markers
  private let member: GroupMember
  private let admin: Admin
  private let condition: ScheduleCondition
  private(set) var isUnderWay = false

  init(_ lane: LaneContext, _ markers: Markers, _ member: GroupMember, _ admin: Admin, _ condition: ScheduleCondition) {
    (self.lane, self.markers, self.member, self.admin, self.condition) = (lane, markers, member, admin, condition)
  }

  /// Waits for the markers. Returns false if the lane stops running, or if another call already waits.
  func run() async -> Bool {
    guard !isUnderWay else { return false }
    isUnderWay = true
    defer {
      isUnderWay = false
      condition.restoration = nil
    }
    while lane.state.phase.phase == .running {
      let epoch = lane.state.phase.epoch
      do {
        if try await wait(in: epoch) { return true }
      } catch {
        lane.logger.warning("what schedules wait for is not known", ["error": "\(error)"])
        await lane.loop.sleep(milliseconds: 500)
      }
    }
    return false
  }

  private func wait(in epoch: Int) async throws -> Bool {
    let partitions = try TopicPartitions(lane.settings.topics, try await admin.describeCluster())
    let journaled = (0..<Int32(partitions.journaled)).map { TopicPartition(lane.settings.topics.requests, $0) }
    let ends = try await admin.ends(of: journaled).filter { !$0.value.isEmpty }
    let began = SteadyClock.milliseconds()
    while lane.state.phase.phase == .running, lane.state.phase.epoch == epoch {
      let applied = try await markers.readableOffsets(of: ends.keys.map(\.partition).sorted()) ?? [:]
      let behind = ends.filter { applied[$0.key.partition] ?? 0 < $0.value.upperBound }.map(\.key.partition).sorted()
      if behind.isEmpty { return lane.state.phase.epoch == epoch }
      if SteadyClock.milliseconds() - began > Self.quietMilliseconds {
        condition.restoration = "nothing fires before what was published is applied: partitions \(PartitionNames.text(behind))"
      }
      member.committer?.commit()
      await lane.loop.sleep(milliseconds: 100)
    }
    return false
  }

  /// The length of a wait that is normal, and not shown in readiness.
  private static let quietMilliseconds: Int64 = 15_000
}
