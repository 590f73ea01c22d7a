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

  @Test(.timeLimit(.minutes(10))) func anEntryLeavesAFullMailboxOnlyWhenItsEventIsInKafka() async throws {
    try await TransformFixture.with({ $0.mailboxBound = Self.bound }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      let events = TopicPartition(lane.topics.events, 0)
      try lane.kafka.embedded?.setLeader(of: events, to: -1)
      try await lane.request("device:" + token, count: 60)
      await lane.eventually("all are in the mailbox") { try await lane.waiting(token) == 60 }
      await lane.eventually("the oldest are told of") { lane.metric("carillon_transform_evicted_total") >= 16 }
      try await lane.settled { Int(lane.metric("carillon_transform_evicted_total")) }
      #expect(try await lane.waiting(token) == 60, "Kafka has none of their events")
      try lane.kafka.embedded?.setLeader(of: events, to: 1)
      await lane.eventually("the others are left") { try await lane.waiting(token) == Self.bound }
      let fields = try await lane.probe.command("HKEYS", .text(TransformFixture.keys.mailbox(token))).array ?? []
      let left = fields.compactMap { field in field.bytes.flatMap { $0.withUnsafeBytes { Revision(bytes: $0)?.offset } } }
      #expect(left.sorted() == Array(52..<60), "the oldest go")
      let told = try await lane.kafka.records(of: lane.topics.events, count: 52)
      #expect(Set(told.compactMap { $0.header("ce_id") }).count == 52)
      #expect(told.allSatisfy { $0.header("ce_type") == Outcome.evicted.cloudEventsType?.description })
    }
  }
  @Test func `a burst for a connected device evicts nothing, and the same for one that is away does`() async throws {
    try await TransformFixture.with({ ($0.mailboxBound, $0.connectedMailboxBound) = (Self.bound, 500) }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      try await lane.connect(tokens[0])
      for token in tokens { try await lane.request("device:" + token, count: 300) }
      await lane.eventually("the mailbox of the device that is away has its bound") {
        try await lane.waiting(tokens[1]) <= Self.bound + 16
      }
      await lane.eventually("the connected device has all") { try await lane.waiting(tokens[0]) == 300 }
      // Its session ends: the next notifications evict what is too much.
      try await lane.probe.command("HSET", .text(TransformFixture.keys.device(tokens[0])), "p", "")
      try await lane.request("device:" + tokens[0], count: 40)
      await lane.eventually("it has the bound of one that is away") { try await lane.waiting(tokens[0]) <= Self.bound + 16 }
    }
  }
}
