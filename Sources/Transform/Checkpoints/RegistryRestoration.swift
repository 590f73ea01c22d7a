import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Waits until Redis has all registrations that Kafka has now, from any lane. Until then no person's devices are looked up. Loop-confined.
final class RegistryRestoration {
  private let loop: EventLoop
  private let state: LaneState
  private let markers: Markers
  private let member: GroupMember
  private let admin: Admin
  private let kafka: KafkaConfiguration
  private let topics: Topics
  private let health: Health
  private let logger: Logger
  /// The number of running waits: a wait of a past epoch may end after the next one has begun.
  private var waits = 0
  weak var owner: TransformCore?

  init(_ lane: LaneContext, _ markers: Markers, _ member: GroupMember, _ admin: Admin) {
    (self.markers, self.member, self.admin) = (markers, member, admin)
    (kafka, topics) = (lane.settings.kafka, lane.settings.topics)
    (loop, state, health, logger) = (lane.loop, lane.state, lane.health, lane.logger)
  }

  var isUnderWay: Bool { waits > 0 }

  /// Waits until Redis has all registrations or gives a new sign of loss.
  func run() async {
    let epoch = state.phase.epoch
    let began = SteadyClock.milliseconds()
    waits += 1
    defer {
      waits -= 1
      health.remove("registry")
    }
    while state.phase.restoresRegistry(since: epoch) {
      do {
        let ends = try await admin.registryEnds(topics)
        var silent = SilentEnds()
        while state.phase.restoresRegistry(since: epoch) {
          let reached = await markers.registryOffsets(of: ends.keys.sorted())
          if let reached, ends.allSatisfy({ reached[$0.key] ?? 0 >= $0.value }) {
            owner?.perform(state.phase.registryRestored(in: epoch))
            return
          }
          if let reached, SteadyClock.milliseconds() - began > Self.quietMilliseconds {
            let behind = ends.filter { reached[$0.key] ?? 0 < $0.value }.keys.sorted()
            let reason = "no requests are taken before what was registered is applied: partitions \(PartitionNames.text(behind))"
            health.set("registry", ready: false, reason)
          }
          if let reached { await wake(silent.look(reached, ends: owned(ends), at: SteadyClock.milliseconds())) }
          owner?.perform(state.phase.registryIsBehind(in: epoch))
          // A commit raises the markers that this waits for.
          member.committer?.commit()
          await loop.sleep(milliseconds: 50)
        }
      } catch {
        logger.warning("the registry's end is not known", ["error": "\(error)"])
        await loop.sleep(milliseconds: 500)
      }
    }
  }

  /// The length of a wait that is normal, and not shown in readiness.
  private static let quietMilliseconds: Int64 = 15_000

  /// The partitions among these that this lane reads: only the owner writes a tombstone.
  private func owned(_ ends: [Int32: Int64]) -> [Int32: Int64] {
    let owned = member.consumer?.assignment.map(\.topicPartition).filter { $0.topic == topics.devices }.map(\.partition) ?? []
    return ends.filter { owned.contains($0.key) }
  }

  /// Writes a tombstone to partitions in which no record reaches the end.
  private func wake(_ silent: [Int32]) async {
    guard !silent.isEmpty else { return }
    logger.warning(
      "no record reaches the end of devices: a tombstone is written", ["partitions": PartitionNames.text(silent)])
    do {
      try await EndTombstone.write(to: silent.map { TopicPartition(topics.devices, $0) }, on: loop, kafka)
    } catch {
      logger.warning("the tombstone is not written; requests for people wait", ["error": "\(error)"])
    }
  }
}
