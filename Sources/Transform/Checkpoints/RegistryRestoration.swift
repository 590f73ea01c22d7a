import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Waits until Redis has all registrations that Kafka has now, whoever applies them; until then no person's devices are looked up.
/// Loop-confined.
final class RegistryRestoration {
  private let loop: EventLoop
  private let state: LaneState
  private let markers: Markers
  private let member: GroupMember
  private let admin: Admin
  private let kafka: KafkaConfiguration
  private let topics: Topics
  private let logger: Logger
  /// Waits that are under way: one whose epoch is over may end after the next has begun.
  private var waits = 0
  weak var owner: (any LanePhaseOwner)?

  init(
    on loop: EventLoop, _ settings: TransformSettings, _ state: LaneState, _ markers: Markers, _ member: GroupMember, _ admin: Admin,
    logger: Logger
  ) {
    (self.loop, self.state, self.markers, self.member, self.admin) = (loop, state, markers, member, admin)
    (kafka, topics, self.logger) = (settings.kafka, settings.topics, logger)
  }

  var isUnderWay: Bool { waits > 0 }

  /// Waits, unless Redis gives a new sign that it may have lost something.
  func run() async {
    let epoch = state.phase.epoch
    waits += 1
    defer { waits -= 1 }
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
          if let reached { await wake(silent.look(reached, ends: owned(ends), at: SteadyClock.milliseconds())) }
          owner?.perform(state.phase.registryIsBehind(in: epoch))
          // The markers that are waited for are raised with what is committed.
          member.committer?.commit()
          await loop.sleep(milliseconds: 50)
        }
      } catch {
        logger.warning("the registry's end is not known", ["error": "\(error)"])
        await loop.sleep(milliseconds: 500)
      }
    }
  }

  /// Those of these partitions that this lane reads: each partition is one lane's to look after.
  private func owned(_ ends: [Int32: Int64]) -> [Int32: Int64] {
    let owned = member.consumer?.assignment.map(\.topicPartition).filter { $0.topic == topics.devices }.map(\.partition) ?? []
    return ends.filter { owned.contains($0.key) }
  }

  /// Writes a record to partitions that no record brings to their ends.
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
