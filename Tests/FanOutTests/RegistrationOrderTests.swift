import Cryptography
import EventLoop
import Kafka
import Redis
import Store
import Notifications
import TestSupport
import Testing
import Worker

@testable import FanOut

/// Registrations whose batch Kafka refuses are sent once more, and the newest of a device stays the last.
@Suite struct RegistrationOrderTests {
  private final class Silent: ProducerHandler {
    func producerDelivered(_ reports: [DeliveryReport]) {}
    func producerHasRoom() {}
    func producerFailed(_ error: KafkaError) {}
  }

  private actor Lane: LoopActor {
    nonisolated let loop = EventLoop(name: "registrations")
    private var producer: EventProducer?
    private(set) var begun = 0

    func open(_ settings: FanOutSettings, _ admin: Admin) async throws {
      let producer = EventProducer(on: loop, settings, metrics: FanOutMetrics(MetricRegistry()))
      try await producer.open(admin, handler: Silent(), logger: .silent)
      self.producer = producer
    }

    func publish(_ registration: String, of token: String) async throws {
      begun += 1
      _ = try await producer?.publish(Array(registration.utf8), of: token)
    }

    func close() async { await producer?.close(withinMilliseconds: hangMilliseconds) }
  }

  @Test func `a registration that is sent once more never lands behind a newer one of its device`() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topics = Topics(prefix: KafkaFixture.unique("order") + ".")
      for topic in topics.all { try kafka.embedded?.createTopic(topic, partitions: 1) }
      // Each record has a batch of its own, and several are on their way at once.
      let configuration = kafka.configuration.merging(["batch.num.messages": "1"])
      let settings = FanOutSettings(
        topics: topics, kafka: configuration, store: StoreConfiguration(RedisAddress(.tcp(host: "127.0.0.1", port: 1))),
        listen: SocketAddress(host: "127.0.0.1", port: 0), admission: .anyone, keys: InForce(KeyRing([KeyRing.Key([1, 2, 3])])),
        worker: "test/0")
      let lane = Lane()
      try await lane.open(settings, kafka.admin)
      try await lane.publish("first", of: "aa")
      // So long an answer takes that the newer one would be on its way when the refusal comes.
      try kafka.embedded?.setRoundTrip(milliseconds: 500)
      try kafka.embedded?.failNext(.produce, with: [.messageTooLarge])
      let older = Task { try await lane.publish("older", of: "aa") }
      await eventually("the older one is begun") { await lane.begun >= 2 }
      let newer = Task { try await lane.publish("newer", of: "aa") }
      try await older.value
      try await newer.value
      #expect(try await kafka.records(of: topics.devices, count: 3).map(\.text) == ["first", "older", "newer"])
      await lane.close()
      await lane.loop.close()
    }
  }
}
