public import EventLoop
public import Kafka
import Notifications
public import Worker

/// One lane of the fan-out stage: a loop with its own listener, sessions, consumer, producer and connection to Redis.
///
/// The actor is the asynchronous face; the work itself is done by loop-confined classes.
public actor FanOutLane {
  /// The loop that it lives on.
  public nonisolated let loop: EventLoop
  /// The loop is the actor's executor.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
  private let settings: FanOutSettings
  private let logger: Logger
  private let health: Health
  private let metrics: FanOutMetrics
  private let onFatal: @Sendable (KafkaError) -> Void
  private var core: FanOutCore?

  /// Makes a lane that does nothing yet.
  ///
  /// - Parameter onFatal: told when a client of Kafka has failed for good: only a new lane can do the work.
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

  /// Connects to Redis and Kafka and lets devices in; answers where they connect.
  ///
  /// Call it from a task that prefers the loop.
  public func start() async throws -> SocketAddress {
    let core = try FanOutCore(on: loop, settings, logger: logger, health: health, metrics: metrics)
    self.core = core
    core.owner = self
    return try await core.start()
  }

  private func perform(_ task: LaneTask) async { await core?.perform(task) }

  /// Tells the devices when to reconnect, finishes what is under way and closes everything.
  ///
  /// - Parameter milliseconds: what is not done by then stays in the mailboxes.
  public func drain(withinMilliseconds milliseconds: Int) async {
    guard let core else { return }
    await core.drain(withinMilliseconds: milliseconds)
    self.core = nil
  }
}

extension FanOutLane: FanOutCoreOwner {
  nonisolated func run(_ task: LaneTask) {
    // A task may begin only when the lane has been drained and let go of.
    Task(executorPreference: loop) { [weak self] in await self?.perform(task) }
  }

  nonisolated func failed(_ error: KafkaError) { onFatal(error) }
}
