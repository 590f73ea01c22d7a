public import EventLoop
public import Kafka
public import Worker

/// One lane of the transform stage: a loop with its own consumer, producer and connection to Redis.
///
/// The actor starts and drains the lane. Loop-confined classes do the work.
public actor TransformLane: LoopActor {
  /// The lane's loop.
  public nonisolated let loop: EventLoop
  private let settings: TransformSettings
  private let logger: Logger
  private let health: Health
  private let metrics: TransformMetrics
  private let onFatal: @Sendable (KafkaError) -> Void
  private var core: TransformCore?

  /// Makes a lane that does nothing yet.
  ///
  /// - Parameter onFatal: called when a Kafka client has failed for good: only a new lane can do the work.
  public init(
    _ settings: TransformSettings, on loop: EventLoop, logger: Logger, health: Health, metrics: TransformMetrics,
    onFatal: @escaping @Sendable (KafkaError) -> Void = { _ in }
  ) {
    self.settings = settings
    self.loop = loop
    self.logger = logger
    self.health = health
    self.metrics = metrics
    self.onFatal = onFatal
  }

  /// Connects to Redis and Kafka, and takes records. It is ready when both have answered.
  ///
  /// Call it from a task that prefers the loop.
  public func start() async throws {
    let core = TransformCore(on: loop, settings, logger: logger, health: health, metrics: metrics)
    self.core = core
    core.owner = self
    try await core.start()
  }

  private func perform(_ task: TransformTask) async {
    await core?.perform(task)
  }

  /// Finishes the records in flight, gives up the partitions, and closes everything.
  ///
  /// - Parameter milliseconds: the limit; the next owners of the partitions do the rest.
  public func drain(withinMilliseconds milliseconds: Int) async {
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
  nonisolated func failed(_ error: KafkaError) { onFatal(error) }
}
