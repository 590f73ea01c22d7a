import Cryptography
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import FanOut

/// Which actions a notification comes with, and which responses are taken.
@Suite(.serialized) struct CategoriesTests {
  private static func revision(_ offset: Int64) -> Revision {
    Revision(timestamp: 1000 + UInt64(offset), partition: 0, offset: UInt64(offset))
  }

  private static func category(_ actions: String...) -> String {
    let actions = actions.map { #"{"identifier":"\#($0)","title":"T"}"# }.joined(separator: ",")
    return #"{"identifier":"chat","actions":[\#(actions)]}"#
  }

  /// Puts a notification of the category before a device, which connects, and waits until it is sent.
  private static func sent(_ offset: Int64, to token: String, _ lane: LaneFixture, _ redis: RedisProbe) async throws -> (Int, JSONValue) {
    var name = #""chat""#
    let entry = try name.withUTF8 { name in
      try LaneFixture.entry(for: token, offset: offset) { $0.categorySource = UnsafeRawBufferPointer(name) }
    }
    try await lane.put(entry, revision(offset), for: token, in: redis)
    let device = try await lane.connect(token)
    await lane.eventually("it is sent") { !$0.frames("notify", at: device).isEmpty }
    return (device, try #require(await lane.frames("notify", at: device).first))
  }

  /// What the cluster answers to a response.
  private static func answer(_ action: String, _ more: String = "", to notify: JSONValue, from device: Int, _ lane: LaneFixture) async
    -> String
  {
    let answered = await lane.answers(at: device)
    let (receipt, identifier) = (notify["receipt"]?.stringValue ?? "", notify["identifier"]?.stringValue ?? "")
    await lane.send(
      #"{"type":"response","response":"r\#(answered)","receipt":"\#(receipt)","identifier":"\#(identifier)","action":"\#(action)"\#(more)}"#,
      from: device)
    await lane.eventually("it is answered") { $0.answers(at: device) > answered }
    return await lane.frames("refused", at: device).first { $0["response"]?.stringValue == "r\(answered)" }?["reason"]?.stringValue
      ?? "accepted"
  }

  @Test func `a response is taken as long as the key of its receipt verifies`() async throws {
    let (former, next) = (KeyRing.Key([UInt8](repeating: 1, count: 32)), KeyRing.Key([UInt8](repeating: 2, count: 32)))
    let keys = InForce(KeyRing([former]))
    try await LaneFixture.with({ ($0.limits.refreshSeconds, $0.keys) = (3_600, keys) }) { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        let (device, first) = try await Self.sent(1, to: token, lane, redis)
        let open = NotificationAction.defaultIdentifier.text
        #expect(await Self.answer(open, to: first, from: device, lane) == "accepted")
        keys.replace(with: KeyRing([next, former]))
        #expect(await Self.answer(open, to: first, from: device, lane) == "accepted")
        let (again, second) = try await Self.sent(2, to: token, lane, redis)
        keys.replace(with: KeyRing([next]))
        #expect(await Self.answer(open, to: second, from: again, lane) == "accepted")
        #expect(await Self.answer(open, to: first, from: again, lane) == "BadReceipt")
      }
    }
  }

  @Test func `a published category comes with its notification, and a device's own outranks it`() async throws {
    try await LaneFixture.with({ $0.limits.refreshSeconds = 3_600 }) { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        try await KafkaWriter.with(lane.kafka.configuration) { writer in
          func publish(_ value: String?) async throws {
            try await writer.write(TestRecord(key: "com.example.shop", value, partition: 0), to: lane.topics.categories)
          }
          let (unknown, first) = try await Self.sent(1, to: token, lane, redis)
          #expect(first["category"] == nil, "an unknown category has no actions")
          #expect(await Self.answer("reply", to: first, from: unknown, lane) == "UnknownCategory")

          try await publish(#"{"categories":[\#(Self.category("reply", "mute"))]}"#)
          try await publish("{")
          var (found, offset) = (try await Self.sent(2, to: token, lane, redis), 2 as Int64)
          while found.1["category"] == nil, offset < 1_000 {
            offset += 1
            found = try await Self.sent(offset, to: token, lane, redis)
          }
          let (device, notify) = found
          #expect(notify["category"]?["actions"]?.elements?.count == 2)
          #expect(await Self.answer("reply", to: notify, from: device, lane) == "accepted")
          #expect(await Self.answer("like", to: notify, from: device, lane) == "UnknownAction")

          // The device has its own now. What was delivered before keeps the actions that it had.
          await lane.send(#"{"type":"categories","request":"c","categories":[\#(Self.category("like"))]}"#, from: device)
          await lane.eventually("it is accepted") { $0.frames("accepted", at: device).contains { $0["request"] == "c" } }
          #expect(await Self.answer("reply", to: notify, from: device, lane) == "accepted")
          #expect(await Self.answer("like", to: notify, from: device, lane) == "UnknownAction")
          #expect(await Self.answer("like", #","dynamic":true"#, to: notify, from: device, lane) == "accepted")
        }
      }
    }
  }

  @Test func `the newest record of an application counts, and one that cannot be read changes nothing`() throws {
    let published = PublishedCategories(topic: "categories")
    func take(_ application: String, _ value: String?) -> String? {
      var application = application
      return application.withUTF8 { key in
        guard var value else { return published.take(key: UnsafeRawBufferPointer(key), value: nil) }
        return value.withUTF8 { published.take(key: UnsafeRawBufferPointer(key), value: UnsafeRawBufferPointer($0)) }
      }
    }
    func actions(_ identifier: String, of application: String) -> [String]? {
      var (identifier, application) = (identifier, application)
      return identifier.withUTF8 { identifier in
        application.withUTF8 { application in
          published.category(UnsafeRawBufferPointer(identifier), of: UnsafeRawBufferPointer(application))?.category.actions.map(
            \.identifier.text)
        }
      }
    }
    #expect(take("a.b", #"{"categories":[\#(Self.category("x"))]}"#) == nil)
    #expect(actions("chat", of: "a.b") == ["x"] && actions("chat", of: "a.c") == nil && actions("talk", of: "a.b") == nil)
    #expect(actions("", of: "a.b") == nil)
    for wrong in ["{", "{}", #"{"categories":[{}]}"#] { #expect(take("a.b", wrong) != nil) }
    #expect(take("a b", nil) != nil && published.take(key: nil, value: nil) != nil)
    #expect(actions("chat", of: "a.b") == ["x"])
    #expect(take("a.b", #"{"categories":[\#(Self.category("y"))]}"#) == nil)
    #expect(actions("chat", of: "a.b") == ["y"])
    #expect(take("a.b", nil) == nil && actions("chat", of: "a.b") == nil)
  }
}
