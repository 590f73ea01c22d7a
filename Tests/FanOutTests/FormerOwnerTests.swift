import JSON
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import FanOut

/// What lies in a mailbox for somebody who does not have the device any more, or for another application.
@Suite struct FormerOwnerTests {
  /// A page may find the entry before the registration removes it. Both emit the same outcome, whether or not the entry has expired.
  @Test(arguments: [false, true])
  func `an entry for another application is filtered with the reason, also after its expiration`(isExpired: Bool) async throws {
    try await LaneFixture.with { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        let mailbox = try await lane.mailboxKey(token, in: redis)
        let entry = try LaneFixture.entry(for: token, offset: 1, application: "com.example.former") {
          if isExpired { $0.expiration = 1 }
        }
        try await lane.put(entry, Revision(timestamp: 1000, partition: 0, offset: 1), for: token, in: redis)
        let again = try await lane.connect(token)
        await lane.eventually("it is gone") { _ in (try? await redis.command("EXISTS", .text(mailbox)).integer) == 0 }
        #expect(await lane.frames("notify", at: again).isEmpty)
      }
      // The registration of the device is an event, too.
      let filtered = try await lane.filtered(among: 2)
      #expect(try filtered.map { try JSONValue(parsing: $0.text)["reason"] } == ["the device is registered for another application now"])
    }
  }
}
