public import EventLoop
public import Store

/// The lane whose Redis is inspected.
public protocol RedisInspectionOwner: AnyObject {
  /// An inspection is due: call `RedisInspection.run` in a task of the lane.
  func redisInspectionIsDue()
  /// Redis has evicted keys, as the report says.
  func redisHasEvicted(_ report: String)
  /// A check of every script begins.
  func redisCheckBegins()
  /// The check has ended. Answers whether another one is due, because of errors since it began.
  func redisCheckEnded(passed: Bool) -> Bool
}

/// Checks whether Redis can be used. Its settings, its clock, and every script if that is due.
///
/// An operator may change a setting at any time, and a failover brings a server with other settings. So an inspection is due every
/// `StoreConfiguration.inspectionMilliseconds`. It uses the lane's own connection.
public final class RedisInspection {
  private let shards: Shards
  private let metrics: RedisMetrics
  private let check: SelfCheck
  private let interval: Int
  private let timer: Timer
  private let clock: ClockWatch
  private var trust = ServerTrust()
  /// Whether `run` is running.
  public private(set) var isRunning = false
  /// Whether a check of every script is due. At the start of a connection, and after a refusal.
  public private(set) var isCheckDue = true
  /// Runs the inspections.
  public weak var owner: (any RedisInspectionOwner)?

  /// Makes an inspection that is not due yet.
  public init(on loop: EventLoop, _ configuration: StoreConfiguration, _ shards: Shards, _ clock: ClockWatch, metrics: RedisMetrics) {
    (self.shards, self.clock, self.metrics) = (shards, clock, metrics)
    interval = configuration.inspectionMilliseconds
    check = SelfCheck(shards)
    timer = Timer(on: loop)
    timer.handler = { [unowned self] in owner?.redisInspectionIsDue() }
  }

  // MARK: Schedule

  /// Schedules the next inspection within this time, and then regularly.
  public func schedule(after milliseconds: Int) { timer.start(after: min(milliseconds, interval), repeating: interval) }

  /// Schedules an inspection at once, with a check of every script. The server may be another one.
  public func restart() {
    isCheckDue = true
    schedule(after: 1)
  }

  /// Schedules an inspection soon, with a check of every script. Redis has refused a call or given an unknown answer.
  public func refused() {
    // A running inspection finds the refusal itself.
    guard !isCheckDue, !isRunning else { return }
    isCheckDue = true
    schedule(after: Self.checkPauseMilliseconds)
  }

  private static let checkPauseMilliseconds = 50

  /// Stops the inspections.
  public func close() { timer.close() }

  // MARK: A run

  /// Inspects Redis; one run at a time.
  ///
  /// - Returns: why Redis cannot be used; nil if it can.
  /// - Throws: why that is unknown: Redis does not answer, or its connection broke during the inspection.
  public func run() async throws(StoreError) -> String? {
    isRunning = true
    defer { isRunning = false }
    let judgement = try await judgeSettings()
    // Reported before the check, which may fail: no later run sees this eviction.
    if case .evicted(let keys) = judgement { owner?.redisHasEvicted(ServerTrust.evictionReport(keys)) }
    if let refusal = try await checkScripts() { return refusal }
    return if case .unsuitable(let reason) = judgement { reason } else { nil }
  }

  private func judgeSettings() async throws(StoreError) -> ServerTrust.Judgement {
    let epoch = shards.epoch
    let state = try await shards.serverState()
    try await clock.compare()
    guard shards.isUp, shards.epoch == epoch else {
      throw StoreError(.unavailable, "the connection to Redis was lost during the inspection")
    }
    let judgement = trust.judge(state, objection: clock.objection)
    metrics.show(state, judgement)
    return judgement
  }

  private func checkScripts() async throws(StoreError) -> String? {
    guard isCheckDue else { return nil }
    owner?.redisCheckBegins()
    let refusal: String?
    do throws(StoreError) {
      refusal = try await check.run()
    } catch {
      _ = owner?.redisCheckEnded(passed: false)
      // Calls that Redis refuses report it when it takes no writes. The check stays due until then.
      if error.code == .writesRefused { return nil }
      throw error
    }
    let isAnotherDue = owner?.redisCheckEnded(passed: refusal == nil) == true
    isCheckDue = isAnotherDue || refusal != nil
    if isAnotherDue { schedule(after: Self.checkPauseMilliseconds) }
    return refusal
  }
}

/// The state of a worker's Redis as metrics. The lanes of a process share the cells.
public struct RedisMetrics: Sendable {
  private let memory: Gauge
  private let memoryLimit: Gauge
  private let evictedKeys: Gauge
  private let suitable: Gauge
  let clockOffset: Gauge

  /// Makes the cells, or finds those of another lane.
  public init(_ registry: MetricRegistry) {
    memory = registry.shared(MetricNames.redisMemory)
    memoryLimit = registry.shared(MetricNames.redisMemoryLimit)
    evictedKeys = registry.shared(MetricNames.redisEvictedKeys)
    suitable = registry.shared(MetricNames.redisSuitable)
    clockOffset = registry.shared(MetricNames.clockOffset)
  }

  func show(_ state: ServerState, _ judgement: ServerTrust.Judgement) {
    if let bytes = state.usedMemory { memory.set(Int(clamping: bytes)) }
    if let bytes = state.maximumMemory { memoryLimit.set(Int(clamping: bytes)) }
    if let keys = state.evictedKeys { evictedKeys.set(Int(clamping: keys)) }
    let isEvicting = if case .evicted = judgement { true } else { false }
    suitable.set(state.objection == nil && !isEvicting ? 1 : 0)
  }
}
