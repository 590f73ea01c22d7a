import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// Which requests end a schedule.
@Suite struct ScheduleEndTests {
  private static let target = "user:ada"

  private static func record(_ headers: [(String, String)], value: String) -> TestRecord {
    var all: [TestRecord.Header] = [.init("target", target), .init("apns-topic", TransformFixture.application)]
    for (name, value) in headers { all.append(.init(name, value)) }
    return TestRecord(key: target, value, headers: all, partition: 0)
  }

  private static func scheduling(_ headers: (String, String)...) -> TestRecord {
    record(headers + [("trigger", #"{"type":"timeInterval","timeInterval":600}"#)], value: #"{"aps":{"alert":"x"}}"#)
  }

  private static func cancel(_ identifier: String) -> TestRecord {
    record([("operation", "cancel")], value: #"{"identifiers":["\#(identifier)"]}"#)
  }

  private static func pending(_ lane: TransformFixture) async throws -> Int {
    let key = TransformFixture.keys.schedules(
      .pending, of: try #require(ScheduleKey(application: Name(TransformFixture.application), target: Name(target), identifier: "x")))
    return Int(try await lane.probe.command("ZCARD", .text(key)).integer ?? -1)
  }

  @Test func `a cancel finds what is pending under its identifier as given, and else under the apns-id in lower case`() async throws {
    let id = "6F9619FF-8B86-D011-B42D-00CF4FC964FF"
    try await TransformFixture.with { lane in
      // All of them are in one batch, so the cancel finds the schedule before it only by their order.
      try await lane.kafka.publish([Self.scheduling(("apns-id", id)), Self.cancel(id)], to: lane.topics.requests)
      await lane.eventually("the apns-id is canceled") { lane.count(.carriedOut) == 1 }
      #expect(try await Self.pending(lane) == 0)
      try await lane.kafka.publish(
        [Self.scheduling(("apns-collapse-id", id)), Self.scheduling(("apns-collapse-id", id.lowercased())), Self.cancel(id)],
        to: lane.topics.requests)
      await lane.eventually("the collapse id is canceled") { lane.count(.carriedOut) == 2 }
      #expect(try await Self.pending(lane) == 1)
      try await lane.kafka.publish([Self.cancel(id), Self.cancel(id)], to: lane.topics.requests)
      await lane.eventually("the other one is canceled, and then nothing is pending") {
        lane.count(.carriedOut) == 3 && lane.count(.expired) == 1 && lane.count(.scheduled) == 3
      }
      #expect(try await Self.pending(lane) == 0)
    }
  }

  @Test func `a cancel of all ends what is pending, although another record had its apns-id`() async throws {
    let id = "6f9619ff-8b86-d011-b42d-00cf4fc964ff"
    let cancel = Self.record([("apns-id", id), ("operation", "cancel")], value: #"{"all":true}"#)
    try await TransformFixture.with { lane in
      try await lane.kafka.publish(
        [Self.scheduling(("apns-id", id)), cancel, Self.scheduling(("apns-collapse-id", "x")), cancel, cancel], to: lane.topics.requests)
      await lane.eventually("two cancels end what is pending, and the last one finds nothing") {
        lane.count(.carriedOut) == 2 && lane.count(.expired) == 1
      }
      #expect(try await Self.pending(lane) == 0 && lane.count(.duplicate) == 0)
    }
  }

  @Test func `a newer request that is due at a time ends what is pending, although its own lifetime is over`() async throws {
    try await TransformFixture.with { lane in
      try await lane.kafka.publish(
        [Self.scheduling(("apns-collapse-id", "x")), Self.scheduling(("apns-collapse-id", "x"), ("apns-expiration", "1"))],
        to: lane.topics.requests)
      await lane.eventually("the newer one has expired") { lane.count(.scheduled) == 1 && lane.count(.expired) == 1 }
      #expect(try await Self.pending(lane) == 0)
      let events = try await lane.kafka.records(of: lane.topics.events, count: 2)
      #expect(
        Set(events.compactMap { $0.header("ce_type") })
          == Set([Outcome.collapsed, .expired].compactMap { $0.cloudEventsType?.description }))
    }
  }
}
