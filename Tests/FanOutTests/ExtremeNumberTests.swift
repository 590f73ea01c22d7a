import HTTP
import JSON
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import FanOut
@testable import Store

/// Numbers of devices, and in what a mailbox and a delivery record hold, that no program of ours writes.
@Suite(.serialized) struct ExtremeNumberTests {
  private static let hash = String(repeating: "0a", count: 32)

  /// Each type of frame that a device sends, with all its numbers.
  private static let frames = [
    #"{"type":"ack","deliveries":[1,2],"updated":[1],"dropped":[{"delivery":3,"reason":"known"}]}"#,
    #"{"type":"response","response":"r","receipt":"x","identifier":"i","action":"a","userText":"t","at":1700000000000}"#,
    #"{"type":"settings","request":"1","authorization":{"status":"authorized","alert":1},"locale":"de_AT"}"#,
    #"{"type":"categories","request":2,"categories":[{"identifier":"c","options":[1],"actions":[{"identifier":"a","title":"A","textInput":{"buttonTitle":3}}]}]}"#,
    #"{"type":"link","hash":"\#(hash)","request":4}"#,
    #"{"type":"unregister","request":5}"#,
    #"{"type":6}"#,
  ]

  @Test func `no number in a frame of a device ends the lane`() async throws {
    try await LaneFixture.with({ $0.limits.framesPerSecond = 100_000 }) { lane in
      for frame in Self.frames {
        var device: Int?
        for variant in try ExtremeNumbers.variants(of: frame) {
          // A session ends after many frames that it refuses.
          var isOver = true
          if let device { isOver = await lane.end(of: device) != nil }
          if isOver {
            let next = try await lane.connect()
            await lane.eventually("it is welcomed") { !$0.frames("welcome", at: next).isEmpty || $0.end(of: next) != nil }
            device = next
          }
          if let device { await lane.send(variant.text, from: device) }
        }
      }
      let hello =
        #"{"type":"hello","device":"\#(LaneFixture.token())","application":"com.example.shop","authorization":{"status":"authorized","alert":2}}"#
      for variant in try ExtremeNumbers.variants(of: hello) {
        let device = try await lane.connect(saysHello: false)
        await lane.send(variant.text, from: device)
      }
      let last = try await lane.connect()
      await lane.eventually("the last one is welcomed") { !$0.frames("welcome", at: last).isEmpty }
    }
  }

  @Test func `no number in a mailbox or a delivery record ends the lane`() async throws {
    try await LaneFixture.with { lane in
      let token = LaneFixture.token()
      let device = try await lane.connect(token)
      await lane.eventually("it is welcomed") { $0.count("welcome") == 1 }
      let numbers = ExtremeNumbers.integers.map { UInt64(bitPattern: $0) }
      try await RedisProbe.with(lane.redis.address) { redis in
        let key = try await lane.deviceKey(token, in: redis)
        let presence = try #require(try await redis.command("HGET", .text(key), "p").bytes.flatMap { Presence($0) })
        var records: [TestRecord] = []
        for (place, number) in numbers.enumerated() {
          let revision = Revision(timestamp: number, partition: UInt32(truncatingIfNeeded: number), offset: number)
          let entry = try LaneFixture.entry(for: token, offset: Int64(place))
          try await lane.put(entry, revision, for: token, in: redis)
          records.append(DeliveryRecordTests.record(entry, revision, to: presence, key: token))
        }
        try await lane.kafka.publish(records, to: lane.topics.deliveries)
      }
      // The second session finds those that were left to the mailbox.
      let second = try await lane.connect(token)
      await lane.eventually("all are shown") {
        Set(($0.frames("notify", at: device) + $0.frames("notify", at: second)).compactMap { $0["revision"]?.stringValue }).count
          == numbers.count
      }
    }
  }
}
