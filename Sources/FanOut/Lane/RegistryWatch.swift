import EventLoop
import Kafka
import Store
import Worker

/// Whether Redis can be used, and has its buckets and all registrations of Kafka.
///
/// A Redis without buckets is new if no device was ever registered. Otherwise it has lost all its data and needs `carillon rebuild`. A
/// Redis that was away may have lost its last writes, which the transform workers restore.
final class RegistryWatch {
  private enum Phase {
    /// The next check is scheduled.
    case waiting
    /// A check runs.
    case checking
    /// A check runs whose result does not count. Redis may have lost something since it began.
    case outdated
    case closed
  }

  private enum Registry: Equatable {
    /// Redis may have lost something; before, nothing was missing.
    case unverified
    /// The last check found that this is missing.
    case missing(String)
    /// Redis has all registrations that Kafka had when the connection came up.
    case complete
  }

  private let loop: EventLoop
  private let shards: Shards
  private let markers: Markers
  private let kafka: KafkaConfiguration
  private let topics: Topics
  private let admin: Admin
  private let inspection: RedisInspection
  /// Partitions of `devices` whose end no marker can reach.
  private var silent = SilentEnds()
  private var phase = Phase.waiting
  private var registry = Registry.unverified
  /// The cluster that Redis must belong to; nil until the lane knows its Kafka.
  var identity: ClusterIdentity?
  /// Whether Redis was found to belong to the cluster since the connection came up.
  private var isIdentified = false
  /// Gets the results.
  weak var owner: FanOutCore?

  init(on loop: EventLoop, _ settings: FanOutSettings, _ shards: Shards, _ admin: Admin, _ clock: ClockWatch, metrics: RedisMetrics) {
    (self.loop, self.shards, self.admin) = (loop, shards, admin)
    (kafka, topics) = (settings.kafka, settings.topics)
    inspection = RedisInspection(on: loop, settings.store, shards, clock, metrics: metrics)
    markers = Markers(shards)
    inspection.owner = self
  }

  /// Whether Redis has all registrations that Kafka had when the connection came up.
  var isRegistryComplete: Bool { registry == .complete }

  /// Notes that a call was refused.
  func refused() {
    // A check reports the refusals of its own calls.
    if phase == .waiting { inspection.refused() }
  }

  /// Checks again at once. The connection came up or broke, or a script found no bucket.
  func lost() {
    if registry == .complete { registry = .unverified }
    if phase == .checking { phase = .outdated }
    isIdentified = false
    inspection.restart()
  }

  /// Notes the error of a call. If Redis has lost its data, nothing is written until it is rebuilt.
  func noticed(_ error: any Error) {
    if let error = error as? StoreError, error.code == .bucketLost { lost() }
  }

  /// Checks once, and schedules the next check.
  func check() async {
    guard shards.isUp, phase == .waiting else { return }
    phase = .checking
    let missing = await findMissing()
    switch phase {
    case .closed: return
    case .outdated:
      phase = .waiting
      return inspection.schedule(after: 1)
    case .waiting, .checking: phase = .waiting
    }
    let before: String? = if case .missing(let reason) = registry { reason } else { nil }
    registry = missing.map { .missing($0.reason) } ?? .complete
    owner?.redisWasChecked(missing: missing?.reason, isUsual: missing?.isUsual == true, before: before)
    inspection.schedule(after: missing?.milliseconds ?? .max)
  }

  /// Something that Redis lacks, and after how long to check again.
  private struct Missing {
    var reason: String
    var milliseconds: Int
    /// Whether every start goes through it.
    var isUsual: Bool

    init(_ reason: String, _ milliseconds: Int = 200, isUsual: Bool = false) {
      (self.reason, self.milliseconds, self.isUsual) = (reason, milliseconds, isUsual)
    }
  }

  private func findMissing() async -> Missing? {
    do throws(StoreError) {
      if let reason = try await inspection.run() { return Missing(reason, 2_000) }
    } catch { return Missing("\(error)", 500) }
    guard let identity else { return Missing("the lane is starting", isUsual: true) }
    if !isIdentified {
      do {
        isIdentified = try await identity.join(shards) { [admin, topics] in try await admin.registryEnds(topics).isEmpty }
      } catch { return Missing("\(error)", 2_000) }
    }
    guard let buckets = await markers.read([]) else { return Missing(markers.failure.map { "\($0)" } ?? "Redis does not answer", 500) }
    do {
      let missing = buckets.indices.filter { buckets[$0] == nil }
      if isRegistryComplete, missing.isEmpty { return nil }
      let ends = try await admin.registryEnds(topics)
      if !missing.isEmpty {
        guard ends.isEmpty else {
          let foreign = markers.foreignKeys.prefix(10).joined(separator: ", ")
          return Missing(
            "Redis has lost what it had, though devices are registered in Kafka: run 'carillon rebuild'"
              + (foreign.isEmpty ? "" : ". Something else lies under \(foreign)"), 2_000
          )
        }
        if let error = await markers.create(missing) { return Missing("\(error)", 500) }
      }
      let reached = await markers.registryOffsets(of: ends.keys.sorted())
      if let reached, ends.allSatisfy({ reached[$0.key] ?? 0 >= $0.value }) { return nil }
      guard try await Workers(shards).list().contains(where: { !$0.isSilent && $0.report?.roles.contains("transform") == true }) else {
        return Missing("the registry waits for a transform worker, and none is running", isUsual: true)
      }
      if let reached {
        // A transform worker reads the records and raises the markers of partitions whose last offsets have none.
        let partitions = silent.look(reached, ends: ends, at: SteadyClock.milliseconds()).map { TopicPartition(topics.devices, $0) }
        try await EndTombstone.write(to: partitions, on: loop, kafka)
      }
      return Missing("a transform worker is restoring the registry", isUsual: true)
    } catch {
      return Missing("the registry's end is unknown: \(error)", 1_000)
    }
  }

  /// Stops the checks.
  func close() {
    phase = .closed
    inspection.close()
  }
}

extension RegistryWatch: RedisInspectionOwner {
  func redisInspectionIsDue() { owner?.redisCheckIsDue() }

  func redisHasEvicted(_ report: String) {
    owner?.redisHasEvicted(report)
    // Registrations and mailbox entries may be gone.
    registry = .missing(report)
  }

  func redisCheckBegins() {}

  func redisCheckEnded(passed: Bool) -> Bool { false }
}
