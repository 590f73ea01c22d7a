import JSON
import Notifications
import Redis
import TestSupport
import Testing

@testable import FanOut
@testable import Store

/// What a device is told of notifications that its full mailbox has evicted.
@Suite(.serialized) struct MailboxGapTests {
  private static func revision(_ offset: UInt64) -> Revision { Revision(timestamp: 1000, partition: 0, offset: offset) }

  @Test func aGapIsToldUntilTheDeviceHasAcknowledgedSomethingBehindItAndThenNoMore() async throws {
    try await LaneFixture.with { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        let key = try await lane.deviceKey(token, in: redis)
        let (from, to) = (Self.revision(1), Self.revision(5))
        let gap = from.withBytes { Array($0) } + to.withBytes { Array($0) }
        try await redis.command("HSET", .text(key), "g", .bytes(gap))
        for session in 1...2 {
          let device = try await lane.connect(token)
          await lane.eventually("session \(session) is told") { !$0.frames("gap", at: device).isEmpty }
          let told = await lane.frames("gap", at: device)
          #expect(told.count == 1)
          #expect(told.first?["from"]?.stringValue == "\(from)" && told.first?["to"]?.stringValue == "\(to)")
        }
        #expect(try await redis.command("HGET", .text(key), "g").bytes == gap, "nothing was acknowledged")

        try await lane.put(try LaneFixture.entry(for: token, offset: 6), Self.revision(6), for: token, in: redis)
        let acknowledging = try await lane.connect(token)
        await lane.eventually("it acknowledges") { !$0.frames("notify", at: acknowledging).isEmpty }
        #expect(await lane.frames("gap", at: acknowledging).count == 1)
        await lane.eventually("the gap is forgotten") { _ in (try? await redis.command("HEXISTS", .text(key), "g").integer) == 0 }

        try await lane.put(try LaneFixture.entry(for: token, offset: 7), Self.revision(7), for: token, in: redis)
        let last = try await lane.connect(token)
        await lane.eventually("it is welcomed, and sent what lies behind") { !$0.frames("notify", at: last).isEmpty }
        #expect(await lane.frames("gap", at: last).isEmpty)
      }
    }
  }
}
