import JSON
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import FanOut

/// What lies in a mailbox for somebody who does not have the device any more, or for another application.
@Suite struct FormerOwnerTests {
  /// It may be found by a session's page before the registration has taken it away, and both say the same of it.
  @Test func whatASessionFindsForAnotherApplicationIsFilteredWithTheReason() async throws {
    try await LaneFixture.with { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        let mailbox = try await lane.mailboxKey(token, in: redis)
        let entry = try LaneFixture.entry(for: token, offset: 1, application: "com.example.former")
        try await lane.put(entry, Revision(timestamp: 1000, partition: 0, offset: 1), for: token, in: redis)
        let again = try await lane.connect(token)
        await lane.eventually("it is gone") { _ in (try? await redis.command("EXISTS", .text(mailbox)).integer) == 0 }
        #expect(await lane.frames("notify", at: again).isEmpty)
      }
      // The device's registration is told, too.
      let told = try await lane.filtered(among: 2)
      #expect(try told.map { try JSONValue(parsing: $0.text)["reason"] } == ["the device is registered for another application now"])
    }
  }
}
