import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// Removals with the scope `pending`, on a lane: they end what is scheduled, and nothing that was published.
@Suite struct PendingRemovalTests {
  private static func removePending(_ identifier: String, _ token: String, _ lane: TransformFixture) async throws {
    let headers: [TestRecord.Header] = [
      .init("target", "device:" + token), .init("apns-topic", TransformFixture.application), .init("operation", "remove"),
    ]
    let value = #"{"identifiers":["\#(identifier)"],"scope":"pending"}"#
    try await lane.kafka.publish([TestRecord(key: token, value, headers: headers, partition: 0)], to: lane.topics.requests)
  }

  @Test func `a notification that waits for its device stays`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.request("device:" + token, collapse: "order")
      await lane.eventually("it waits") { lane.count(.queued) == 1 }
      try await Self.removePending("order", token, lane)
      await lane.eventually("both are finished") { try await lane.committed(lane.topics.requests) == 2 }
      #expect(lane.count(.expired) == 1, "nothing was pending")
      let entry = try #require(try await lane.probe.command("HVALS", .text(TransformFixture.keys.mailbox(token))).array?.first?.bytes)
      #expect(Array(entry).withUnsafeBytes { DeliveryEntryView($0)?.kind } == .notify)
    }
  }

  @Test func `a schedule ends`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.schedule("device:" + token, "order")
      await lane.eventually("it is scheduled") { lane.count(.scheduled) == 1 }
      try await Self.removePending("order", token, lane)
      await lane.eventually("both are finished") { try await lane.committed(lane.topics.requests) == 2 }
      #expect(try await lane.state(of: "order")?.phase == .ended(.canceled))
    }
  }
}
