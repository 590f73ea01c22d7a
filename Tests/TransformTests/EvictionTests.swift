import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// Mailboxes that become too full.
@Suite struct EvictionTests {
  private static let bound = 8

  @Test(.timeLimit(.minutes(3))) func anEntryLeavesAFullMailboxOnlyWhenItsEventIsInKafka() async throws {
    try await TransformFixture.with({ $0.mailboxBound = Self.bound }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      let events = TopicPartition(lane.topics.events, 0)
      try lane.kafka.embedded?.setLeader(of: events, to: -1)
      try await lane.request("device:" + token, count: 60)
      await lane.eventually("all are in the mailbox", withinSeconds: 60) { try await lane.waiting(token) == 60 }
      await lane.eventually("the oldest are told of") { lane.metric("carillon_transform_evicted_total") >= 16 }
      try await lane.settled { Int(lane.metric("carillon_transform_evicted_total")) }
      #expect(try await lane.waiting(token) == 60, "Kafka has none of their events")
      try lane.kafka.embedded?.setLeader(of: events, to: 1)
      await lane.eventually("the others are left", withinSeconds: 60) { try await lane.waiting(token) == Self.bound }
      let fields = try await lane.probe.command("HKEYS", .text(TransformFixture.keys.mailbox(token))).array ?? []
      let left = fields.compactMap { field in field.bytes.flatMap { $0.withUnsafeBytes { Revision(bytes: $0)?.offset } } }
      #expect(left.sorted() == Array(52..<60), "the oldest go")
      let told = try await lane.kafka.records(of: lane.topics.events, count: 52)
      #expect(Set(told.compactMap { $0.header("ce_id") }).count == 52)
      #expect(told.allSatisfy { $0.header("ce_type") == Outcome.evicted.cloudEventsType?.description })
    }
  }
}
