import EventLoop
import Redis
import Store
import Worker

/// Waits for Redis at a process's start, and inspects its settings. A server that evicts would lose notifications silently.
actor RedisWait: LoopActor {
  nonisolated let loop: EventLoop
  private var connection: RedisConnection?

  init(on loop: EventLoop) { self.loop = loop }

  /// Waits without a limit until Redis answers, then checks it; or until `cancel`.
  ///
  /// - Throws: `unsuitableServer` if the server could not keep a guarantee.
  func untilSuitable(_ address: RedisAddress, logger: Logger, health: Health) async throws(RedisError) {
    // The process may have been stopped before there was anything to cancel.
    guard !Task.isCancelled else { throw RedisError(.closed, "not waited for: the process is ending") }
    let connection = RedisConnection(on: loop, RedisConfiguration(address, clientName: "carillon-check"))
    self.connection = connection
    defer { cancel() }
    health.set("redis", ready: false, "connecting to \(address)")
    connection.onAttemptFailed = { error, wait in
      health.set("redis", ready: false, "\(error)")
      logger.warning("Redis does not answer", ["error": "\(error)", "retryMs": "\(wait)"])
    }
    connection.start()
    while let finding = try await inspect(connection, logger) {
      health.set("redis", ready: false, finding)
      try? await Task.sleep(for: .milliseconds(Self.pauseMilliseconds))
    }
    // From now on each lane reports its own state of Redis.
    health.remove("redis")
  }

  private static let pauseMilliseconds = 1_000

  /// Why the server cannot be used yet; nil if it can.
  private func inspect(_ connection: RedisConnection, _ logger: Logger) async throws(RedisError) -> String? {
    try await connection.waitUntilUp(withinMilliseconds: Int(Int32.max))
    let state: ServerState
    do throws(RedisError) {
      state = try await connection.checkServer()
    } catch {
      if error.code == .closed { throw error }
      return error.description
    }
    for text in state.texts(.error) { logger.error("Redis cannot be used", ["finding": text]) }
    for text in state.texts(.passing) { logger.warning("Redis cannot be used yet", ["finding": text, "retryMs": Self.pauseMilliseconds]) }
    for text in state.texts(.warning) { logger.warning("Redis could work better", ["finding": text]) }
    for text in state.texts(.note) { logger.info("Redis was checked only in part", ["finding": text]) }
    if let error = state.texts(.error).first { throw RedisError(.unsuitableServer, error) }
    return state.texts(.passing).first
  }

  /// Stops waiting.
  func cancel() {
    connection?.close()
    connection = nil
  }
}
