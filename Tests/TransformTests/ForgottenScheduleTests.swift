import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// What the topic `schedule` keeps of schedules that have ended, or that never were.
@Suite struct ForgottenScheduleTests {
  private static let target = "device:" + TransformFixture.tokens(in: [(0, 1)])[0]

  private static func record(_ identifier: String?, _ headers: [(String, String)], value: String? = nil) -> TestRecord {
    var all: [TestRecord.Header] = [.init("target", target), .init("apns-topic", TransformFixture.application)]
    if let identifier { all.append(.init("apns-collapse-id", identifier)) }
    for (name, value) in headers { all.append(.init(name, value)) }
    return TestRecord(key: target, value, headers: all, partition: 0)
  }

  private static func scheduling(_ identifier: String, seconds: Int) -> TestRecord {
    record(identifier, [("trigger", #"{"type":"timeInterval","timeInterval":\#(seconds)}"#)], value: #"{"aps":{"alert":"x"}}"#)
  }

  private static func cancel(_ identifier: String) -> TestRecord { record(identifier, [("operation", "cancel")], value: "") }

  /// The newest value of each identifier in the topic: nil for a tombstone.
  private static func newest(_ lane: TransformFixture) async throws -> [Name: ScheduleRecord?] {
    let count = try await lane.kafka.admin.ends(of: [TopicPartition(lane.topics.schedule, 0)]).values.first?.count ?? 0
    var newest: [Name: ScheduleRecord?] = [:]
    for record in try await lane.kafka.records(of: lane.topics.schedule, count: count) {
      guard let key = record.key?.withUnsafeBytes({ ScheduleKey($0) }) else { continue }
      newest[key.identifier] = .some(record.value?.withUnsafeBytes { ScheduleRecord($0) })
    }
    return newest
  }

  @Test func `a cancel of what nobody has scheduled leaves no record, and bars an older request nevertheless`() async throws {
    try await TransformFixture.with { lane in
      try await lane.kafka.publish(
        [Self.cancel("unknown"), Self.cancel("unknown"), Self.scheduling("known", seconds: 600)], to: lane.topics.requests)
      await lane.eventually("they are judged") { lane.count(.expired) == 2 && lane.count(.scheduled) == 1 }
      await lane.eventually("the topic has the schedule") { try await Self.newest(lane)["known"] != nil }
      #expect(try await Self.newest(lane).keys.sorted() == ["known"])
    }
  }

  @Test func `the topic forgets an ended schedule when Redis does, and not what is used again`() async throws {
    try await TransformFixture.with({ $0.longestLifetime = 45 }) { lane in
      try await lane.kafka.publish(
        [Self.scheduling("ended", seconds: 600), Self.scheduling("again", seconds: 600), Self.cancel("ended"), Self.cancel("again")],
        to: lane.topics.requests)
      await lane.eventually("they are canceled") { try await Self.newest(lane)["again"]??.phase == .ended(.canceled) }
      try await lane.kafka.publish([Self.scheduling("again", seconds: 600)], to: lane.topics.requests)
      await lane.eventually("one is forgotten") { try await Self.newest(lane)["ended"] == .some(nil) }
      await lane.eventually("and Redis has nothing of it") {
        try await lane.probe.command("HKEYS", "s{0}\(TransformFixture.application)/\(Self.target)").array?.compactMap(\.text) == ["again"]
      }
      await lane.eventually("nothing is left to follow up") {
        try await lane.probe.command("EXISTS", .text(TransformFixture.keys.followUps(0, partition: 0))).integer == 0
      }
      #expect(try await Self.newest(lane)["again"]??.pending != nil, "what is used again stays")
    }
  }

  @Test func `of a target's ended schedules the topic keeps the newest ones, however many there were`() async throws {
    try await TransformFixture.with { lane in
      let count = 80
      // Names of one length, since those that end in one millisecond are in the order of their names.
      for number in 100..<100 + count {
        try await lane.kafka.publish([Self.scheduling("\(number)", seconds: 600), Self.cancel("\(number)")], to: lane.topics.requests)
      }
      let kept = Set((100 + count - 64..<100 + count).map { Name("\($0)") })
      await lane.eventually("64 are left") {
        let newest = try await Self.newest(lane)
        return newest.count == count && Set(newest.filter { $0.value != nil }.keys) == kept
      }
    }
  }

  @Test func `each that is too much is evicted once, and no other`() async throws {
    try await TransformFixture.with { lane in
      try await lane.kafka.publish((10..<80).map { Self.scheduling("\($0)", seconds: 600) }, to: lane.topics.requests)
      let evicted = (10..<16).map { Name("\($0)") }
      await lane.eventually("the oldest have ended") {
        let newest = try await Self.newest(lane)
        return newest.count == 70 && newest.filter { $0.value?.phase == .ended(.evicted) }.keys.sorted() == evicted.sorted()
      }
      await lane.eventually("Redis has them as told") {
        let told = try await lane.probe.command(
          "ZCOUNT", .text(TransformFixture.keys.followUps(0, partition: 0)), "-inf", "2000000000000")
        let pending = try await lane.probe.command("ZCARD", "n{0}\(TransformFixture.application)/\(Self.target)")
        return told.integer == 6 && pending.integer == 64
      }
      let told = try await lane.kafka.records(of: lane.topics.events, count: 6)
      #expect(told.allSatisfy { $0.header("ce_type") == Outcome.evicted.cloudEventsType?.description })
      #expect(Set(told.compactMap { $0.header("ce_id") }).count == 6)
    }
  }

  @Test func `a cancel of all ends what is pending, each with its event, and what follows stays`() async throws {
    try await TransformFixture.with { lane in
      let all = Self.record(nil, [("operation", "cancel")], value: #"{"all":true}"#)
      try await lane.kafka.publish(
        (0..<20).map { Self.scheduling("\($0)", seconds: 600) } + [
          all, Self.scheduling("after", seconds: 600), Self.scheduling("7", seconds: 600),
        ],
        to: lane.topics.requests)
      await lane.eventually("it is carried out") { lane.count(.carriedOut) == 1 }
      await lane.eventually("what is newer is pending") {
        let newest = try await Self.newest(lane)
        return newest.filter { $0.value?.pending != nil }.keys.sorted() == ["7", "after"] && newest.count == 21
      }
      let told = try await lane.kafka.records(of: lane.topics.events, count: 20)
      #expect(Set(told.compactMap { $0.header("ce_subject") }).count == 20)
      #expect(told.allSatisfy { $0.header("ce_type") == Outcome.canceled.cloudEventsType?.description })
      try await lane.kafka.publish([all, all], to: lane.topics.requests)
      await lane.eventually("the rest goes, and then nothing is pending") { lane.count(.carriedOut) == 2 && lane.count(.expired) == 1 }
    }
  }
}
