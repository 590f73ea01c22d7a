import EventLoop
import Store
import Worker

/// Reports whether Redis answers, takes writes and keeps them: to the lane's phase, the health and the log.
final class RedisWatch {
  private let lane: LaneContext
  private let inspection: RedisInspection
  /// When Redis last refused a call, by the loop's milliseconds; nil if readiness does not name one.
  private var refusedAt: UInt64?
  /// Performs the actions of the phase, and calls `inspect` in a task of the lane.
  weak var owner: TransformCore?

  init(_ lane: LaneContext) {
    self.lane = lane
    let clock = ClockWatch(lane.shards, metrics: lane.metrics.redis, logger: lane.logger, health: lane.health)
    inspection = RedisInspection(on: lane.loop, lane.settings.store, lane.shards, clock, metrics: lane.metrics.redis)
    inspection.owner = self
  }

  /// Connects to Redis, and follows the connection.
  func start() {
    lane.health.set("redis", ready: false, "connecting to \(lane.settings.store)")
    lane.shards.onUp = { [unowned self] in
      lane.logger.info("Redis answers", ["address": "\(lane.settings.store)"])
      lane.health.set("redis", ready: false, "Redis answers; it has not been compared with Kafka yet")
      // It may be another server by now, so the lane works with it only after an inspection.
      inspection.restart()
    }
    lane.shards.onRefusal = { [unowned self] in refused($0) }
    lane.shards.onMended = { [logger = lane.logger] key in
      logger.warning("a key in Redis held something else, and was removed", ["key": key])
    }
    lane.shards.onDown = { [unowned self] error in
      lane.health.set("redis", ready: false, "\(error)")
      lane.logger.warning("Redis is gone; consumption pauses", ["error": "\(error)"])
      owner?.perform(lane.state.phase.redisWentAway())
    }
    lane.shards.onError = { [metrics = lane.metrics] in metrics.clients.redisFailed($0) }
    lane.shards.onAttemptFailed = { [logger = lane.logger] error, wait in
      logger.warning("Redis does not answer", ["error": "\(error)", "retryMs": "\(wait)"])
    }
    lane.shards.start()
  }

  // MARK: Signs from calls

  /// Has the markers compared before anything is judged, since Redis may have lost data.
  func distrust(_ reason: String) {
    let actions = lane.state.phase.distrust()
    if !actions.isEmpty { lane.logger.warning("the markers are compared", ["reason": reason]) }
    owner?.perform(actions)
  }

  /// Pauses the lane, since Redis has refused a write.
  func refusedWrites(_ error: StoreError) {
    let actions = lane.state.phase.writesRefused()
    guard !actions.isEmpty else { return }
    lane.health.set("redis", ready: false, "\(error)")
    lane.logger.warning("Redis refuses writes; consumption pauses", ["error": "\(error)"])
    owner?.perform(actions)
  }

  /// Redis has refused a call, or has given an unknown answer. A check of every script explains it.
  private func refused(_ error: StoreError) {
    // An inspection reports the refusals of its own calls.
    guard lane.shards.isUp, !inspection.isRunning else { return }
    if error.code == .refused {
      if refusedAt == nil { lane.logger.warning("Redis refuses a call", ["error": "\(error)"]) }
      refusedAt = lane.loop.milliseconds()
      // Even if every script works, Redis may refuse one key. The records of that key wait.
      lane.health.set("calls", ready: false, "\(error)")
    }
    inspection.refused()
  }

  // MARK: Inspections

  /// Checks whether Redis is suitable, and tells the lane's phase.
  func inspect() async {
    guard !inspection.isRunning else { return }
    do throws(StoreError) {
      if let reason = try await inspection.run() { return unsuitable(reason) }
      owner?.perform(lane.state.phase.redisIsSuitable())
      endRefusal()
    } catch {
      guard lane.shards.isUp else { return }
      if !lane.state.phase.mayCompare { lane.health.set("redis", ready: false, "\(error)") }
      inspection.schedule(after: 500)
    }
  }

  /// Pauses the lane, since Redis may not keep what is written to it.
  private func unsuitable(_ reason: String) {
    inspection.schedule(after: 2_000)
    if !lane.state.phase.isEnding { lane.health.set("redis", ready: false, reason) }
    let actions = lane.state.phase.redisIsUnsuitable()
    guard !actions.isEmpty else { return }
    lane.logger.error("Redis is not suitable any more; consumption pauses", ["reason": reason])
    owner?.perform(actions)
  }

  /// Removes the refused call from readiness when it was the last one for a while.
  private func endRefusal() {
    guard let refusedAt, !inspection.isCheckDue else { return }
    guard lane.loop.milliseconds() >= refusedAt + UInt64(Self.refusedMilliseconds) else {
      return inspection.schedule(after: Self.refusedMilliseconds)
    }
    self.refusedAt = nil
    lane.health.remove("calls")
  }

  /// How long readiness names a refused call.
  private static let refusedMilliseconds = 5_000

  /// Ends the inspections.
  func close() { inspection.close() }
}

extension RedisWatch: RedisInspectionOwner {
  func redisInspectionIsDue() { owner?.run(.inspectRedis) }

  func redisHasEvicted(_ report: String) {
    lane.health.set("redis", ready: false, report)
    lane.logger.error("Redis has evicted keys", ["reason": report])
    owner?.perform(lane.state.phase.redisIsSuitable())
    distrust(report)
  }

  func redisCheckBegins() { owner?.redisCheckBegins() }

  func redisCheckEnded(passed: Bool) -> Bool { owner?.redisCheckEnded(passed: passed) ?? false }
}
