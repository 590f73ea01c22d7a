package import EventLoop
import Kafka
package import Worker

/// One lane of the fan-out stage. A loop with its own listener, sessions, consumer, producer and connection to Redis.
///
/// The actor is the asynchronous interface. Classes of its loop do the work.
package actor FanOutLane: LoopActor, WorkerLane {
  private nonisolated let place: LanePlace
  private let settings: FanOutSettings
  private let metrics: FanOutMetrics
  private var core: FanOutCore?
  /// The lane's loop.
  package nonisolated var loop: EventLoop { place.loop }

  /// Makes a lane that does nothing yet.
  package init(_ settings: FanOutSettings, in place: LanePlace, metrics: FanOutMetrics) {
    (self.settings, self.place, self.metrics) = (settings, place, metrics)
  }

  /// Connects to Redis and Kafka, and admits devices. Answers where they connect.
  package func start() async throws -> SocketAddress? {
    let core = try FanOutCore(on: loop, settings, logger: place.logger, health: place.health, metrics: metrics)
    self.core = core
    core.owner = self
    return try await core.start()
  }

  private func perform(_ task: LaneTask) async { await core?.perform(task) }

  /// Tells the devices when to reconnect, finishes the work in progress and closes everything. Unfinished notifications stay in the
  /// mailboxes.
  package func drain(withinMilliseconds milliseconds: Int) async {
    guard let core else { return }
    await core.drain(withinMilliseconds: milliseconds)
    self.core = nil
  }
}

extension FanOutLane {
  /// Runs a task that waits for Redis or Kafka.
  nonisolated func run(_ task: LaneTask) {
    // The task may begin after the lane was drained and released.
    Task(executorPreference: loop) { [weak self] in await self?.perform(task) }
  }

  /// A Kafka client has failed for good. Only a new lane can continue.
  nonisolated func failed(_ error: KafkaError) { place.onFatal(error) }
}
