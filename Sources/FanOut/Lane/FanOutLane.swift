public import EventLoop
public import Kafka
import Notifications
public import Worker

/// One lane of the fan-out stage. A loop with its own listener, sessions, consumer, producer and connection to Redis.
///
/// The actor is the asynchronous interface. Loop-confined classes do the work.
public actor FanOutLane: LoopActor {
  /// The lane's loop.
  public nonisolated let loop: EventLoop
  private let settings: FanOutSettings
  private let logger: Logger
  private let health: Health
  private let metrics: FanOutMetrics
  private let onFatal: @Sendable (KafkaError) -> Void
  private var core: FanOutCore?

  /// Makes a lane that does nothing yet.
  ///
  /// - Parameter onFatal: called when a Kafka client has failed for good. Only a new lane can continue the work.
  public init(
    _ settings: FanOutSettings, on loop: EventLoop, logger: Logger, health: Health, metrics: FanOutMetrics,
    onFatal: @escaping @Sendable (KafkaError) -> Void = { _ in }
  ) {
    self.settings = settings
    self.loop = loop
    self.logger = logger
    self.health = health
    self.metrics = metrics
    self.onFatal = onFatal
  }

  /// Connects to Redis and Kafka, and admits devices. Answers where they connect.
  ///
  /// Call it from a task that prefers the loop.
  public func start() async throws -> SocketAddress {
    let core = try FanOutCore(on: loop, settings, logger: logger, health: health, metrics: metrics)
    self.core = core
    core.owner = self
    return try await core.start()
  }

  private func perform(_ task: LaneTask) async { await core?.perform(task) }

  /// Tells the devices when to reconnect, finishes the work in progress and closes everything.
  ///
  /// - Parameter milliseconds: the time for it. Unfinished notifications stay in the mailboxes.
  public func drain(withinMilliseconds milliseconds: Int) async {
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
  nonisolated func failed(_ error: KafkaError) { onFatal(error) }
}
