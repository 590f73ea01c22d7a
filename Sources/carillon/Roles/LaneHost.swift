import EventLoop
import FanOut
import Kafka
import Redis
import Transform
import Worker

/// A lane of any stage, as a process sees it.
protocol RunnableLane: Actor {
  /// Starts it; answers where devices connect, if they do.
  func run() async throws -> SocketAddress?
  /// Ends it, whether or not it has started.
  func drain(withinMilliseconds milliseconds: Int) async
}

extension TransformLane: RunnableLane {
  func run() async throws -> SocketAddress? {
    try await start()
    return nil
  }
}

extension FanOutLane: RunnableLane {
  func run() async throws -> SocketAddress? { try await start() }
}

/// One lane with its loop: started again and again until it runs, and drained at the end.
///
/// What a lane depends on may come later than the lane: that is said in the log and by the readiness, and is no reason to end.
actor LaneHost {
  /// The lane's name: `transform-0`.
  nonisolated let name: String
  private let loop: EventLoop
  private let logger: Logger
  private let health: Health
  private let make: @Sendable (EventLoop, Logger, Health) -> any RunnableLane
  private var lane: (any RunnableLane)?
  private var isStarting = false
  private var isStopping = false

  private static let firstRetry = 500
  private static let longestRetry = 10_000

  /// - Parameter make: makes a lane that does nothing yet; called for every attempt to start.
  init(
    _ name: String, logger: Logger, health: Health, make: @escaping @Sendable (EventLoop, Logger, Health) -> any RunnableLane
  ) {
    self.name = name
    self.logger = logger.with(["lane": name])
    self.health = health.forLane(name)
    self.make = make
    loop = EventLoop(name: name)
  }

  /// Starts the lane.
  ///
  /// - Returns: where devices connect, if they do; nil also when it was told to stop before it had started.
  /// - Throws: only what trying again does not mend.
  func start() async throws -> SocketAddress? {
    health.watch(loop)
    isStarting = true
    defer { isStarting = false }
    var wait = Self.firstRetry
    while !isStopping {
      health.set("started", ready: false, "starting")
      let lane = make(loop, logger, health)
      self.lane = lane
      do {
        let address = try await Task(executorPreference: loop) { try await lane.run() }.value
        guard !isStopping else {
          await drain(withinMilliseconds: 1000)
          return nil
        }
        health.set("started", ready: true)
        return address
      } catch {
        if isStopping { return nil }
        await drain(withinMilliseconds: 1000)
        self.lane = nil
        if Self.isFinal(error) { throw error }
        health.set("started", ready: false, "\(error)")
        logger.error("the lane could not start; it is tried again", ["error": "\(error)", "retryMs": wait])
        try? await Task.sleep(for: .milliseconds(wait))
        wait = min(wait * 2, Self.longestRetry)
      }
    }
    return nil
  }

  /// Ends what is under way and the loop.
  func stop(withinMilliseconds milliseconds: Int) async {
    isStopping = true
    health.set("draining", ready: false, "the process is ending")
    await drain(withinMilliseconds: milliseconds)
    // A start that is under way fails when its lane is drained, but it may have come to no more than its beginning by then. Without its
    // loop it would never end.
    while isStarting {
      await drain(withinMilliseconds: 0)
      try? await Task.sleep(for: .milliseconds(20))
    }
    lane = nil
    health.unwatch(loop)
    await loop.close()
  }

  private func drain(withinMilliseconds milliseconds: Int) async {
    guard let lane else { return }
    await Task(executorPreference: loop) { await lane.drain(withinMilliseconds: milliseconds) }.value
  }

  private static func isFinal(_ error: any Error) -> Bool {
    switch error {
    case let error as KafkaError: error.code == .invalidConfiguration
    case let error as RedisError:
      [.badAddress, .notInThisVersion, .unsuitableServer].contains(error.code)
    case let error as EventLoopError: !error.isRetriable && error.code != .closed
    default: false
    }
  }
}
