import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Transform

/// Topics that take smaller batches than brokers do by default, on a real Kafka: the embedded one has no such limit.
@Suite(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
struct BatchLimitTests {
  private static let token = String(repeating: "0", count: 64)

  /// Publishes so many requests for one device, which gets them while the lane is away, and waits until each has its verdict in the journal.
  private static func run(_ count: Int, in fixture: TransformFixture) async throws {
    await fixture.eventually("every request is finished") {
      try await fixture.committed(fixture.topics.requests) == Int64(count)
    }
  }

  private static func letters(_ fixture: TransformFixture) async throws -> Int64 {
    let partition = TopicPartition(fixture.topics.deadLetters, 0)
    return try await fixture.kafka.admin.ends(of: [partition])[partition]?.upperBound ?? 0
  }

  @Test func `a backlog of sound requests makes no dead letter where events takes batches of 64 KiB`() async throws {
    try await TransformFixture.with(
      before: { try await $0.request("device:" + Self.token, count: 4_000) },
      real: { [$0.events: ["max.message.bytes": "65536"]] }
    ) { fixture in
      try await Self.run(4_000, in: fixture)
      #expect(fixture.metric(#"carillon_kafka_errors_total{kind="msg_size_too_large"}"#) == 0)
      #expect(try await Self.letters(fixture) == 0)
    }
  }

  @Test func `sound requests are no poison when a topic takes smaller batches than it did at the start`() async throws {
    try await TransformFixture.with(
      // What is set by hand wins over what the brokers have said.
      { $0.kafka = $0.kafka.merging(["batch.size": "1000000"]) },
      before: { try await $0.request("device:" + Self.token, count: 4_000) },
      real: { topics in
        Dictionary(uniqueKeysWithValues: [topics.events, topics.journal, topics.deadLetters].map { ($0, ["max.message.bytes": "16384"]) })
      }
    ) { fixture in
      try await Self.run(4_000, in: fixture)
      #expect(try await Self.letters(fixture) == 0)
      await fixture.eventually("the lane is ready") { fixture.health.isReady }
    }
  }

  @Test func `verdicts on many devices are written to a journal that takes less than they need together`() async throws {
    let tokens = TransformFixture.tokens(in: [(0, 100)])
    try await TransformFixture.with(
      before: { try await $0.publishRegistrations(tokens, for: "ada") },
      real: { [$0.journal: ["max.message.bytes": "1000"]] }
    ) { fixture in
      await fixture.eventually("all devices are registered") {
        try await fixture.committed(fixture.topics.devices) == Int64(tokens.count)
      }
      try await fixture.request("user:ada", count: 20)
      try await Self.run(20, in: fixture)
      await fixture.eventually("the lane is ready") { fixture.health.isReady }
      #expect(try await Self.letters(fixture) == 0)
    }
  }

  @Test func `a request whose event is too large alone makes one dead letter, and the letter's own event none`() async throws {
    try await TransformFixture.with(
      before: { fixture in
        try await fixture.request("device:" + Self.token, count: 50)
        try await fixture.request("device:none", count: 50)
      },
      real: { [$0.events: ["max.message.bytes": "200"]] }
    ) { fixture in
      try await Self.run(100, in: fixture)
      #expect(try await Self.letters(fixture) == 100)
      #expect(fixture.count(.deadLettered) == 50)
    }
  }
}
