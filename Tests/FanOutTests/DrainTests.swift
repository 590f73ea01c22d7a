import EventLoop
import JSON
import Notifications
import Redis
import TestSupport
import Testing

@testable import FanOut

@Suite(.serialized) struct DrainTests {
  @Test(.onlyInAll("it is about time: how the devices that go are spread")) func aDrainSpreadsItsDevicesAndServesThemUntilTheyGo()
    async throws
  {
    try await LaneFixture.with({
      $0.limits.reconnectsPerSecond = 100
      $0.limits.reconnectMilliseconds = 0
      $0.limits.helloSeconds = 60
    }) { lane in
      for _ in 0..<200 { _ = try await lane.connect() }
      await lane.eventually("all are welcomed") { $0.count("welcome") == 200 }
      let began = UInt64(SteadyClock.milliseconds())
      try await endsByItself("the drain, two seconds for the devices and what follows") {
        await lane.drain(withinMilliseconds: 4 * hangMilliseconds)
      }
      await lane.eventually("all have ended") { $0.ends.count == 200 }
      let ends = await lane.ends
      #expect(ends.allSatisfy { $0.code == 4007 })
      let back = ends.map(\.comesBack).sorted()
      let most = back.indices.map { start in back[start...].prefix { $0 < back[start] + 1000 }.count }.max() ?? 0
      // A machine that stands still for a while goes on with all that was due meanwhile.
      let times = ends.map(\.ended).sorted()
      let pause = zip(times, times.dropFirst()).map { $1 - $0 }.max() ?? 0
      #expect(most <= 120 + Int(pause) / 10)
      // Served until then: the last goes two seconds after the beginning.
      #expect((times.last ?? 0) > began + 1500)
    }
  }

  @Test func aDrainWithoutTimeTellsItsDevicesWhenToComeBack() async throws {
    try await LaneFixture.with({
      $0.limits.reconnectsPerSecond = 10
      $0.limits.helloSeconds = 60
    }) { lane in
      for _ in 0..<40 { _ = try await lane.connect() }
      await lane.eventually("all are welcomed") { $0.count("welcome") == 40 }
      await lane.drain(withinMilliseconds: 0)
      await lane.eventually("all have ended") { $0.ends.count == 40 }
      let back = await lane.ends.map { $0.comesBack - $0.ended }.sorted()
      #expect((back.last ?? 0) - (back.first ?? 0) > 3000)
      let most = back.indices.map { start in back[start...].prefix { $0 < back[start] + 1000 }.count }.max() ?? 0
      #expect(most <= 12)
    }
  }

  @Test func `a session that was told to go away reads no further page of its mailbox`() async throws {
    try await LaneFixture.with({
      $0.limits.window = 4
      $0.limits.refreshSeconds = 600
    }) { lane in
      let token = try await lane.registered()
      try await RedisProbe.with(lane.redis.address) { redis in
        for offset in 1...100 as ClosedRange<Int64> {
          let revision = Revision(timestamp: 1000, partition: 0, offset: UInt64(offset))
          try await lane.put(try LaneFixture.entry(for: token, offset: offset), revision, for: token, in: redis)
        }
      }
      let device = try await lane.connect(token, leaving: [1, 2, 3, 4])
      await lane.eventually("its window is full") { $0.frames("notify", at: device).count == 4 }
      @Sendable func pages() -> Double { lane.metric("carillon_fanout_mailbox_entries_count") }
      let before = pages()
      async let drained: Void = lane.drain(withinMilliseconds: 10_000)
      await lane.eventually("it is told to go away") { !$0.frames("goaway", at: device).isEmpty }
      // The last one keeps the session open for a while.
      let numbers = await lane.frames("notify", at: device).dropLast().compactMap { $0["delivery"]?.integerValue }
      await lane.send(#"{"type":"ack","deliveries":\#(numbers)}"#, from: device)
      await drained
      #expect(pages() == before)
      #expect(await lane.frames("notify", at: device).count == 4)
    }
  }
}
