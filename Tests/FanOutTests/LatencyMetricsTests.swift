import EventLoop
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import FanOut
@testable import Store

/// What a lane shows of how old notifications are, and of the mailboxes that it reads.
@Suite(.serialized) struct LatencyMetricsTests {
  private static func count(_ lane: LaneFixture, _ step: String, _ path: DeliveryPath) -> Double {
    lane.metric("carillon_published_to_\(step)_seconds_count{path=\"\(path.name)\"}")
  }

  private static func sum(_ lane: LaneFixture, _ step: String, _ path: DeliveryPath) -> Double {
    lane.metric("carillon_published_to_\(step)_seconds_sum{path=\"\(path.name)\"}")
  }

  private static func revision(secondsAgo seconds: Int64, _ offset: UInt64) -> Revision {
    Revision(timestamp: UInt64(WallClock.milliseconds() - seconds * 1000), partition: 0, offset: offset)
  }

  @Test func whatHasWaitedInAMailboxCountsApartFromWhatIsSentLive() async throws {
    try await LaneFixture.with({ $0.limits.refreshSeconds = 3_600 }) { lane in
      let token = LaneFixture.token()
      _ = try await lane.connect(token)
      await lane.eventually("it is welcomed") { $0.count("welcome") == 1 }
      try await RedisProbe.with(lane.redis.address) { redis in
        for offset in 0..<3 as Range<Int64> {
          let entry = try LaneFixture.entry(for: token, offset: offset)
          try await lane.put(entry, Self.revision(secondsAgo: 3_600, UInt64(offset)), for: token, in: redis)
        }
        let device = try await lane.connect(token)
        await lane.eventually("it finds its mailbox") { $0.frames("notify", at: device).count == 3 }
        await lane.eventually("its acknowledgements are counted") { Self.count($0, "acknowledged", .mailbox) == 3 }
        #expect(Self.count(lane, "sent", .mailbox) == 3 && Self.count(lane, "sent", .live) == 0)
        #expect(Self.sum(lane, "sent", .mailbox) >= 3 * 3_600 && Self.sum(lane, "acknowledged", .mailbox) >= 3 * 3_600)
        // One with three entries, one at least with none.
        let (reads, entries) = (lane.metric("carillon_fanout_mailbox_entries_count"), lane.metric("carillon_fanout_mailbox_entries_sum"))
        #expect(reads >= 2 && entries >= 3)
        await lane.eventually("its mailbox is empty") { _ in (try? await redis.command("KEYS", "m{*").array?.isEmpty) == true }

        let key = try await lane.deviceKey(token, in: redis)
        let presence = try #require(try await redis.command("HGET", .text(key), "p").bytes.flatMap { Presence($0) })
        let revisions = (10..<12).map { Self.revision(secondsAgo: 5, $0) }
        var records: [[UInt8]] = []
        for (number, revision) in revisions.enumerated() {
          records.append(try LaneFixture.entry(for: token, offset: Int64(revision.offset), isRedriven: number == 1))
        }
        try await lane.kafka.publish(
          zip(records, revisions).map { DeliveryRecordTests.record($0, $1, to: presence, key: token) }, to: lane.topics.deliveries)
        await lane.eventually("both are shown") { $0.frames("notify", at: device).count == 5 }
        await lane.eventually("both are acknowledged") { $0.metric("carillon_fanout_frames_total{what=\"acknowledged\"}") == 5 }
      }
      #expect(Self.count(lane, "sent", .live) == 1 && Self.count(lane, "acknowledged", .live) == 1, "the other one comes again")
      for step in ["sent", "acknowledged"] { #expect((5..<3_600).contains(Self.sum(lane, step, .live))) }
      await lane.eventually("their events are told") { $0.metric("carillon_events_total{type=\"delivered\"}") == 5 }
      #expect(lane.metric("carillon_event_bytes_total") > 0)
      #expect(lane.metric("carillon_fanout_connections_limit") == 50_000)
      await lane.eventually("its producers are shown") {
        $0.metric("carillon_producer_queue_records_limit{lane=\"fan_out_0\",producer=\"prompt\"}") == 400_000
      }
    }
  }

  @Test func whatRedisAnswersIsCountedByItsKind() async throws {
    try await LaneFixture.with { lane in
      let token = LaneFixture.token()
      _ = try await lane.connect(token)
      await lane.eventually("it is welcomed") { $0.count("welcome") == 1 }
      try await RedisProbe.with(lane.redis.address) { redis in
        let mailbox = try await lane.mailboxKey(token, in: redis)
        try await redis.command("SET", .text(mailbox), "none")
      }
      _ = try await lane.connect(token)
      await lane.eventually("it is counted") { $0.metric("carillon_redis_errors_total{kind=\"wrong_type\"}") > 0 }
      #expect(lane.metric("carillon_redis_errors_total{kind=\"timed_out\"}") == 0)
    }
  }
}
