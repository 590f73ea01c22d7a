import EventLoop
import Kafka
import Store
import Worker

/// What is found out about Redis.
protocol RedisWatchOwner: AnyObject {
  /// `check` is to run in a task of the lane.
  func redisCheckIsDue()
  /// What is missing in Redis, or nil when nothing is, and what was missing when it was checked before.
  func redisWasChecked(missing: String?, before: String?)
  /// Redis has thrown away what it was given.
  func redisHasEvicted(_ report: String)
}

/// Whether Redis does what workers need, and has what it should: its buckets, and the registrations that Kafka has. Loop-confined.
///
/// A Redis without buckets is either new, and then nothing was ever registered, or it has lost everything and has to be rebuilt; one that
/// was away may have lost the end of its history, which the transform workers restore.
final class RedisWatch {
  private let shards: Shards
  private let markers: Markers
  private let topics: Topics
  private let admin: Admin
  private let inspection: RedisInspection
  private let scripts: SelfCheck
  private let timer: Timer
  /// A check of every script is due: at the start of a connection, and after an answer that says something of Redis itself.
  private var isScriptCheckDue = true
  private let loop: EventLoop
  private let kafka: KafkaConfiguration
  /// Partitions of `devices` whose ends no marker reaches.
  private var silent = SilentEnds()
  /// How often it checks without a reason.
  private let interval: Int
  /// Whose Redis it is to be; nil until the lane knows which Kafka it works with.
  var identity: ClusterIdentity?
  private var isIdentified = false
  private var losses = 0
  private(set) var isChecking = false
  private var isClosed = false
  /// Whether the registry has all that Kafka had when the connection came up.
  private(set) var isRegistryComplete = false
  private var before: String?
  /// Told what is found.
  weak var owner: (any RedisWatchOwner)?

  init(on loop: EventLoop, _ settings: FanOutSettings, _ shards: Shards, _ admin: Admin, metrics: RedisMetrics) {
    (self.loop, kafka, topics, interval) = (loop, settings.kafka, settings.topics, settings.store.inspectionMilliseconds)
    self.shards = shards
    self.admin = admin
    inspection = RedisInspection(shards, metrics: metrics)
    scripts = SelfCheck(shards)
    markers = Markers(shards)
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in owner?.redisCheckIsDue() }
  }

  /// Redis has answered a call with something that it says of itself, or that is not known here: every script is checked.
  func refused() {
    // What a check is refused it tells itself.
    guard !isScriptCheckDue, !isChecking, !isClosed else { return }
    isScriptCheckDue = true
    timer.start(after: Self.scriptCheckPauseMilliseconds)
  }

  private static let scriptCheckPauseMilliseconds = 50

  /// The connection is gone, or a script found no bucket: check again.
  func lost() {
    (isRegistryComplete, isScriptCheckDue, isIdentified) = (false, true, false)
    losses += 1
    if !isClosed { timer.start(after: 1) }
  }

  /// A call has failed: where Redis has lost what it had, nothing is written to it before it was rebuilt.
  func noticed(_ error: any Error) {
    if let error = error as? StoreError, error.code == .bucketLost { lost() }
  }

  /// Checks, and checks again until nothing is missing.
  func check() async {
    guard shards.isUp, !isChecking, !isClosed else { return }
    isChecking = true
    let lossesBefore = losses
    let missing = await findMissing()
    isChecking = false
    guard !isClosed else { return }
    guard lossesBefore == losses else { return timer.start(after: 1) }
    isRegistryComplete = missing == nil
    owner?.redisWasChecked(missing: missing?.reason, before: before)
    before = missing?.reason
    timer.start(after: missing?.milliseconds ?? interval)
  }

  private func findMissing() async -> (reason: String, milliseconds: Int)? {
    let judgement: ServerTrust.Judgement
    do throws(StoreError) { judgement = try await inspection.look() } catch { return ("\(error)", 500) }
    switch judgement {
    case .unsuitable(let reason): return (reason, 2_000)
    case .evicted(let keys):
      let report = ServerTrust.evictionReport(keys)
      owner?.redisHasEvicted(report)
      // What devices have here and in Redis may differ, and so may the registry.
      (isRegistryComplete, before) = (false, report)
    case .suitable: break
    }
    if isScriptCheckDue {
      do throws(StoreError) {
        if let refusal = try await scripts.run() { return (refusal, 2_000) }
        isScriptCheckDue = false
      } catch {
        // A Redis that only reads now is told by the lane's heartbeat.
        if error.code != .writesRefused { return ("\(error)", 500) }
      }
    }
    guard let identity else { return ("the lane is starting", 200) }
    if !isIdentified {
      do {
        isIdentified = try await identity.join(shards) { [admin, topics] in try await admin.registryEnds(topics).isEmpty }
      } catch { return ("\(error)", 2_000) }
    }
    guard let buckets = await markers.read([]) else { return (markers.failure.map { "\($0)" } ?? "Redis does not answer", 500) }
    do {
      let missing = buckets.indices.filter { buckets[$0] == nil }
      if isRegistryComplete, missing.isEmpty { return nil }
      let ends = try await admin.registryEnds(topics)
      if !missing.isEmpty {
        guard ends.isEmpty else {
          let foreign = markers.foreignKeys.prefix(10).joined(separator: ", ")
          return (
            "Redis has lost what it had, though devices are registered in Kafka: run 'carillon rebuild'"
              + (foreign.isEmpty ? "" : ". Something else lies under \(foreign)"), 2_000
          )
        }
        if let error = await markers.create(missing) { return ("\(error)", 500) }
      }
      let reached = await markers.registryOffsets(of: ends.keys.sorted())
      if let reached, ends.allSatisfy({ reached[$0.key] ?? 0 >= $0.value }) { return nil }
      guard try await Workers(shards).list().contains(where: { !$0.isSilent && $0.report?.roles.contains("transform") == true }) else {
        return ("the registry waits for a transform worker, and none is running", 200)
      }
      if let reached { try await wake(silent.look(reached, ends: ends, at: SteadyClock.milliseconds())) }
      return ("a transform worker is restoring the registry", 200)
    } catch {
      return ("the registry's end is not known: \(error)", 1_000)
    }
  }

  /// Writes a record to partitions whose last offsets have no records: a transform worker that is running reads it, and raises the marker.
  private func wake(_ silent: [Int32]) async throws(KafkaError) {
    guard !silent.isEmpty else { return }
    try await EndTombstone.write(to: silent.map { TopicPartition(topics.devices, $0) }, on: loop, kafka)
  }

  /// Ends it.
  func close() {
    isClosed = true
    timer.close()
  }
}
