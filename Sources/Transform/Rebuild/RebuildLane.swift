public import EventLoop
public import Worker

/// Restores a Redis that has lost everything from what Kafka has: a loop of its own, for the time that takes.
public actor RebuildLane {
  private nonisolated let loop: EventLoop
  /// The loop is the actor's executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let settings: TransformSettings
  private let logger: Logger

  /// Makes a lane that does nothing yet.
  public init(_ settings: TransformSettings, on loop: EventLoop, logger: Logger) {
    self.settings = settings
    self.loop = loop
    self.logger = logger
  }

  /// Reads `devices` and `schedule`, then requests and events of the longest lifetime in step by time, with the journal ahead of the requests, and writes the
  /// markers last. Then the workers go on by themselves. It may be killed and begun again at any moment.
  ///
  /// Call it from a task that prefers the loop.
  ///
  /// - Parameters:
  ///   - isDryRun: everything is read, and nothing is written.
  ///   - progress: called now and then.
  /// - Throws: `RebuildRefusal` when it is not to be done, else what Kafka or Redis said.
  public func run(isDryRun: Bool, progress: @escaping @Sendable (RebuildReport) -> Void) async throws -> RebuildReport {
    let core = try RebuildCore(on: loop, settings, logger: logger, isDryRun: isDryRun)
    core.onProgress = progress
    do {
      let report = try await core.run()
      await core.close()
      return report
    } catch {
      await core.close()
      throw error
    }
  }
}
