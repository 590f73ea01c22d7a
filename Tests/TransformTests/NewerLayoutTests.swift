import Calendars
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// What a newer program has written, and a lane that does not read it.
@Suite struct NewerLayoutTests {
  @Test func `a schedule of a newer program neither fires nor ends, and others do`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      for token in tokens { try await lane.schedule("device:" + token, "a", #"{"type":"timeInterval","timeInterval":30}"#) }
      await lane.eventually("they are scheduled") { lane.count(.scheduled) == 2 }
      let key = "s{0}\(TransformFixture.application)/device:\(tokens[0])"
      let state = try #require(try await lane.probe.command("HGET", .text(key), "a").bytes)
      let newer = NewerLayout.state(state)
      try await lane.probe.command("HSET", .text(key), "a", .bytes(newer))
      await lane.eventually("the other one is shown") { try await lane.waiting(tokens[1]) == 1 }
      await lane.eventually("the lane is not ready, and says why its schedule does not fire") {
        lane.health.unready.contains { $0.name == "schedules" && $0.reason.contains("layout 2 of schedule, and this program reads 1") }
      }
      // A cancel waits, and is no poison.
      let target = "device:" + tokens[0]
      let cancel: [TestRecord.Header] = [
        .init("target", target), .init("apns-topic", TransformFixture.application), .init("apns-collapse-id", "a"),
        .init("operation", "cancel"),
      ]
      try await lane.kafka.publish([TestRecord(key: target, "", headers: cancel, partition: 0)], to: lane.topics.requests)
      await lane.eventually("the cancel waits, and the lane says so") {
        lane.health.unready.contains { $0.name == "layouts" && $0.reason.contains("'a'") }
      }
      await lane.eventually("it was tried more often than a poisoned record is") {
        lane.metric(#"carillon_newer_layouts_total{layout="schedule"}"#) > 8
      }
      #expect(lane.count(.canceled) == 0 && lane.count(.deadLettered) == 0)
      #expect(try await lane.waiting(tokens[0]) == 0)
      #expect(try await lane.probe.command("HGET", .text(key), "a").bytes == newer)
      // A newer program has written it as this one reads it.
      try await lane.probe.command("HSET", .text(key), "a", .bytes(state))
      await lane.eventually("the cancel goes on") { lane.count(.carriedOut) == 1 }
      await lane.eventually("the lane is ready") { lane.health.isReady }
    }
  }

  @Test func `what waits for a newer program holds no other schedule up, though Redis may have lost something`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      let target = "device:" + tokens[0]
      try await lane.schedule(target, "a")
      await lane.eventually("it is scheduled") { lane.count(.scheduled) == 1 }
      let key = "s{0}\(TransformFixture.application)/\(target)"
      let state = try #require(try await lane.probe.command("HGET", .text(key), "a").bytes)
      try await lane.probe.command("HSET", .text(key), "a", .bytes(NewerLayout.state(state)))
      let cancel: [TestRecord.Header] = [
        .init("target", target), .init("apns-topic", TransformFixture.application), .init("apns-collapse-id", "a"),
        .init("operation", "cancel"),
      ]
      try await lane.kafka.publish([TestRecord(key: target, "", headers: cancel, partition: 0)], to: lane.topics.requests)
      // A newer worker has written it. It waits for the cancel.
      try await lane.fire("a")
      await lane.eventually("the cancel waits") { lane.health.unready.contains { $0.name == "layouts" } }
      await lane.eventually("the marker beyond it stands") { try await lane.marker(.readableRequests(0))?.offset == 3 }
      await lane.eventually("the marker stands below it") { try await lane.marker(.requests(0))?.offset == 1 }

      try await lane.probe.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
      let soon = #"{"type":"timeInterval","timeInterval":1}"#
      try await lane.schedule("device:" + tokens[1], "b", soon)
      try await lane.schedule(target, "c", soon)
      await lane.eventually("another device's is shown") { try await lane.waiting(tokens[1]) == 1 }
      await lane.eventually("another one of the device is shown") { try await lane.waiting(tokens[0]) == 1 }
      await lane.eventually("the offset stands below it") { try await lane.committed(lane.topics.requests) == 1 }

      // A newer program has written it as this one reads it.
      try await lane.probe.command("HSET", .text(key), "a", .bytes(state))
      await lane.eventually("the cancel goes on") { lane.count(.carriedOut) == 1 }
      // The cancel, three requests that schedule, and three firings.
      await lane.eventually("all is finished") { try await lane.committed(lane.topics.requests) == 7 }
      #expect(try await lane.waiting(tokens[0]) == 1, "the firing behind the cancel shows nothing")
    }
  }

  @Test func `a registration of a newer program waits, and is not passed over`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register([tokens[0]], for: "ada")
      let value = #"{"device":"\#(tokens[1])","application":"a","since":1,"layout":2}"#
      try await lane.kafka.publish([TestRecord(key: tokens[1], value, partition: 0)], to: lane.topics.devices)
      await lane.eventually("the lane says what it waits for") {
        lane.health.unready.contains {
          $0.name == "layouts" && $0.reason.contains("layout 2 of registration") && $0.reason.contains(lane.topics.devices)
        }
      }
      await lane.eventually("it is tried again and again") { lane.metric(#"carillon_newer_layouts_total{layout="registration"}"#) > 8 }
      #expect(try await lane.committed(lane.topics.devices) == 1, "a newer worker reads it")
      #expect(try await lane.probe.command("EXISTS", .text(TransformFixture.keys.device(tokens[1]))).integer == 0)
    }
  }

  @Test func `a registration of a newer program that Redis has holds nothing up`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register([tokens[0]], for: "ada")
      // A newer fan-out worker has applied it.
      let stamp = RegistrationStamp(digest: 1, partition: 0, offset: 1)
      try await lane.probe.command("HSET", .text(TransformFixture.keys.device(tokens[1])), "r", .bytes(stamp.bytes))
      let value = #"{"device":"\#(tokens[1])","application":"a","since":1,"layout":2}"#
      try await lane.kafka.publish([TestRecord(key: tokens[1], value, partition: 0)], to: lane.topics.devices)
      await lane.eventually("the group goes on") { try await lane.committed(lane.topics.devices) == 2 }
      #expect(lane.metric(#"carillon_newer_layouts_total{layout="registration"}"#) == 0)
    }
  }

  @Test func `a registration goes on though its person has a schedule of a newer program`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register([tokens[0]], for: "ada")
      try await lane.schedule("user:ada", "a")
      await lane.eventually("it is scheduled") { lane.count(.scheduled) == 1 }
      let name = try #require(ScheduleKey(application: Name(TransformFixture.application), target: "user:ada", identifier: "a"))
      let key = TransformFixture.keys.schedules(.all, of: name)
      let state = try #require(try await lane.probe.command("HGET", .text(key), "a").bytes)
      try await lane.probe.command("HSET", .text(key), "a", .bytes(NewerLayout.state(state)))
      try await lane.register([tokens[1]], for: "ada", after: 1)
      #expect(lane.metric(#"carillon_newer_layouts_total{layout="schedule"}"#) > 0, "it is told")
    }
  }

  @Test func `a follow-up of a newer program's state stays`() throws {
    let state = Schedules.State(try Self.state(), floor: [])
    let found = Schedules.FollowUp(state: state, since: 1, isOldestOfTooMany: true)
    #expect(ScheduleFollowUps.step(found, ScheduleRules(), lifetime: 10, now: 1_000) == .wait(until: 61_000))
  }

  private static func state() throws -> [UInt8] {
    var buffer = ByteBuffer()
    let newest = JournalReference(revision: Revision(timestamp: 1, partition: 0, offset: 1), id: NotificationID(high: 1, low: 1))
    try ScheduleRecord(newest: newest, .ended(.evicting)).append(to: &buffer)
    return NewerLayout.state(buffer.withUnsafeBytes(Array.init))
  }

  @Test(arguments: ["journal", "schedule", "devices"]) func `a rebuild refuses what only a newer program reads`(topic: String) async throws
  {
    try await TransformFixture.with { lane in
      try await lane.register(TransformFixture.tokens(in: [(0, 1)]), for: "ada")
      await lane.drain(withinMilliseconds: hangMilliseconds)
      var record = TestRecord(key: TransformFixture.tokens(in: [(1, 1)])[0], #"{"layout":2}"#, partition: 0)
      var name = lane.topics.devices
      switch topic {
      case "journal": (record, name) = (TestRecord("x", headers: [.init("layout", "2")], partition: 0), lane.topics.journal)
      case "schedule":
        (record, name) = (TestRecord(key: "a\nuser:ada\nb", nil, partition: 0), lane.topics.schedule)
        record.value = try Self.state()
      default: break
      }
      try await lane.kafka.publish([record], to: name)
      do {
        try await lane.rebuild()
        Issue.record("Redis lacks something, and nobody was told")
      } catch let error as StoreError {
        guard case .newer = error.code else { throw error }
        #expect(error.message.contains("layout 2 of") && error.message.contains(topic))
      }
      #expect(try await lane.probe.command("EXISTS", .text(TransformFixture.keys.markers(0))).integer == 0, "it has no markers")
    }
  }
}
