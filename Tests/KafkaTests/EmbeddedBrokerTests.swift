import Kafka
import Testing

@Suite struct EmbeddedBrokerTests {
  @Test func aCallThatFollowsAnotherIsAnsweredAtOnce() async throws {
    let broker = try EmbeddedBroker()
    let start = ContinuousClock.now
    for number in 0..<300 { try broker.createTopic("topic-\(number)", partitions: 1) }
    // Who has lost his wake-up waits for a second.
    #expect(ContinuousClock.now - start < .seconds(5))
    await broker.close()
  }
}
