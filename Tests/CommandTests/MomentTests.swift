import JSON
import Notifications
import TestSupport
import Testing
import Worker

@testable import Command

@Suite struct MomentTests {
  private static let now: Int64 = 1_700_000_000_000

  @Test func `a duration is as long as it is written, and the longest is bounded`() {
    #expect(Moment.away(.seconds(60)).before(now: Self.now) == Self.now - 60_000)
    #expect(Moment.away(.seconds(60)).secondsAfter(now: Self.now) == Self.now / 1000 + 60)
    for number in ExtremeNumbers.integers where number >= 0 {
      guard let duration = Duration(written: "\(number)ms") else { continue }
      let moment = Moment.away(duration)
      #expect(moment.before(now: Self.now) <= Self.now && moment.secondsAfter(now: Self.now) >= Self.now / 1000)
      #expect(Duration(written: moment.text) == duration)
    }
  }

  @Test func `no number ends who reads a duration or a time`() {
    for number in ExtremeNumbers.values.map(\.text) {
      for unit in ["", "ms", "s", "m", "h", "d"] {
        guard let moment = Moment(past: number + unit) else { continue }
        _ = (moment.before(now: Self.now), moment.secondsAfter(now: Self.now), moment.text)
      }
    }
  }
}
