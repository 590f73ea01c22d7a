import EventLoop
import Store
import Worker

/// What a watch of Redis asks of its lane.
protocol RedisWatchOwner: LanePhaseOwner, TransformTaskRunner {
  /// A check of what Redis does begins.
  func redisCheckBegins()
  /// The check has ended; answers whether another one is due, for errors that have come since it began.
  func redisCheckEnded(passed: Bool) -> Bool
}

/// Whether Redis answers, does what workers need, takes writes and keeps them: each sign that it does not goes to the lane's phase, the health
/// and the log. Loop-confined.
final class RedisWatch {
  private let configuration: StoreConfiguration
  private let shards: Shards
  private let state: LaneState
  private let logger: Logger
  private let health: Health
  private let metrics: TransformMetrics
  private let inspection: RedisInspection
  private let check: SelfCheck
  private let timer: Timer
  private var isInspecting = false
  /// A check of every script is due: at the start of a connection, and after an answer that says something of Redis itself.
  private var isCheckDue = true
  /// When Redis refused a call last, by the loop's milliseconds; nil where readiness does not say so.
  private var refusedAt: UInt64?
  private let loop: EventLoop
  /// Does what the phase asks for, and has `inspect` called.
  weak var owner: (any RedisWatchOwner)?

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
    self.loop = loop
    check = SelfCheck(shards)
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
      // It may be another server by now: it is worked with when it does what workers need, and has said that it keeps what it is given.
      isCheckDue = true
      inspect(after: 1)
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

  /// Redis has answered a call with something that it says of itself, or that is not known here: a check of every script explains it.
  private func refused(_ error: StoreError) {
    // What an inspection is refused it tells itself.
    guard shards.isUp, !isInspecting else { return }
    if error.code == .refused {
      if refusedAt == nil { logger.warning("Redis refuses a call", ["error": "\(error)"]) }
      refusedAt = loop.milliseconds()
      // Also where every script works: what is refused may be one key, whose records wait.
      health.set("calls", ready: false, "\(error)")
    }
    guard !isCheckDue else { return }
    isCheckDue = true
    inspect(after: Self.checkPauseMilliseconds)
  }

  /// Between two checks, and until readiness says no more that a call was refused.
  private static let (checkPauseMilliseconds, refusedMilliseconds) = (50, 5_000)

  // MARK: Inspections

  /// Finds out whether Redis can be worked with, one inspection at a time.
  func inspect() async {
    guard !isInspecting else { return }
    isInspecting = true
    defer { isInspecting = false }
    do throws(StoreError) {
      let judgement = try await inspection.look()
      // It is told once, whatever the check of the scripts finds.
      if case .evicted = judgement { judged(judgement) }
      if let refusal = try await findRefused() { return judged(.unsuitable(refusal)) }
      if case .evicted = judgement { return }
      judged(judgement)
    } catch {
      guard shards.isUp else { return }
      if !state.phase.mayCompare { health.set("redis", ready: false, "\(error)") }
      inspect(after: 500)
    }
  }

  /// Runs the check that is due; answers what Redis does not do, nil where nothing is known of that.
  private func findRefused() async throws(StoreError) -> String? {
    guard isCheckDue else {
      if let refusedAt, loop.milliseconds() >= refusedAt + UInt64(Self.refusedMilliseconds) {
        self.refusedAt = nil
        health.remove("calls")
      }
      return nil
    }
    owner?.redisCheckBegins()
    let refusal: String?
    do throws(StoreError) {
      refusal = try await check.run()
    } catch {
      _ = owner?.redisCheckEnded(passed: false)
      // A Redis that only reads now is told by the calls that it refuses; the check follows when it takes writes.
      if error.code == .writesRefused { return nil }
      throw error
    }
    let isAnotherDue = owner?.redisCheckEnded(passed: refusal == nil) == true
    isCheckDue = isAnotherDue || refusal != nil
    if isAnotherDue {
      inspect(after: Self.checkPauseMilliseconds)
    } else if refusedAt != nil {
      inspect(after: Self.refusedMilliseconds)
    }
    return refusal
  }

  /// A Redis that may throw away what it is given is not given anything; after one that has, the markers are compared.
  private func judged(_ judgement: ServerTrust.Judgement) {
    switch judgement {
    case .suitable: owner?.perform(state.phase.redisIsSuitable())
    case .unsuitable(let reason):
      inspect(after: 2_000)
      if !state.phase.isEnding { health.set("redis", ready: false, reason) }
      let actions = state.phase.redisIsUnsuitable()
      guard !actions.isEmpty else { return }
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
