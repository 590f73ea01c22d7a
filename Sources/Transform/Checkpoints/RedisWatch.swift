import EventLoop
import Store
import Worker

/// Whether Redis answers, takes writes and keeps them: each sign that it does not goes to the lane's phase, the health and the log.
/// Loop-confined.
final class RedisWatch {
  private let configuration: StoreConfiguration
  private let shards: Shards
  private let state: LaneState
  private let logger: Logger
  private let health: Health
  private let metrics: TransformMetrics
  private let inspection: RedisInspection
  private let timer: Timer
  /// Does what the phase asks for, and has `inspect` called.
  weak var owner: (any LanePhaseOwner & TransformTaskRunner)?

  init(
    on loop: EventLoop, _ configuration: StoreConfiguration, _ shards: Shards, _ state: LaneState, logger: Logger, health: Health,
    metrics: TransformMetrics
  ) {
    self.configuration = configuration
    self.shards = shards
    self.state = state
    self.logger = logger
    self.health = health
    self.metrics = metrics
    inspection = RedisInspection(shards, metrics: metrics.redis)
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in owner?.run(.inspectRedis) }
  }

  /// Connects to Redis, and follows its connection from there.
  func start() {
    health.set("redis", ready: false, "connecting to \(configuration)")
    shards.onUp = { [unowned self] in
      logger.info("Redis answers", ["address": "\(configuration)"])
      health.set("redis", ready: false, "Redis answers; it has not been compared with Kafka yet")
      // It may be another server by now: it is worked with when it has said that it keeps what it is given.
      inspect(after: 1)
    }
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

  // MARK: Signs that calls have found

  /// Redis may have lost something: nothing is judged until the markers were compared.
  func distrust(_ reason: String) {
    let actions = state.phase.distrust()
    if !actions.isEmpty { logger.warning("the markers are compared", ["reason": reason]) }
    owner?.perform(actions)
  }

  /// Redis has refused what writes.
  func refusedWrites(_ error: StoreError) {
    let actions = state.phase.writesRefused()
    guard !actions.isEmpty else { return }
    health.set("redis", ready: false, "\(error)")
    logger.warning("Redis refuses what writes; consumption pauses", ["error": "\(error)"])
    owner?.perform(actions)
  }

  // MARK: Inspections

  /// A Redis that may throw away what it is given is not given anything; after one that has, the markers are compared.
  func inspect() async {
    let judgement: ServerTrust.Judgement
    do throws(StoreError) {
      judgement = try await inspection.look()
    } catch {
      guard shards.isUp else { return }
      if !state.phase.mayCompare { health.set("redis", ready: false, "\(error)") }
      return inspect(after: 500)
    }
    switch judgement {
    case .suitable: owner?.perform(state.phase.redisIsSuitable())
    case .unsuitable(let reason):
      inspect(after: 2_000)
      let actions = state.phase.redisIsUnsuitable()
      guard !actions.isEmpty else { return }
      health.set("redis", ready: false, reason)
      logger.error("Redis cannot be worked with any more; consumption pauses", ["reason": reason])
      owner?.perform(actions)
    case .evicted(let keys):
      let report = ServerTrust.evictionReport(keys)
      health.set("redis", ready: false, report)
      logger.error("Redis has thrown away what it was given", ["reason": report])
      owner?.perform(state.phase.redisIsSuitable())
      distrust(report)
    }
  }

  /// Inspects after so many milliseconds, and then from time to time.
  private func inspect(after milliseconds: Int) {
    let interval = configuration.inspectionMilliseconds
    timer.start(after: min(milliseconds, interval), repeating: interval)
  }

  /// Inspects it no more.
  func close() { timer.close() }
}
