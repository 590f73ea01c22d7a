import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// What somebody else has put in the place of the schedules in Redis: it is mended, or told by its key, and stops no other schedule.
@Suite struct DamagedScheduleTests {
  private static func schedule(_ token: String, _ identifier: String, seconds: Double, _ lane: TransformFixture) async throws {
    let headers: [TestRecord.Header] = [
      .init("target", "device:\(token)"), .init("apns-topic", TransformFixture.application), .init("apns-collapse-id", identifier),
      .init("trigger", #"{"type":"timeInterval","timeInterval":\#(seconds)}"#),
    ]
    try await lane.kafka.publish(
      [TestRecord(key: "device:\(token)", #"{"aps":{"alert":"x"}}"#, headers: headers, partition: 0)], to: lane.topics.requests)
  }

  @Test func `due times that were replaced by something else are restored from the schedules, and told meanwhile`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 1), (1, 1)])
      try await lane.register(tokens, for: "ada")
      for token in tokens { try await Self.schedule(token, "soon", seconds: 30, lane) }
      try await Self.schedule(tokens[0], "later", seconds: 3_600, lane)
      await lane.eventually("they are scheduled") { lane.count(.scheduled) == 3 }
      let key = TransformFixture.keys.dueTimes(0, partition: 0)
      // Without SCAN the due times cannot be restored.
      try await lane.probe.command("ACL", "SETUSER", "default", "-scan")
      try await lane.probe.command("DEL", .text(key))
      try await lane.probe.command("SET", .text(key), "x")
      await lane.eventually("what is due in another bucket is shown") { try await lane.waiting(tokens[1]) == 1 }
      await lane.eventually("the lane is not ready, and names the key and the partition") {
        !lane.health.isReady && lane.health.json.contains(key) && lane.health.json.contains("partitions 0 do not fire")
      }
      #expect(try await lane.waiting(tokens[0]) == 0)
      try await lane.probe.command("ACL", "SETUSER", "default", "+scan")
      await lane.eventually("what is due is shown") { try await lane.waiting(tokens[0]) == 1 }
      await lane.eventually("the lane is ready") { lane.health.isReady }
      let left = try await lane.probe.command("ZRANGE", .text(key), 0, -1).array ?? []
      #expect(left.count == 1, "only what is due later has a due time: \(left)")
    }
  }

  @Test func `a state of another type is told by its key, stops no other schedule, and is asked for at a pace`() async throws {
    try await TransformFixture.with({ $0.store.inspectionMilliseconds = 500 }) { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      try await Self.schedule(tokens[0], "a", seconds: 30, lane)
      try await Self.schedule(tokens[1], "b", seconds: 30, lane)
      await lane.eventually("they are scheduled") { lane.count(.scheduled) == 2 }
      let key = "s{0}\(TransformFixture.application)/device:\(tokens[0])"
      try await lane.probe.command("COPY", .text(key), "lost")
      try await lane.probe.command("SET", .text(key), "x")
      await lane.eventually("the lane is not ready, and names the key") { !lane.health.isReady && lane.health.json.contains(key) }
      await lane.eventually("the other one is shown") { try await lane.waiting(tokens[1]) == 1 }
      let (calls, looks) = (try await lane.calls(), try await lane.looks())
      await lane.eventually("Redis was inspected a few times") { try await lane.looks() > looks + 8 }
      #expect(try await lane.calls() - calls < 40, "the inspections keep a pace, too")
      try await lane.probe.command("RENAME", "lost", .text(key))
      await lane.eventually("it is shown") { try await lane.waiting(tokens[0]) == 1 }
      await lane.eventually("the lane is ready") { lane.health.isReady }
    }
  }

  @Test func `a schedule whose firings have no effect is fired ever more rarely`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await Self.schedule(token, "a", seconds: 30, lane)
      await lane.eventually("it is scheduled") { lane.count(.scheduled) == 1 }
      // A cancel of all that ended before it canceled anything.
      let floor =
        Revision(timestamp: UInt64(Timestamp.latest), partition: 0, offset: 1_000).withBytes { Array($0) }
        + [UInt8](repeating: 1, count: 16)
      try await lane.probe.command("HSET", .text("s{0}\(TransformFixture.application)/device:\(token)"), "", .bytes(floor))
      let times = try await lane.kafka.records(of: lane.topics.requests, count: 15).dropFirst().compactMap(\.timestamp)
        .sorted()
      let pauses = zip(times, times.dropFirst()).map { $1 - $0 }
      #expect(pauses.count >= 13 && pauses.allSatisfy { $0 >= IgnoredFirings.shortest })
      #expect(pauses[12] >= 8 * IgnoredFirings.shortest, "\(pauses)")
      await lane.eventually("the lane is ready") { lane.health.isReady }
    }
  }

  @Test func `a state that cannot be read is told by its key until it is put back or canceled`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 2)])
      try await lane.register(tokens, for: "ada")
      for token in tokens { try await Self.schedule(token, "a", seconds: 30, lane) }
      await lane.eventually("they are scheduled") { lane.count(.scheduled) == 2 }
      let keys = tokens.map { "s{0}\(TransformFixture.application)/device:\($0)" }
      let state = try #require(try await lane.probe.command("HGET", .text(keys[0]), "a").bytes)
      for key in keys { try await lane.probe.command("HSET", .text(key), "a", "x") }
      await lane.eventually("the lane is not ready, and tells of two schedules") {
        !lane.health.isReady && keys.contains { lane.health.json.contains($0) } && lane.health.json.contains("and 1 more")
      }
      try await lane.probe.command("HSET", .text(keys[0]), "a", .bytes(Array(state)))
      let target = "device:" + tokens[1]
      let cancel: [TestRecord.Header] = [
        .init("target", target), .init("apns-topic", TransformFixture.application), .init("apns-collapse-id", "a"),
        .init("operation", "cancel"),
      ]
      try await lane.kafka.publish([TestRecord(key: target, "", headers: cancel, partition: 0)], to: lane.topics.requests)
      await lane.eventually("the first one is shown") { try await lane.waiting(tokens[0]) == 1 }
      await lane.eventually("the lane is ready") { lane.health.isReady }
    }
  }

  @Test func `a due time that nobody of the cluster has written neither fires early nor loses the schedule`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await Self.schedule(token, "a", seconds: 30, lane)
      await lane.eventually("it is scheduled") { lane.count(.scheduled) == 1 }
      let key = TransformFixture.keys.dueTimes(0, partition: 0)
      let name = try await lane.probe.command("ZRANGE", .text(key), 0, 0).array?.first?.bytes ?? []
      try await lane.probe.command("ZADD", .text(key), "2.5", .bytes(name), "1", "no schedule")
      await lane.eventually("it is shown") { try await lane.waiting(token) == 1 }
      await lane.eventually("nothing is due any more") { try await lane.probe.command("EXISTS", .text(key)).integer == 0 }
    }
  }

  @Test(.onlyInAll("without a sign the markers are compared every fifteen seconds"))
  func aLossThatOnlyAComparisonFindsHoldsTheFiringsUntilItIsMadeUpFor() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.request("device:" + token, bytes: 1)
      await lane.eventually("its marker stands") { try await lane.marker(.requests(0))?.offset == 1 }
      // One bucket goes back, and no connection breaks.
      try await lane.probe.command(
        "HSET", .text(TransformFixture.keys.markers(2)), .text(MarkedPartition.requests(0).field), .bytes(Marker.beginning.bytes))
      await lane.eventually("the lane rewinds") { lane.metric("carillon_transform_rewinds_total") >= 1 }
      try await Self.schedule(token, "later", seconds: 1, lane)
      await lane.eventually("a later schedule fires") { try await lane.waiting(token) == 2 }
    }
  }
}
