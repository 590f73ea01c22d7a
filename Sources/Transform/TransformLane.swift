package import EventLoop
import Kafka
package import Worker

/// One lane of the transform stage: a loop with its own consumer, producer and connection to Redis.
///
/// The actor starts and drains the lane. Classes of its loop do the work.
package actor TransformLane: LoopActor, WorkerLane {
  private nonisolated let place: LanePlace
  private let settings: TransformSettings
  private let metrics: TransformMetrics
  private var core: TransformCore?
  /// The lane's loop.
  package nonisolated var loop: EventLoop { place.loop }

  /// Makes a lane that does nothing yet.
  package init(_ settings: TransformSettings, in place: LanePlace, metrics: TransformMetrics) {
    (self.settings, self.place, self.metrics) = (settings, place, metrics)
  }

  /// Connects to Redis and Kafka, and takes records. It is ready when both have answered.
  package func start() async throws -> SocketAddress? {
    let core = TransformCore(on: loop, settings, logger: place.logger, health: place.health, metrics: metrics)
    self.core = core
    core.owner = self
    try await core.start()
    return nil
  }

  private func perform(_ task: TransformTask) async {
    await core?.perform(task)
  }

  /// Finishes the records in flight, gives up the partitions, and closes everything.
  package func drain(withinMilliseconds milliseconds: Int) async {
    guard let core else { return }
    self.core = nil
    await core.close(withinMilliseconds: milliseconds)
  }
}

extension TransformLane {
  nonisolated func run(_ task: TransformTask) {
    // The task may begin after the lane was drained and released.
    Task(executorPreference: loop) { [weak self] in await self?.perform(task) }
  }

  /// A Kafka client has failed for good: only a new lane can work.
  nonisolated func failed(_ error: KafkaError) { place.onFatal(error) }
}
