import HTTP
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import FanOut
@testable import Store

/// What the person's settings make of the notifications that a lane hands over.
@Suite(.serialized) struct SettingsTests {
  private static func revision(_ offset: Int64) -> Revision {
    Revision(timestamp: 1000 + UInt64(offset), partition: 0, offset: UInt64(offset))
  }

  /// A lane with a device that is connected, and what puts notifications before it.
  private struct Scene {
    let lane: LaneFixture
    let redis: RedisProbe
    let writer: KafkaWriter
    let token: String
    let device: Int

    static func with(
      _ change: @escaping @Sendable (inout FanOutSettings) -> Void = { _ in }, _ body: @Sendable (Scene) async throws -> Void
    ) async throws {
      // No session resyncs with its mailbox by itself, so that a test knows which one finds an entry.
      let change: @Sendable (inout FanOutSettings) -> Void = {
        $0.limits.refreshSeconds = 3_600
        change(&$0)
      }
      try await LaneFixture.with(change) { lane in
        let token = LaneFixture.token()
        let device = try await lane.connect(token)
        await lane.eventually("it is welcomed") { !$0.frames("welcome", at: device).isEmpty }
        try await RedisProbe.with(lane.redis.address) { redis in
          try await KafkaWriter.with(lane.kafka.configuration) { writer in
            try await body(Scene(lane: lane, redis: redis, writer: writer, token: token, device: device))
          }
        }
      }
    }

    /// Changes the device's settings, and waits until that is accepted.
    func set(_ authorization: String) async {
      let accepted = await lane.frames("accepted", at: device).count
      await lane.send(#"{"type":"settings","request":"s","authorization":\#(authorization)}"#, from: device)
      await lane.eventually("the settings are accepted") { $0.frames("accepted", at: device).count > accepted }
    }

    /// Puts a notification into the mailbox, with a delivery record for the session, and waits until it has ended.
    func publish(_ offset: Int64) async throws {
      let entry = try LaneFixture.entry(for: token, offset: offset)
      try await lane.put(entry, SettingsTests.revision(offset), for: token, in: redis)
      let presence = try #require(Presence(try await redis.command("HGET", .text(lane.deviceKey(token, in: redis)), "p").bytes ?? []))
      try await writer.write(
        DeliveryRecordTests.record(entry, SettingsTests.revision(offset), to: presence, key: token), to: lane.topics.deliveries)
      try await ends()
    }

    /// Waits until the mailbox is empty.
    func ends() async throws {
      let mailbox = try await lane.mailboxKey(token, in: redis)
      await lane.eventually("the mailbox is empty") { _ in (try? await redis.command("EXISTS", .text(mailbox)).integer) == 0 }
    }

    /// How the device was to present a notification; nil where it was not sent.
    func presentation(_ offset: Int64) async -> JSONValue? {
      await lane.frames("notify").first { $0["revision"]?.stringValue == "\(SettingsTests.revision(offset))" }?["presentation"]
    }

    /// The events of this type, as JSON.
    func events(_ type: String) async throws -> [JSONValue] {
      let ends = try await lane.kafka.admin.ends(of: [TopicPartition(lane.topics.events, 0), TopicPartition(lane.topics.events, 1)])
      return try await lane.kafka.records(of: lane.topics.events, count: ends.values.reduce(0) { $0 + $1.count })
        .filter { $0.header("ce_type") == "carillon.\(type).v1" }.map { try JSONValue(parsing: $0.text) }
    }
  }

  @Test func `a device that changes without end is closed, and others are not`() async throws {
    // The hello that registers the device counts once here.
    try await Scene.with({ ($0.changesPerMinute, $0.zoneChangeWeight) = (4, 1) }) { scene in
      let other = try await scene.lane.connect(LaneFixture.token())
      await scene.lane.eventually("it is welcomed") { !$0.frames("welcome", at: other).isEmpty }
      for _ in 0..<3 { await scene.set(#"{"status":"denied"}"#) }
      // Where a new minute has begun, the device has as many again.
      await scene.lane.send(#"{"type":"settings","request":"s","authorization":{"status":"denied"}}"#, times: 4, from: scene.device)
      await scene.lane.eventually("it is closed") { $0.end(of: scene.device)?.code.rawValue == 4012 }
      #expect(await scene.lane.end(of: other) == nil)
    }
  }

  @Test func `a change of the zone counts many times, and the same zone again once`() async throws {
    try await Scene.with({ ($0.changesPerMinute, $0.zoneChangeWeight) = (30, 9) }) { scene in
      func zone(_ name: String) async {
        let accepted = await scene.lane.frames("accepted", at: scene.device).count
        await scene.lane.send(#"{"type":"settings","request":"s","timeZone":"\#(name)"}"#, from: scene.device)
        await scene.lane.eventually("it is answered") {
          $0.frames("accepted", at: scene.device).count > accepted || $0.end(of: scene.device) != nil
        }
      }
      // One for the hello, three for a zone, and three for the same one.
      for _ in 0..<4 { await zone("Europe/Rome") }
      #expect(await scene.lane.end(of: scene.device) == nil)
      // Where a new minute has begun, the device has as many again.
      for _ in 0..<4 {
        await zone("Asia/Tokyo")
        await zone("Europe/Rome")
      }
      await scene.lane.eventually("it is closed") { $0.end(of: scene.device)?.code.rawValue == 4012 }
    }
  }

  @Test func `a change of the settings counts for the next delivery record of the session`() async throws {
    try await Scene.with { scene in
      try await scene.publish(1)
      #expect(await scene.presentation(1) == ["banner", "lockScreen", "list"], "none told counts as authorized")
      await scene.set(#"{"status":"denied"}"#)
      try await scene.publish(2)
      #expect(await scene.presentation(2) == nil)
      await scene.set(#"{"status":"provisional"}"#)
      try await scene.publish(3)
      #expect(await scene.presentation(3) == ["list", "quietly"])
      let filtered = try await scene.events("filtered")
      #expect(filtered.map { $0["source"]?["offset"] } == [2])
      #expect(filtered.first?["reason"] == "the person does not allow notifications on the device")
    }
  }

  @Test func `what waited is judged by the settings of the hello that finds it`() async throws {
    try await Scene.with { scene in
      try await scene.lane.put(try LaneFixture.entry(for: scene.token, offset: 1), Self.revision(1), for: scene.token, in: scene.redis)
      _ = try await scene.lane.connect(scene.token, authorization: #"{"status":"authorized","alert":false,"lockScreen":false}"#)
      try await scene.ends()
      #expect(await scene.presentation(1) == ["list"])
      try await scene.lane.put(try LaneFixture.entry(for: scene.token, offset: 2), Self.revision(2), for: scene.token, in: scene.redis)
      let off = #"{"status":"authorized","alert":false,"lockScreen":false,"notificationCenter":false}"#
      _ = try await scene.lane.connect(scene.token, authorization: off)
      try await scene.ends()
      #expect(await scene.presentation(2) == nil)
      #expect(try await scene.events("filtered").map { $0["reason"] } == ["the device's settings let nothing of it be shown"])
    }
  }

  @Test func `quiet hours hold for all devices of the person, in each lane, from when they are set`() async throws {
    try await Scene.with { scene in
      @Sendable func connect(_ user: String?) async throws -> Int {
        let device = try await scene.lane.connect(user: user)
        await scene.lane.eventually("it is welcomed") { !$0.frames("welcome", at: device).isEmpty }
        return device
      }
      @Sendable func set(_ quiet: String, from device: Int) async {
        let answered = await scene.lane.answers(at: device)
        await scene.lane.send(#"{"type":"settings","request":"q","quiet":\#(quiet)}"#, from: device)
        await scene.lane.eventually("it is answered") { $0.answers(at: device) > answered }
      }
      @Sendable func quiet(_ user: String) async throws -> JSONValue? {
        await scene.lane.frames("welcome", at: try await connect(user)).first?["quiet"]
      }
      @Sendable func isQuiet(_ user: String) async -> Bool { (try? await quiet(user)) != nil }
      let (ada, nobody) = (try await connect("ada"), try await connect(nil))
      await set(#"{"from":"00:00","to":"00:00","timeZone":"Moon/Tycho"}"#, from: ada)
      #expect(await scene.lane.frames("refused", at: ada).map { $0["field"] } == ["quiet.timeZone"])
      await set(#"{"from":"00:00","to":"00:00","timeZone":"UTC"}"#, from: nobody)
      #expect(await scene.lane.frames("refused", at: nobody).map { $0["field"] } == ["quiet"])
      await set(#"{"from":"00:00","to":"00:00","days":[1,2,3,4,5,6,7],"timeZone":"Europe/Rome"}"#, from: ada)
      #expect(await scene.lane.frames("accepted", at: ada).count == 1)
      await scene.lane.eventually("the lane hears of it") { _ in await isQuiet("ada") }
      #expect(try await quiet("ada") == ["from": "00:00", "to": "00:00", "timeZone": "Europe/Rome"])
      #expect(try await quiet("bob") == nil)
      await set("{}", from: ada)
      await scene.lane.eventually("the lane hears of it") { _ in await !isQuiet("ada") }
      // A change of the quiet hours is none of the registration.
      #expect(try await scene.events("settings-changed").isEmpty)
    }
  }

  @Test(arguments: [("filtered", "the device shows nothing of it"), ("canceled", "removed")])
  func `a device has the last word, and its event says so`(reason: String, detail: String) async throws {
    try await Scene.with { scene in
      try await scene.lane.put(try LaneFixture.entry(for: scene.token, offset: 1), Self.revision(1), for: scene.token, in: scene.redis)
      let again = try await scene.lane.connect(scene.token, leaving: [1])
      await scene.lane.eventually("it is sent") { !$0.frames("notify", at: again).isEmpty }
      let delivery = await scene.lane.frames("notify", at: again).first?["delivery"]?.integerValue ?? 0
      await scene.lane.send(#"{"type":"ack","dropped":[{"delivery":\#(delivery),"reason":"\#(reason)"}]}"#, from: again)
      try await scene.ends()
      #expect(try await scene.events(reason).map { $0["reason"]?.stringValue } == [detail])
      #expect(try await scene.events("delivered").isEmpty)
    }
  }
}
