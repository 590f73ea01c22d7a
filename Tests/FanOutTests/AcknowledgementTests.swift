import EventLoop
import HTTP
import JSON
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import FanOut
@testable import Store

/// What a lane does with a device that leaves notifications unacknowledged.
@Suite(.serialized) struct AcknowledgementTests {
  private static func revision(_ offset: Int64) -> Revision {
    Revision(timestamp: UInt64(WallClock.milliseconds()), partition: 0, offset: UInt64(offset))
  }

  /// Neither the deadline of an acknowledgement nor a resync helps.
  private static func neverHelp(_ settings: inout FanOutSettings) {
    settings.limits.acknowledgeSeconds = 600
    settings.limits.refreshSeconds = 600
  }

  @Test(arguments: [[10], Set(5...24)] as [Set<Int>])
  func `notifications in a mailbox are shown, whichever before them are never acknowledged`(unacknowledged: Set<Int>) async throws {
    try await LaneFixture.with(Self.neverHelp) { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        for offset in 1...200 as ClosedRange<Int64> {
          try await lane.put(try LaneFixture.entry(for: token, offset: offset), Self.revision(offset), for: token, in: redis)
        }
      }
      let device = try await lane.connect(token, leaving: unacknowledged)
      await lane.eventually("all are shown") { $0.frames("notify", at: device).count == 200 }
      await lane.eventually("the others are acknowledged") {
        Int($0.metric("carillon_fanout_frames_total{what=\"acknowledged\"}")) == 200 - unacknowledged.count
      }
      #expect(await lane.end(of: device) == nil)
    }
  }

  @Test func `notifications that come live are shown, whichever before them is never acknowledged`() async throws {
    try await LaneFixture.with(Self.neverHelp) { lane in
      let token = LaneFixture.token()
      let device = try await lane.connect(token, leaving: [10])
      await lane.eventually("it is welcomed") { $0.count("welcome") == 1 }
      try await RedisProbe.with(lane.redis.address) { redis in
        let key = try await lane.deviceKey(token, in: redis)
        let presence = try #require(try await redis.command("HGET", .text(key), "p").bytes.flatMap { Presence($0) })
        var records: [TestRecord] = []
        for offset in 1...200 as ClosedRange<Int64> {
          let (entry, revision) = (try LaneFixture.entry(for: token, offset: offset), Self.revision(offset))
          try await lane.put(entry, revision, for: token, in: redis)
          records.append(DeliveryRecordTests.record(entry, revision, to: presence, key: token))
        }
        try await lane.kafka.publish(records, to: lane.topics.deliveries)
      }
      await lane.eventually("all are shown") { $0.frames("notify", at: device).count >= 200 }
      await lane.eventually("the others are acknowledged") { $0.metric("carillon_fanout_frames_total{what=\"acknowledged\"}") == 199 }
      #expect(await lane.frames("notify", at: device).count == 200, "each is sent once")
      #expect(await lane.end(of: device) == nil)
    }
  }

  @Test func `a delivery record that arrives after its entry was acknowledged is not sent again`() async throws {
    try await LaneFixture.with(Self.neverHelp) { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        let entries = try (1...2 as ClosedRange<Int64>).map { (try LaneFixture.entry(for: token, offset: $0), Self.revision($0)) }
        try await lane.put(entries[0].0, entries[0].1, for: token, in: redis)
        let device = try await lane.connect(token)
        await lane.eventually("it finds its mailbox") { !$0.frames("notify", at: device).isEmpty }
        await lane.eventually("its mailbox is empty") { _ in (try? await redis.command("KEYS", "m{*").array?.isEmpty) == true }
        let key = try await lane.deviceKey(token, in: redis)
        let presence = try #require(try await redis.command("HGET", .text(key), "p").bytes.flatMap { Presence($0) })
        let records = entries.map { DeliveryRecordTests.record($0.0, $0.1, to: presence, key: token) }
        try await lane.put(entries[1].0, entries[1].1, for: token, in: redis)
        try await lane.kafka.publish(records, to: lane.topics.deliveries)
        await lane.eventually("the second is shown") { $0.frames("notify", at: device).count >= 2 }
        await lane.eventually("both records are counted") { lane in
          lane.metric("carillon_fanout_records_total{verdict=\"sent\"}")
            + lane.metric("carillon_fanout_records_total{verdict=\"left_to_mailbox\"}")
            == 2
        }
        let ids = await lane.frames("notify", at: device).map { $0["id"]?.stringValue }
        #expect(ids.count == 2 && Set(ids).count == 2)
      }
    }
  }

  @Test func `what Redis could not delete is not sent again in its session, and is deleted as soon as that is possible`() async throws {
    try await LaneFixture.with(Self.neverHelp) { lane in
      let token = LaneFixture.token()
      let device = try await lane.connect(token)
      await lane.eventually("it is welcomed") { $0.count("welcome") == 1 }
      try await RedisProbe.with(lane.redis.address) { redis in
        let key = try await lane.deviceKey(token, in: redis)
        let presence = try #require(try await redis.command("HGET", .text(key), "p").bytes.flatMap { Presence($0) })
        let entries = try (1...2 as ClosedRange<Int64>).map { (try LaneFixture.entry(for: token, offset: $0), Self.revision($0)) }
        let records = entries.map { DeliveryRecordTests.record($0.0, $0.1, to: presence, key: token) }
        for (entry, revision) in entries { try await lane.put(entry, revision, for: token, in: redis) }
        try await redis.command("ACL", "SETUSER", "default", "-hdel")
        // The first record comes again after its acknowledgement, as it does when a transform worker judges again.
        for (records, acknowledged) in [([records[0]], 1.0), ([records[0], records[1]], 2)] {
          try await lane.kafka.publish(records, to: lane.topics.deliveries)
          await lane.eventually("\(acknowledged) are acknowledged") {
            $0.metric("carillon_fanout_frames_total{what=\"acknowledged\"}") == acknowledged
          }
        }
        #expect(try await redis.command("HLEN", .text(try await lane.mailboxKey(token, in: redis))).integer == 2)
        try await redis.command("ACL", "SETUSER", "default", "+hdel")
        await lane.eventually("its mailbox is empty") { _ in (try? await redis.command("KEYS", "m{*").array?.isEmpty) == true }
        #expect(await lane.frames("notify", at: device).count == 2, "each is sent once")
        #expect(await lane.end(of: device) == nil)
      }
    }
  }

  @Test func `a session ends at its acknowledgement's deadline, long before it resyncs`() async throws {
    try await LaneFixture.with({
      $0.limits.acknowledgeSeconds = 1
      $0.limits.refreshSeconds = 3_600
    }) { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        try await lane.put(try LaneFixture.entry(for: token, offset: 1), Self.revision(1), for: token, in: redis)
      }
      let device = try await lane.connect(token, leaving: [1])
      await lane.eventually("it is closed") { $0.end(of: device)?.code.rawValue == 4016 }
    }
  }
}
