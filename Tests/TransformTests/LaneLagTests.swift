import EventLoop
import TestSupport
import Testing
import Worker

/// What a lane shows of how far it is behind.
@Suite struct LaneLagTests {
  @Test func theLagGrowsWhileNothingIsFinishedAndGoesWithThePartitions() async throws {
    try await TransformFixture.with { lane in
      let place = "{topic=\"\(lane.topics.requests)\",partition=\"0\"}"
      func shown(_ name: String) -> Double? {
        lane.metrics.text.split(separator: "\n").first { $0.hasPrefix(name + place + " ") }.flatMap { Double($0.split(separator: " ")[1]) }
      }
      await lane.eventually("its partitions are shown") {
        shown("carillon_lag_seconds") == 0 && lane.metric("carillon_transform_assigned_partitions") == 2
      }
      #expect(lane.metric("carillon_transform_in_flight_limit") == 100_000)
      #expect(lane.metric("carillon_transform_in_flight_bytes_limit") == Double(96 << 20))
      try await lane.whileRedisStandsStill {
        let began = WallClock.milliseconds()
        try await lane.request("device:" + String(repeating: "a", count: 64), count: 3)
        await lane.eventually("the oldest of three is two seconds old") {
          shown("carillon_lag_records") == 3 && shown("carillon_lag_seconds") ?? 0 > 2 && lane.metric("carillon_transform_in_flight") == 3
        }
        #expect(lane.metric("carillon_transform_in_flight_bytes") > 0)
        let seconds = shown("carillon_lag_seconds") ?? .infinity
        #expect(seconds <= Double(WallClock.milliseconds() - began) / 1000 + 2)
      }
      await lane.eventually("it has caught up") { shown("carillon_lag_seconds") == 0 && shown("carillon_lag_records") == 0 }
      #expect(lane.metric("carillon_transform_in_flight_bytes") == 0)
      #expect(lane.metric("carillon_transform_in_flight") == 0 && lane.metric("carillon_transform_missed_total") == 0)
      await lane.drain(withinMilliseconds: hangMilliseconds)
      #expect(shown("carillon_lag_seconds") == nil && shown("carillon_lag_records") == nil)
      #expect(lane.metric("carillon_transform_assigned_partitions") == 0)
    }
  }
}
