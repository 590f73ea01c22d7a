public import Store

/// Looks at what Redis says of itself, and shows it as metrics: in each lane, over the connection that it writes through. Loop-confined.
///
/// A setting may be changed at any time (it looks every `StoreConfiguration.inspectionMilliseconds`), and a failover brings a server with
/// other settings.
public final class RedisInspection {
  private let shards: Shards
  private let metrics: RedisMetrics
  private var trust = ServerTrust()

  /// Of these servers.
  public init(_ shards: Shards, metrics: RedisMetrics) { (self.shards, self.metrics) = (shards, metrics) }

  /// What Redis says now.
  ///
  /// - Throws: why it does not say it: it does not answer, or has gone meanwhile.
  public func look() async throws(StoreError) -> ServerTrust.Judgement {
    let epoch = shards.epoch
    let state = try await shards.serverState()
    guard shards.isUp, shards.epoch == epoch else { throw StoreError(.unavailable, "Redis has gone while it was asked for its settings") }
    let judgement = trust.judge(state)
    metrics.show(state, judgement)
    return judgement
  }
}

/// What a worker shows of its Redis: the lanes of a process have one, and show the same.
public struct RedisMetrics: Sendable {
  private let memory: Gauge
  private let memoryLimit: Gauge
  private let evictedKeys: Gauge
  private let suitable: Gauge

  /// The process' cells.
  public init(_ registry: MetricRegistry) {
    memory = registry.shared(MetricNames.redisMemory)
    memoryLimit = registry.shared(MetricNames.redisMemoryLimit)
    evictedKeys = registry.shared(MetricNames.redisEvictedKeys)
    suitable = registry.shared(MetricNames.redisSuitable)
  }

  func show(_ state: ServerState, _ judgement: ServerTrust.Judgement) {
    if let bytes = state.usedMemory { memory.set(Int(clamping: bytes)) }
    if let bytes = state.maximumMemory { memoryLimit.set(Int(clamping: bytes)) }
    if let keys = state.evictedKeys { evictedKeys.set(Int(clamping: keys)) }
    suitable.set(judgement == .suitable ? 1 : 0)
  }
}
