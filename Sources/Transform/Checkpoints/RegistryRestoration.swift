import EventLoop
import Kafka
import Store
import Worker

/// Waits until Redis has all registrations that Kafka has now, from any lane. Until then no person's devices are looked up.
final class RegistryRestoration {
  private let lane: LaneContext
  private let markers: Markers
  private let member: GroupMember
  private let admin: Admin
  /// The number of running waits: a wait of a past epoch may end after the next one has begun.
  private var waits = 0
  weak var owner: TransformCore?

  init(_ lane: LaneContext, _ markers: Markers, _ member: GroupMember, _ admin: Admin) {
    (self.lane, self.markers, self.member, self.admin) = (lane, markers, member, admin)
  }

  var isUnderWay: Bool { waits > 0 }

  /// Waits until Redis has all registrations or gives a new sign of loss.
  func run() async {
    let epoch = lane.state.phase.epoch
    let began = SteadyClock.milliseconds()
    waits += 1
    defer {
      waits -= 1
      lane.health.remove("registry")
    }
    while lane.state.phase.restoresRegistry(since: epoch) {
      do {
        let ends = try await admin.registryEnds(lane.settings.topics)
        var silent = SilentEnds()
        while lane.state.phase.restoresRegistry(since: epoch) {
          let reached = await markers.registryOffsets(of: ends.keys.sorted())
          if let reached, ends.allSatisfy({ reached[$0.key] ?? 0 >= $0.value }) {
            owner?.perform(lane.state.phase.registryRestored(in: epoch))
            return
          }
          if let reached, SteadyClock.milliseconds() - began > Self.quietMilliseconds {
            let behind = ends.filter { reached[$0.key] ?? 0 < $0.value }.keys.sorted()
            let reason = "no requests are taken before what was registered is applied: partitions \(PartitionNames.text(behind))"
            lane.health.set("registry", ready: false, reason)
          }
          if let reached { await wake(silent.look(reached, ends: owned(ends), at: SteadyClock.milliseconds())) }
          owner?.perform(lane.state.phase.registryIsBehind(in: epoch))
          // A commit raises the markers that this waits for.
          member.committer?.commit()
          await lane.loop.sleep(milliseconds: 50)
        }
      } catch {
        lane.logger.warning("the registry's end is not known", ["error": "\(error)"])
        await lane.loop.sleep(milliseconds: 500)
      }
    }
  }

  /// The length of a wait that is normal, and not shown in readiness.
  private static let quietMilliseconds: Int64 = 15_000

  /// The partitions among these that this lane reads: only the owner writes a tombstone.
  private func owned(_ ends: [Int32: Int64]) -> [Int32: Int64] {
    let owned = member.consumer?.assignment.map(\.topicPartition).filter { $0.topic == lane.settings.topics.devices }.map(\.partition) ?? []
    return ends.filter { owned.contains($0.key) }
  }

  /// Writes a tombstone to partitions in which no record reaches the end.
  private func wake(_ silent: [Int32]) async {
    guard !silent.isEmpty else { return }
    lane.logger.warning(
      "no record reaches the end of devices: a tombstone is written", ["partitions": PartitionNames.text(silent)])
    do {
      try await EndTombstone.write(to: silent.map { TopicPartition(lane.settings.topics.devices, $0) }, on: lane.loop, lane.settings.kafka)
    } catch {
      lane.logger.warning("the tombstone is not written; requests for people wait", ["error": "\(error)"])
    }
  }
}
