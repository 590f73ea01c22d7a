import EventLoop
import Store
import Worker

/// Reports whether Redis answers, takes writes and keeps them: to the lane's phase, the health and the log. Loop-confined.
final class RedisWatch {
  private let configuration: StoreConfiguration
  private let shards: Shards
  private let state: LaneState
  private let logger: Logger
  private let health: Health
  private let metrics: TransformMetrics
  private let inspection: RedisInspection
  /// When Redis last refused a call, by the loop's milliseconds; nil if readiness does not name one.
  private var refusedAt: UInt64?
  private let loop: EventLoop
  /// Performs the actions of the phase, and calls `inspect` in a task of the lane.
  weak var owner: TransformCore?

  init(_ lane: LaneContext) {
    (loop, configuration, shards, state) = (lane.loop, lane.settings.store, lane.shards, lane.state)
    (logger, health, metrics) = (lane.logger, lane.health, lane.metrics)
    let clock = ClockWatch(shards, metrics: metrics.redis, logger: logger, health: health)
    inspection = RedisInspection(on: loop, configuration, shards, clock, metrics: metrics.redis)
    inspection.owner = self
  }

  /// Connects to Redis, and follows the connection.
  func start() {
    health.set("redis", ready: false, "connecting to \(configuration)")
    shards.onUp = { [unowned self] in
      logger.info("Redis answers", ["address": "\(configuration)"])
      health.set("redis", ready: false, "Redis answers; it has not been compared with Kafka yet")
      // It may be another server by now, so the lane works with it only after an inspection.
      inspection.restart()
    }
    shards.onRefusal = { [unowned self] in refused($0) }
    shards.onMended = { [logger] key in logger.warning("a key in Redis held something else, and was removed", ["key": key]) }
    shards.onDown = { [unowned self] error in
      health.set("redis", ready: false, "\(error)")
      logger.warning("Redis is gone; consumption pauses", ["error": "\(error)"])
      owner?.perform(state.phase.redisWentAway())
    }
    shards.onError = { [metrics] in metrics.clients.redisFailed($0) }
    shards.onAttemptFailed = { [logger] error, wait in
      logger.warning("Redis does not answer", ["error": "\(error)", "retryMs": "\(wait)"])
    }
    shards.start()
  }

  // MARK: Signs from calls

  /// Has the markers compared before anything is judged, since Redis may have lost data.
  func distrust(_ reason: String) {
    let actions = state.phase.distrust()
    if !actions.isEmpty { logger.warning("the markers are compared", ["reason": reason]) }
    owner?.perform(actions)
  }

  /// Pauses the lane, since Redis has refused a write.
  func refusedWrites(_ error: StoreError) {
    let actions = state.phase.writesRefused()
    guard !actions.isEmpty else { return }
    health.set("redis", ready: false, "\(error)")
    logger.warning("Redis refuses writes; consumption pauses", ["error": "\(error)"])
    owner?.perform(actions)
  }

  /// Redis has refused a call, or has given an unknown answer. A check of every script explains it.
  private func refused(_ error: StoreError) {
    // An inspection reports the refusals of its own calls.
    guard shards.isUp, !inspection.isRunning else { return }
    if error.code == .refused {
      if refusedAt == nil { logger.warning("Redis refuses a call", ["error": "\(error)"]) }
      refusedAt = loop.milliseconds()
      // Even if every script works, Redis may refuse one key. The records of that key wait.
      health.set("calls", ready: false, "\(error)")
    }
    inspection.refused()
  }

  // MARK: Inspections

  /// Checks whether Redis is suitable, and tells the lane's phase.
  func inspect() async {
    guard !inspection.isRunning else { return }
    do throws(StoreError) {
      if let reason = try await inspection.run() { return unsuitable(reason) }
      owner?.perform(state.phase.redisIsSuitable())
      endRefusal()
    } catch {
      guard shards.isUp else { return }
      if !state.phase.mayCompare { health.set("redis", ready: false, "\(error)") }
      inspection.schedule(after: 500)
    }
  }

  /// Pauses the lane, since Redis may not keep what is written to it.
  private func unsuitable(_ reason: String) {
    inspection.schedule(after: 2_000)
    if !state.phase.isEnding { health.set("redis", ready: false, reason) }
    let actions = state.phase.redisIsUnsuitable()
    guard !actions.isEmpty else { return }
    logger.error("Redis is not suitable any more; consumption pauses", ["reason": reason])
    owner?.perform(actions)
  }

  /// Removes the refused call from readiness when it was the last one for a while.
  private func endRefusal() {
    guard let refusedAt, !inspection.isCheckDue else { return }
    guard loop.milliseconds() >= refusedAt + UInt64(Self.refusedMilliseconds) else {
      return inspection.schedule(after: Self.refusedMilliseconds)
    }
    self.refusedAt = nil
    health.remove("calls")
  }

  /// How long readiness names a refused call.
  private static let refusedMilliseconds = 5_000

  /// Ends the inspections.
  func close() { inspection.close() }
}

extension RedisWatch: RedisInspectionOwner {
  func redisInspectionIsDue() { owner?.run(.inspectRedis) }

  func redisHasEvicted(_ report: String) {
    health.set("redis", ready: false, report)
    logger.error("Redis has evicted keys", ["reason": report])
    owner?.perform(state.phase.redisIsSuitable())
    distrust(report)
  }

  func redisCheckBegins() { owner?.redisCheckBegins() }

  func redisCheckEnded(passed: Bool) -> Bool { owner?.redisCheckEnded(passed: passed) ?? false }
}
