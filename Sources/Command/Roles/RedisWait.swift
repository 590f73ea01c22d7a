import EventLoop
import Redis
import Worker

/// Waits for Redis at a process' start, and judges its settings: a server that evicts would lose notifications silently.
actor RedisWait {
  nonisolated let loop: EventLoop
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private var connection: RedisConnection?

  init(on loop: EventLoop) { self.loop = loop }

  /// Waits until Redis answers, however long that takes, and checks it; or until `cancel`.
  ///
  /// - Throws: `unsuitableServer` when a guarantee could not be kept there.
  func untilSuitable(_ address: RedisAddress, logger: Logger, health: Health) async throws(RedisError) {
    // The process may have been told to end before there was anything to cancel.
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
    while let passing = try await judge(connection, logger) {
      health.set("redis", ready: false, passing)
      try? await Task.sleep(for: .milliseconds(Self.pauseMilliseconds))
    }
    // From now on each lane says how it stands with Redis.
    health.remove("redis")
  }

  private static let pauseMilliseconds = 1_000

  /// What is to pass before this Redis can be worked with; nil when nothing is.
  private func judge(_ connection: RedisConnection, _ logger: Logger) async throws(RedisError) -> String? {
    try await connection.waitUntilUp(withinMilliseconds: Int(Int32.max))
    let report: RedisServerReport
    do throws(RedisError) {
      report = try await connection.checkServer()
    } catch {
      if error.code == .closed { throw error }
      return error.description
    }
    for finding in report.findings {
      switch finding.severity {
      case .error: logger.error("Redis cannot be worked with", ["finding": finding.text])
      case .passing: logger.warning("Redis cannot be worked with yet", ["finding": finding.text, "retryMs": Self.pauseMilliseconds])
      case .warning: logger.warning("Redis could work better", ["finding": finding.text])
      case .note: logger.info("Redis was not checked wholly", ["finding": finding.text])
      }
    }
    if let error = report.firstError { throw error }
    return report.passing
  }

  /// Waits no longer.
  func cancel() {
    connection?.close()
    connection = nil
  }
}
