package import EventLoop
package import Worker

/// Rebuilds a Redis that has lost everything, on a loop of its own.
package actor RebuildLane: LoopActor {
  /// Runs the rebuild.
  package nonisolated let loop: EventLoop
  private let settings: TransformSettings
  private let logger: Logger

  /// Makes a lane that does nothing yet.
  package init(_ settings: TransformSettings, on loop: EventLoop, logger: Logger) {
    self.settings = settings
    self.loop = loop
    self.logger = logger
  }

  /// Rebuilds Redis, and returns the result.
  ///
  /// It reads `devices` and `schedule`, then requests and events of the longest lifetime in step by time, with the journal ahead of the
  /// requests. It writes the markers last; then the workers continue by themselves. It may be killed and started again at any moment.
  ///
  /// Call it from a task that prefers the loop.
  ///
  /// - Parameter progress: called about twice a second.
  /// - Throws: `RebuildRefusal` if a rebuild is not needed or not possible, else the error of Kafka or Redis.
  package func run(progress: @escaping @Sendable (RebuildReport) -> Void) async throws -> RebuildReport {
    let core = try RebuildCore(on: loop, settings, logger: logger, onProgress: progress)
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
