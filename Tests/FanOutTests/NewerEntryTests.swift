import Notifications
import Redis
import TestSupport
import Testing

@testable import FanOut
@testable import Store

/// What a worker does with mailbox entries that a newer one has written.
@Suite struct NewerEntryTests {
  /// More than the window, and fewer than a session keeps in flight.
  private static let count = 70

  @Test func `entries of a newer version stay in the mailbox, are counted once, and delay nothing`() async throws {
    try await LaneFixture.with({ $0.window = 32 }) { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        let mailbox = try await lane.mailboxKey(token, in: redis)
        func revision(_ offset: Int) -> Revision { Revision(timestamp: 1000, partition: 0, offset: UInt64(offset)) }
        var newer = try LaneFixture.entry(for: token, offset: 1)
        newer[NotificationID.byteCount] += 1 << 4
        for offset in 1...Self.count { try await lane.put(newer, revision(offset), for: token, in: redis) }
        try await lane.put(try LaneFixture.entry(for: token, offset: 100), revision(100), for: token, in: redis)
        // A damaged entry of the worker's own version is removed.
        var damaged = try LaneFixture.entry(for: token, offset: 101)
        damaged[40] ^= 1
        try await lane.put(damaged, revision(101), for: token, in: redis)

        let device = try await lane.connect(token)
        await lane.eventually("the entry behind them is shown") { $0.frames("notify", at: device).count == 1 }
        await lane.eventually("only they are left") { _ in
          (try? await redis.command("HLEN", .text(mailbox)).integer) == Int64(Self.count)
        }
        for offset in 1...Self.count {
          let field = revision(offset).withBytes { Array($0) }
          #expect(try await redis.command("HGET", .text(mailbox), .bytes(field)).bytes == newer)
        }
        #expect(lane.metric(#"carillon_fanout_mailbox_damage_total{part="newer_entry"}"#) == Double(Self.count))
        #expect(lane.metric(#"carillon_fanout_mailbox_damage_total{part="entry"}"#) == 1)
      }
    }
  }
}
