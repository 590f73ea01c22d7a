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
  /// The bytes of the entry of a plain request to a device.
  private static func entry(for token: String, offset: Int64) throws -> [UInt8] {
    var buffer = ByteBuffer()
    var headers = RequestHeaders()
    var (target, topic, value, requests) = ("device:\(token)", "com.example.shop", #"{"aps":{"alert":"x"}}"#, "requests")
    try target.withUTF8 { target in
      try topic.withUTF8 { topic in
        try value.withUTF8 { value in
          try requests.withUTF8 { requests in
            (headers.target, headers.topic) = (UnsafeRawBufferPointer(target), UnsafeRawBufferPointer(topic))
            let record = RequestRecord(
              key: UnsafeRawBufferPointer(target), value: UnsafeRawBufferPointer(value), headers: headers,
              topic: UnsafeRawBufferPointer(requests),
              position: SourcePosition(partition: 0, offset: offset, timestamp: WallClock.milliseconds()))
            guard case .accepted(let view) = RequestView.read(record, limits: RequestLimits()) else { throw ClusterFailure("no request") }
            try DeliveryEntry(view).append(to: &buffer)
          }
        }
      }
    }
    return buffer.withUnsafeBytes(Array.init)
  }

  private static func record(_ entry: [UInt8], _ revision: Revision, to presence: Presence, key: String) -> TestRecord {
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
        let key = try #require(try await redis.command("KEYS", .text("d{*}\(token)")).array?.first?.text)
        let presence = try #require(try await redis.command("HGET", .text(key), "p").bytes.flatMap { Presence($0) })
        let revisions = (0..<2 as Range<UInt64>).map { Revision(timestamp: 1000, partition: 0, offset: $0) }
        let entries = try (0..<2 as Range<Int64>).map { try Self.entry(for: token, offset: $0) }
        for (revision, entry) in zip(revisions, entries) {
          try await redis.command("HSET", .text("m" + key.dropFirst()), .bytes(revision.withBytes { Array($0) }), .bytes(entry))
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
      let sum = DeliveryVerdict.allCases.map { count($0.rawValue) }.reduce(0, +)
      #expect(sum == 4)
    }
  }
}
