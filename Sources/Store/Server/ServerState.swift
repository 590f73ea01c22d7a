import Redis

/// What Redis says of itself, as far as it decides whether a worker may rely on it.
public struct ServerState: Sendable, Hashable {
  /// The server's process: another one has another memory, and other counts; nil when it does not say.
  public var runIdentifier: String?
  /// Why it must not be relied on, and what to do; nil when nothing is known that speaks against it.
  public var objection: String?
  /// Bytes that its data and buffers take; nil when it does not say.
  public var usedMemory: Int64?
  /// The bytes that it may take: 0 where it sets itself no bound; nil when it does not say.
  public var maximumMemory: Int64?
  /// Keys that this process of it has thrown away for want of memory; nil when it does not say.
  public var evictedKeys: Int64?

  /// A state of its parts.
  public init(
    runIdentifier: String?, objection: String? = nil, usedMemory: Int64? = nil, maximumMemory: Int64? = nil, evictedKeys: Int64? = nil
  ) {
    (self.runIdentifier, self.objection) = (runIdentifier, objection)
    (self.usedMemory, self.maximumMemory, self.evictedKeys) = (usedMemory, maximumMemory, evictedKeys)
  }
}

extension Shards {
  /// Asks Redis for its memory and its settings; from a task on the loop.
  public func serverState() async throws(StoreError) -> ServerState {
    let report: RedisServerReport
    do throws(RedisError) { report = try await common.checkServer() } catch { throw StoreError(error) }
    return ServerState(
      runIdentifier: report.runIdentifier, objection: report.firstError?.message, usedMemory: report.usedMemory,
      maximumMemory: report.maximumMemory, evictedKeys: report.evictedKeys)
  }
}
