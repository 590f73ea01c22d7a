import EventLoop
import TestSupport
import Testing

@testable import FanOut

@Suite(.serialized) struct DrainTests {
  @Test func aDrainSpreadsItsDevicesAndServesThemUntilTheyGo() async throws {
    try await LaneFixture.with({
      $0.reconnectsPerSecond = 100
      $0.reconnectMilliseconds = 0
      $0.helloSeconds = 60
    }) { lane in
      for _ in 0..<200 { _ = try await lane.connect() }
      await lane.eventually("all are welcomed") { $0.count("welcome") == 200 }
      let clock = ContinuousClock()
      let began = UInt64(SteadyClock.milliseconds())
      let took = await clock.measure { await lane.drain(withinMilliseconds: 25_000) }
      #expect(took < .seconds(15), "two seconds for the devices, and what follows")
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
      $0.reconnectsPerSecond = 10
      $0.helloSeconds = 60
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
}
