import Cryptography
import EventLoop
import JSON
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import FanOut
@testable import Store

/// What a newer program has written, and a lane that does not read it.
@Suite struct NewerLayoutTests {
  private static func revision(_ offset: Int64) -> Revision {
    Revision(timestamp: UInt64(WallClock.milliseconds()), partition: 0, offset: UInt64(offset))
  }

  @Test func `entries of a newer program stay in the mailbox, and all others are shown, from pages and live`() async throws {
    // As many as a window, before the others.
    try await LaneFixture.with({ $0.limits.window = 4 }) { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        var newer: [[UInt8]] = []
        for offset in 1...20 as ClosedRange<Int64> {
          var entry = try LaneFixture.entry(for: token, offset: offset)
          if offset <= 6 || offset == 15 {
            entry = NewerLayout.entry(entry)
            newer.append(entry)
          }
          try await lane.put(entry, Self.revision(offset), for: token, in: redis)
        }
        let device = try await lane.connect(token)
        await lane.eventually("all others are shown") { $0.frames("notify", at: device).count == 13 }
        let key = try await lane.deviceKey(token, in: redis)
        let presence = try #require(try await redis.command("HGET", .text(key), "p").bytes.flatMap { Presence($0) })
        // A live record of a newer program, and one of this one after it.
        var records: [TestRecord] = []
        for offset in 21...22 as ClosedRange<Int64> {
          var entry = try LaneFixture.entry(for: token, offset: offset)
          if offset == 21 {
            entry = NewerLayout.entry(entry)
            newer.append(entry)
          }
          let revision = Self.revision(offset)
          try await lane.put(entry, revision, for: token, in: redis)
          records.append(DeliveryRecordTests.record(entry, revision, to: presence, key: token))
        }
        try await lane.kafka.publish(records, to: lane.topics.deliveries)
        await lane.eventually("the live one is shown") { $0.frames("notify", at: device).count == 14 }
        let mailbox = try await lane.mailboxKey(token, in: redis)
        await lane.eventually("the shown ones are deleted") { _ in (try? await redis.command("HLEN", .text(mailbox)).integer) == 8 }
        let kept = try await redis.command("HVALS", .text(mailbox)).array?.compactMap(\.bytes) ?? []
        #expect(Set(kept) == Set(newer))
        #expect(lane.metric(#"carillon_fanout_records_total{verdict="newer"}"#) == 1)
        #expect(lane.metric(#"carillon_newer_layouts_total{layout="mailbox_entry"}"#) >= 8)
        #expect(lane.metric(#"carillon_fanout_mailbox_damage_total{part="entry"}"#) == 0)
        #expect(await lane.end(of: device) == nil)
      }
    }
  }

  /// A refusal would end the response at its device.
  @Test func `a response with a receipt of a newer program is not answered, and its device keeps it`() async throws {
    try await LaneFixture.with { lane in
      let device = try await lane.connect()
      await lane.eventually("it is welcomed") { $0.count("welcome") == 1 }
      // Signed with the lane's key.
      let key = KeyRing.Key([1, 2, 3]).derived(for: "carillon receipt")
      func receipt(_ version: Int) -> String {
        let bytes = [UInt8(version)] + [UInt8](repeating: 1, count: 99)
        let code = bytes.withUnsafeBytes { HMACKey(key).withAuthenticationCode($0) { Array($0.prefix(16)) } }
        return (bytes + code).withUnsafeBytes { Base64.withText(url: $0) { String(decoding: $0, as: UTF8.self) } }
      }
      for (response, version) in [("newer", Layout.receipt.newest + 1), ("damaged", Layout.receipt.newest)] {
        await lane.send(
          #"{"type":"response","response":"\#(response)","receipt":"\#(receipt(version))","identifier":"i","action":"a"}"#, from: device)
      }
      await lane.eventually("the damaged one is refused") { !$0.frames("refused", at: device).isEmpty }
      #expect(await lane.answers(at: device) == 1)
      #expect(await lane.frames("refused", at: device).first?["response"] == "damaged")
      #expect(lane.metric(#"carillon_newer_layouts_total{layout="receipt"}"#) == 1)
      #expect(await lane.end(of: device) == nil)
    }
  }
}
