import EventLoop
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import FanOut
@testable import Store

/// What waits for the devices of an application that is stopped and started again, on a lane.
@Suite(.serialized) struct StoppedApplicationTests {
  private static func revision(_ offset: UInt64) -> Revision { Revision(timestamp: 1000, partition: 0, offset: offset) }

  /// What somebody who stops and starts the application writes.
  private actor Switch {
    private var stops = ApplicationStops()
    private let lane: LaneFixture
    private let writer: KafkaWriter

    init(_ lane: LaneFixture, _ writer: KafkaWriter) { (self.lane, self.writer) = (lane, writer) }

    func make(_ change: ApplicationStops.Change, at timestamp: Int64 = WallClock.milliseconds()) async throws {
      let value = try #require(stops.value(change, forgettingBefore: 0))
      stops = try value.withUnsafeBytes { try ApplicationStops($0, timestamp: timestamp) }
      let record = TestRecord(key: "com.example.shop", String(decoding: value, as: UTF8.self), partition: 0, timestamp: timestamp)
      try await writer.write(record, to: lane.topics.applications)
    }
  }

  /// Gives `body` what stops the application, and a connection to Redis.
  private static func with(_ lane: LaneFixture, _ body: @Sendable (Switch, RedisProbe) async throws -> Void) async throws {
    try await KafkaWriter.with(lane.kafka.configuration) { writer in
      try await RedisProbe.with(lane.redis.address) { redis in try await body(Switch(lane, writer), redis) }
    }
  }

  @Test func whatWaitedForItsDeviceEndsOnceAndWhatIsPublishedAfterTheStartIsSent() async throws {
    try await LaneFixture.with { lane in
      let token = try await lane.registered()
      try await Self.with(lane) { stop, redis in
        let mailbox = try await lane.mailboxKey(token, in: redis)
        for offset in 1...3 as ClosedRange<Int64> {
          try await lane.put(try LaneFixture.entry(for: token, offset: offset), Self.revision(UInt64(offset)), for: token, in: redis)
        }
        try await stop.make(.stop(by: "eve", reason: "prices"))
        let device = try await lane.connect(token)
        await lane.eventually("what waited is gone, or the lane had not heard of it yet") { _ in
          (try? await redis.command("EXISTS", .text(mailbox)).integer) == 0
        }
        let shown = await lane.frames("notify", at: device).count
        // Whatever comes now comes to a lane that has heard of it, unless it was sent before: so once more.
        try await lane.put(try LaneFixture.entry(for: token, offset: 4), Self.revision(4), for: token, in: redis)
        await lane.eventually("the lane has heard of it") { lane in
          let device = try? await lane.connect(token)
          await lane.eventually("it is gone") { _ in (try? await redis.command("EXISTS", .text(mailbox)).integer) == 0 }
          guard let device, lane.frames("notify", at: device).isEmpty else {
            try? await lane.put(try LaneFixture.entry(for: token, offset: 4), Self.revision(4), for: token, in: redis)
            return false
          }
          return true
        }
        #expect(shown == 0 || shown == 3)
        try await lane.put(try LaneFixture.entry(for: token, offset: 5), Self.revision(5), for: token, in: redis)
        let start = WallClock.milliseconds() + 1
        try await stop.make(.start(by: "eve"), at: start)
        await lane.eventually("the start has come") { _ in WallClock.milliseconds() > start }
        // The lane may not have heard of the start: what is published after it is sent all the same.
        try await lane.put(try LaneFixture.entry(for: token, offset: 6), Self.revision(6), for: token, in: redis)
        _ = try await lane.connect(token)
        // To the former session, where that has not noticed yet that it is over.
        let (stopped, later) = ("\(Self.revision(5))", "\(Self.revision(6))")
        await lane.eventually("what was published after the start is sent") {
          $0.frames("notify").contains { $0["revision"]?.stringValue == later }
        }
        await lane.eventually("and what was not has ended") { _ in (try? await redis.command("EXISTS", .text(mailbox)).integer) == 0 }
        let sent = await lane.frames("notify").compactMap { $0["revision"]?.stringValue }
        #expect(!sent.contains(stopped) && sent.filter { $0 == later }.count == 1, "\(sent)")
      }
    }
  }

  @Test func eachThatWaitedHasOneEventAndARemovalIsSent() async throws {
    try await LaneFixture.with { lane in
      let token = try await lane.registered()
      try await Self.with(lane) { stop, redis in
        let now = WallClock.milliseconds()
        // All of it was published before the stop began: it waits, and the stop ends it.
        try await stop.make(.stop(by: "eve", reason: "prices"), at: now + 3_000_000)
        try await stop.make(.start(by: "eve"), at: now + 3_600_000)
        let mailbox = try await lane.mailboxKey(token, in: redis)
        await lane.eventually("the lane has heard of it") { lane in
          try? await lane.put(try LaneFixture.entry(for: token, offset: 1), Self.revision(1), for: token, in: redis)
          guard let device = try? await lane.connect(token) else { return false }
          await lane.eventually("it is gone") { _ in (try? await redis.command("EXISTS", .text(mailbox)).integer) == 0 }
          return lane.frames("notify", at: device).isEmpty
        }
        // More than a window, and a removal among them.
        for offset in 10..<110 as Range<Int64> {
          let entry = try LaneFixture.entry(for: token, offset: offset, removing: offset == 50)
          try await lane.put(entry, Self.revision(UInt64(offset)), for: token, in: redis)
        }
        let device = try await lane.connect(token)
        await lane.eventually("all of it is gone") { _ in (try? await redis.command("EXISTS", .text(mailbox)).integer) == 0 }
        #expect(await lane.frames("notify", at: device).isEmpty)
        // A former connection may have looked into the mailbox before this one took its place.
        #expect(await lane.frames("remove").count == 1)
        let expected = 99
        let events = try await lane.kafka.admin.ends(of: [TopicPartition(lane.topics.events, 0), TopicPartition(lane.topics.events, 1)])
        let all = try await lane.filtered(among: events.values.reduce(0) { $0 + $1.count })
        let offsets = try all.map { try JSONValue(parsing: $0.text)["source"]?["offset"]?.integerValue ?? -1 }.filter { $0 >= 10 }
        #expect(offsets.sorted() == Array(10..<110).filter { $0 != 50 } && offsets.count == expected)
        for event in all {
          let value = try JSONValue(parsing: event.text)
          #expect(value["reason"] == "ApplicationStopped" && value["detail"] == "prices" && value["device"]?.stringValue == token)
        }
      }
    }
  }
}
