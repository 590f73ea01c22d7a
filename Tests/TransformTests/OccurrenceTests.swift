import EventLoop
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// What becomes of occurrences that are due, on a lane.
@Suite struct OccurrenceTests {
  @Test func `an occurrence at a device is for its former person only`() async throws {
    try await TransformFixture.with { lane in
      let tokens = TransformFixture.tokens(in: [(0, 3)])
      let (same, other, nobodys) = (tokens[0], tokens[1], tokens[2])
      try await lane.register(tokens, for: "ada")
      for token in tokens { try await lane.schedule("device:" + token, token.suffix(8).description) }
      await lane.eventually("they are scheduled") { lane.count(.scheduled) == 3 }
      try await lane.register([other], for: "tom", after: 3)
      try await lane.kafka.publish([TestRecord(key: nobodys, nil, partition: 0)], to: lane.topics.devices)
      await lane.eventually("nobody has the last device") { try await lane.committed(lane.topics.devices) == 5 }
      for token in tokens { try await lane.fire(Name(token.suffix(8).description)) }
      await lane.eventually("all have ended") {
        lane.count(.queued) == 1 && lane.count(.filtered) == 1 && lane.count(.unregistered) == 1
      }
      let events = try await lane.kafka.records(of: lane.topics.events, count: 2).map { try JSONValue(parsing: $0.text) }
      let filtered = events.first { $0["device"]?.stringValue == other && $0["reason"] != nil }
      #expect(filtered?["reason"] == "the device belongs to another person now")
      // The entry names the person. So the next one who registers the device does not get it.
      let entry = try #require(try await lane.probe.command("HVALS", .text(TransformFixture.keys.mailbox(same))).array?.first?.bytes)
      let user = Array(entry).withUnsafeBytes { DeliveryEntryView($0)?.userHash }
      #expect(user == NameHash.user("ada"))
    }
  }

  @Test func `a device shows one notification of an apns-id, with a one-off trigger or without`() async throws {
    let (before, after) = (NotificationID(high: 1, low: 1).description, NotificationID(high: 2, low: 2).description)
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      let target = "device:" + token
      try await lane.register([token], for: "ada")
      try await lane.request(target, payload: #"{"aps":{"alert":"now"}}"#, id: before, collapse: "now")
      for (identifier, id) in [("before", before), ("after", after)] { try await lane.schedule(target, identifier, id: id) }
      await lane.eventually("they are scheduled") { lane.count(.scheduled) == 2 }
      for identifier in ["before", "after"] as [Name] { try await lane.fire(identifier) }
      await lane.eventually("the first occurrence is a duplicate") { lane.count(.duplicate) == 1 && lane.count(.queued) == 2 }
      try await lane.request(target, payload: #"{"aps":{"alert":"later"}}"#, id: after, collapse: "later")
      await lane.eventually("the last request is a duplicate") { lane.count(.duplicate) == 2 }
      #expect(try await lane.waiting(token) == 2)
    }
  }

  @Test func `each occurrence of a repeating trigger is shown`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.schedule("device:" + token, "hourly", TransformFixture.hourly(repeats: true))
      await lane.eventually("it is scheduled") { lane.count(.scheduled) == 1 }
      for number in 1...3 {
        try await lane.fire("hourly")
        await lane.eventually("occurrence \(number) is queued") { lane.count(.queued) == number }
        await lane.eventually("the next is due") { try await lane.state(of: "hourly")?.pending?.earliest?.name == Int64(number) + 1 }
      }
    }
  }

  @Test func `a firing that another producer wrote uses up no occurrence, whatever is wrong with it`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.schedule("device:" + token, "hourly", TransformFixture.hourly(repeats: true))
      await lane.eventually("it is scheduled") { lane.count(.scheduled) == 1 }
      let tooLong = #"{"aps":{"alert":"\#(String(repeating: "x", count: 5_000))"}}"#
      try await lane.fire("hourly", payload: tooLong)
      try await lane.fire("hourly", payload: #"{"aps":{"alert":"y"}}"#)
      let changes: [@Sendable (inout [TestRecord.Header]) -> Void] = [
        { $0.append(.init("apns-colour", "red")) }, { $0.append(.init("apns-priority", "11")) }, { $0.append(.init("apns-id", "1")) },
        { $0.replace("apns-id", NotificationID(high: 1, low: 2).description) }, { $0.replace("apns-priority", "5") },
        { $0.replace("apns-expiration", "1") }, { $0.append(.init("when-opened", "remove")) }, { $0.append(.init("operation", "remove")) },
        { $0.append(.init("carillon-origin", "x")) },
        { [topic = lane.topics.requests] in $0.append(.init("carillon-origin", Self.redriven(in: topic))) },
        { $0.change("carillon-firing", #""repeats":true"#, #""repeats":false"#) },
        { $0.change("carillon-firing", #""previous":0"#, #""previous":7"#) },
      ]
      for change in changes { try await lane.fire("hourly", change) }
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 15 }
      #expect(try await lane.state(of: "hourly")?.pending?.earliest?.name == 1)
      #expect(try await lane.waiting(token) == 0)
      try await lane.fire("hourly")
      await lane.eventually("the occurrence is shown") { try await lane.waiting(token) == 1 }
    }
  }

  @Test func `no request may have an occurrence's apns-id, so that none takes its place beforehand`() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.schedule("device:" + token, "hourly", TransformFixture.hourly(repeats: true))
      await lane.eventually("it is scheduled") { lane.count(.scheduled) == 1 }
      let state = try #require(try await lane.state(of: "hourly"))
      let time = try #require(state.pending?.earliest)
      let id = FiringHeader(schedule: state.newest, time, repeats: true).occurrence
      try await lane.request("device:" + token, payload: #"{"aps":{"alert":"x"}}"#, id: id.description)
      await lane.eventually("it is rejected") { lane.count(.rejected) == 1 }
      try await lane.fire("hourly")
      await lane.eventually("the occurrence is shown") { try await lane.waiting(token) == 1 }
    }
  }

  @Test func `a firing that is dated ahead of the worker's clock waits until it is due, whatever time its record has`() async throws {
    try await TransformFixture.with({ $0.clockToleranceMilliseconds = 0 }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.schedule("device:" + token, "once")
      await lane.eventually("it is scheduled") { lane.count(.scheduled) == 1 }
      try await lane.fire("once")
      await lane.eventually("it is finished") { try await lane.committed(lane.topics.requests) == 2 }
      #expect(try await lane.state(of: "once")?.pending != nil)
      #expect(try await lane.waiting(token) == 0)
    }
  }

  @Test func `a schedule whose firing ends worker after worker goes on to its next occurrence`() async throws {
    let requested = WallClock.milliseconds()
    try await TransformFixture.with(before: { lane in
      try await lane.schedule("user:ada", "hourly", TransformFixture.hourly(repeats: true), timestamp: requested)
      let place = SourcePosition(partition: 0, offset: 0, timestamp: requested)
      let id = Array(lane.topics.requests.utf8).withUnsafeBytes { NotificationID.derived(topic: $0, source: place) }
      let first = JournalReference(revision: Revision(place), id: id)
      let due = requested + 3_600_000
      let firing = FiringHeader(schedule: first, .init(zone: "", due: due, name: 1), repeats: true)
      try await lane.fire(firing, "user:ada", "hourly", until: due / 1000 + RequestLimits().longestLifetime)
      // Two workers have ended with the firing, and processed nothing else.
      try await lane.probe.command("HSET", "tries", "q0 ended 1", "2")
    }) { lane in
      await lane.eventually("the firing becomes a dead letter") { lane.count(.deadLettered) == 1 }
      await lane.eventually("all are finished") { try await lane.committed(lane.topics.requests) == 2 }
      let next = try await lane.state(of: "hourly")?.pending?.earliest
      #expect(next?.name == 2)
    }
  }
}

extension OccurrenceTests {
  /// An origin that counts, of a record long ago.
  fileprivate static func redriven(in topic: String) -> String {
    var json = JSONWriter()
    Origin.write(
      cluster: "carillon", SourceCoordinates(topic: topic, partition: 0, offset: 0, timestamp: 0), why: .redrive, to: &json)
    return json.text
  }
}

extension [TestRecord.Header] {
  fileprivate mutating func change(_ name: String, _ text: String, _ other: String) {
    guard let header = first(where: { $0.name == name }) else { return }
    replace(name, String(decoding: header.value ?? [], as: UTF8.self).replacing(text, with: other))
  }

  fileprivate mutating func replace(_ name: String, _ value: String) {
    removeAll { $0.name == name }
    append(.init(name, value))
  }
}
