import EventLoop
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Operations

/// Two people change an application at the same moment. Each record has all stops and grants, so the later one could undo the other.
@Suite struct ApplicationLedgerTests {
  private static func with<R: Sendable>(_ kafka: KafkaFixture, _ topics: Topics, _ body: @Sendable (ClusterTool) async throws -> R)
    async throws -> R
  {
    let loop = EventLoop(name: "ledger")
    let ledger = ClusterTool(on: loop, kafka.configuration, RequestRules(topics: topics))
    do {
      let result = try await body(ledger)
      await loop.close()
      return result
    } catch {
      await loop.close()
      throw error
    }
  }

  @Test func `a stop and a grant at the same moment both count`() async throws {
    try await KafkaFixture.with { kafka in
      let topics = Topics(prefix: KafkaFixture.unique("ledger") + ".")
      try await kafka.makeTopics([topics.applications], partitions: 1)
      for round in 0..<6 {
        let application = Name("com.example.\(round)")
        async let stopped = Self.with(kafka, topics) {
          try await $0.change(application, .stop(by: "ada", reason: nil), forgettingBefore: 0)
        }
        async let allowed = Self.with(kafka, topics) { try await $0.change(application, .allow(.critical), forgettingBefore: 0) }
        _ = try await (stopped, allowed)
        let entry = try await Self.with(kafka, topics) { try await $0.applications() }.first { $0.application == application }
        #expect(entry?.stops.open != nil && entry?.stops.granted == .critical, "round \(round): \(String(describing: entry))")
      }
    }
  }
}
