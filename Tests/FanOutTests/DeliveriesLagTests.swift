import EventLoop
import Synchronization
import TestSupport
import Testing
import Worker

@testable import FanOut

/// How far a lane is behind in its partition of `deliveries`.
@Suite struct DeliveriesLagTests {
  private final class Log: Sendable {
    let end = Mutex<Int64?>(10)
    func lag(next: Int64 = 10) -> DeliveriesLag {
      let lag = DeliveriesLag()
      lag.begin(partition: 3, next: next, at: 1_000_000) { [self] in end.withLock { $0 } }
      return lag
    }
  }

  @Test func whatALaneHasNotTakenIsCountedAndAsOldAsTheRecordBeforeAtMost() {
    let (log, lag) = (Log(), DeliveriesLag())
    #expect(lag.standing(at: 1_000_000) == nil)
    lag.told(next: 10, taken: nil, at: 1_000_000)
    #expect(lag.standing(at: 1_000_000) == nil, "it has not begun")
    lag.begin(partition: 3, next: 10, at: 1_000_000) { log.end.withLock { $0 } }
    #expect(lag.standing(at: 1_000_000) == .init(partition: 3, records: 0, milliseconds: 0))
    log.end.withLock { $0 = 15 }
    lag.told(next: nil, taken: nil, at: 1_001_000)
    #expect(lag.standing(at: 1_001_000) == .init(partition: 3, records: 5, milliseconds: 1_000), "it was at the end when it began")
    lag.told(next: 13, taken: 1_000_700, at: 1_002_000)
    #expect(lag.standing(at: 1_002_500) == .init(partition: 3, records: 2, milliseconds: 1_300), "as it was told last")
    lag.told(next: 15, taken: 1_000_900, at: 1_003_000)
    #expect(lag.standing(at: 1_003_000) == .init(partition: 3, records: 0, milliseconds: 0))
    lag.end()
    #expect(lag.standing(at: 1_003_000) == nil)
  }

  @Test func aLaneThatTellsNothingIsSeenToFallBehind() {
    let log = Log()
    let lag = log.lag()
    lag.told(next: 10, taken: 999_000, at: 1_001_000)
    log.end.withLock { $0 = 12 }
    #expect(lag.standing(at: 1_003_999)?.records == 0, "it may just be about to tell")
    #expect(lag.standing(at: 1_004_000) == .init(partition: 3, records: 2, milliseconds: 3_000))
    log.end.withLock { $0 = 500 }
    #expect(lag.standing(at: 1_060_000) == .init(partition: 3, records: 490, milliseconds: 59_000))
    lag.told(next: 500, taken: 1_059_000, at: 1_061_000)
    #expect(lag.standing(at: 1_061_000) == .init(partition: 3, records: 0, milliseconds: 0))
    log.end.withLock { $0 = nil }
    #expect(lag.standing(at: 1_080_000)?.records == 0, "of a consumer that has ended nothing is known")
  }

  @Test func aLaneThatStandsStillShowsHowManyRecordsItHasNotTakenAndForHowLong() async throws {
    try await LaneFixture.with { lane in
      @Sendable func shown(_ name: String) -> Double? {
        lane.metrics.text.split(separator: "\n").first { $0.hasPrefix(name + "{lane=\"fan_out_0\",partition=") }
          .flatMap { $0.split(separator: " ").last.flatMap { Double($0) } }
      }
      await lane.eventually("it is at the end") { _ in
        shown("carillon_fanout_lag_records") == 0 && shown("carillon_fanout_lag_seconds") == 0
      }
      let began = WallClock.milliseconds()
      try await lane.whileTheLaneStandsStill {
        for partition in Int32(0)...1 {
          try await lane.kafka.publish((0..<7).map { TestRecord("\($0)", partition: partition) }, to: lane.topics.deliveries)
        }
        await lane.eventually("what it has not taken is shown, and grows old") { _ in
          shown("carillon_fanout_lag_records") == 7 && shown("carillon_fanout_lag_seconds") ?? 0 > 5
        }
        #expect(shown("carillon_fanout_lag_seconds") ?? .infinity <= Double(WallClock.milliseconds() - began) / 1000 + 5)
      }
      await lane.eventually("it has caught up") { _ in
        shown("carillon_fanout_lag_records") == 0 && shown("carillon_fanout_lag_seconds") == 0
          && lane.metric("carillon_fanout_records_total{verdict=\"unreadable\"}") == 7
      }
      await lane.drain(withinMilliseconds: hangMilliseconds)
      #expect(shown("carillon_fanout_lag_records") == nil && shown("carillon_fanout_lag_seconds") == nil)
    }
  }
}
