package import EventLoop
import Kafka
import Notifications
package import Worker

/// One lane of the ingress: a loop with its own HTTP listener and producer.
///
/// The actor is the asynchronous interface. A class of its loop does the work.
package actor IngressLane: LoopActor, WorkerLane {
  private nonisolated let place: LanePlace
  private let settings: IngressSettings
  private let fates: FateDesk
  private let metrics: IngressMetrics
  private var core: IngressCore?
  /// The lane's loop.
  package nonisolated var loop: EventLoop { place.loop }

  /// Makes a lane that does nothing yet.
  ///
  /// - Parameter fates: answers questions for the fate of requests, for all lanes of the process.
  package init(_ settings: IngressSettings, in place: LanePlace, fates: FateDesk, metrics: IngressMetrics) {
    (self.settings, self.place, self.fates, self.metrics) = (settings, place, fates, metrics)
  }

  /// Asks Kafka for the topic, and listens; returns the address.
  package func start() async throws -> SocketAddress? {
    let (logger, health) = (place.logger, place.health)
    health.set("kafka", ready: false, "connecting")
    let topic = settings.topics.requests
    let limits = try await Admin.with(settings.kafka, timeoutMilliseconds: settings.askMilliseconds) { admin in
      _ = try await admin.describe(topic: topic)
      return try await admin.writeLimits(of: [topic], logger: logger)
    }
    let core = try IngressCore(on: loop, settings, batchBytes: limits.batchBytes(of: topic), logger: logger, health: health, metrics)
    self.core = core
    core.owner = self
    let address = try core.listen()
    health.set("kafka", ready: true)
    logger.info("publishers may connect", ["address": "\(address)"])
    return address
  }

  private func find(_ id: NotificationID, _ target: Name?, for publisher: Publisher, _ number: UInt64) async {
    let fate = await fates.find(id, target: target, for: publisher)
    core?.found(fate, number)
  }

  /// Answers all requests within a time, and closes everything.
  package func drain(withinMilliseconds milliseconds: Int) async {
    await core?.drain(withinMilliseconds: milliseconds)
    core = nil
  }

  /// Finds what became of a request, and calls `found` of the core with the number.
  nonisolated func find(_ id: NotificationID, target: Name?, for publisher: Publisher, number: UInt64) {
    Task(executorPreference: loop) { [weak self] in await self?.find(id, target, for: publisher, number) }
  }

  /// Kafka's client has failed for good. Only a new lane can continue.
  nonisolated func failed(_ error: KafkaError) { place.onFatal(error) }
}
