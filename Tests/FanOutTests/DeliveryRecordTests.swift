import EventLoop
import Notifications
import Redis

import TestSupport
import Testing
import Worker

@testable import FanOut
@testable import Store

/// What a lane makes of the records of its partition, as a transform worker or somebody else has written them.
@Suite(.serialized) struct DeliveryRecordTests {
  static func record(_ entry: [UInt8], _ revision: Revision, to presence: Presence, key: String) -> TestRecord {
    var buffer = ByteBuffer()
    entry.withUnsafeBytes {
      DeliveryRecord.append(encoded: $0, kind: .notify, revision: revision, generation: presence.generation, to: &buffer)
    }
    var record = TestRecord(key: key, nil, partition: presence.partition)
    record.value = buffer.withUnsafeBytes(Array.init)
    return record
  }

  @Test func eachRecordIsCountedOnceAndADamagedOneIsFoundInTheMailbox() async throws {
    try await LaneFixture.with { lane in
      let token = LaneFixture.token()
      let device = try await lane.connect(token)
      await lane.eventually("it is welcomed") { $0.count("welcome") == 1 }
      try await RedisProbe.with(lane.redis.address) { redis in
        let key = try await lane.deviceKey(token, in: redis)
        let presence = try #require(try await redis.command("HGET", .text(key), "p").bytes.flatMap { Presence($0) })
        let revisions = (0..<2 as Range<UInt64>).map { Revision(timestamp: 1000, partition: 0, offset: $0) }
        let entries = try (0..<2 as Range<Int64>).map { try LaneFixture.entry(for: token, offset: $0) }
        for (revision, entry) in zip(revisions, entries) {
          try await lane.put(entry, revision, for: token, in: redis)
        }
        let intact = entries[0]
        var damaged = entries[1]
        damaged[damaged.count - 1] ^= 1
        let stranger = Presence(partition: presence.partition, generation: presence.generation ^ 1)
        try await lane.kafka.publish(
          [
            Self.record(intact, revisions[0], to: presence, key: token), Self.record(damaged, revisions[1], to: presence, key: token),
            Self.record(intact, revisions[0], to: stranger, key: token),
            TestRecord(key: token, "no delivery", partition: presence.partition),
          ], to: lane.topics.deliveries)
      }
      await lane.eventually("both are shown") { $0.frames("notify", at: device).count == 2 }
      @Sendable func count(_ verdict: String) -> Double { lane.metric("carillon_fanout_records_total{verdict=\"\(verdict)\"}") }
      await lane.eventually("all are counted") { _ in count("unreadable") == 2 && count("no_session") == 1 }
      // The first page of the mailbox may still have been on its way.
      #expect(count("sent") + count("left_to_mailbox") == 1)
      let sum = DeliveryVerdict.allCases.map { count($0.name) }.reduce(0, +)
      #expect(sum == 4)
    }
  }
}
