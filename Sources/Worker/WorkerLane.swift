public import EventLoop
public import Kafka

/// A lane of any stage, from the view of a process.
public protocol WorkerLane: Actor {
  /// Starts it; returns the address of devices or publishers, if it has one. Call it from a task that prefers the loop.
  func start() async throws -> SocketAddress?
  /// Ends it within a time, whether or not it has started. The next owners of its work do the rest.
  func drain(withinMilliseconds milliseconds: Int) async
}

/// The inputs of a new lane.
public struct LanePlace: Sendable {
  /// The lane's loop.
  public let loop: EventLoop
  /// The lane's log.
  public let logger: Logger
  /// The lane's health.
  public let health: Health
  /// The clients' address of the former lane, if there was one: they reconnect there.
  public let address: SocketAddress?
  /// Called after a client of Kafka has failed for good: only a new lane can continue the work.
  public let onFatal: @Sendable (KafkaError) -> Void

  /// Where a lane is to work.
  public init(
    on loop: EventLoop, logger: Logger, health: Health, address: SocketAddress? = nil,
    onFatal: @escaping @Sendable (KafkaError) -> Void = { _ in }
  ) {
    (self.loop, self.logger, self.health, self.address, self.onFatal) = (loop, logger, health, address, onFatal)
  }
}
