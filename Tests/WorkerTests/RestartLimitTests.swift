import TestSupport
import Testing
import Worker

@Suite struct RestartLimitTests {
  @Test func aFourthFailureWithinFiveMinutesIsTheLast() {
    var limit = RestartLimit()
    #expect(limit.failed(at: 0) == 1)
    #expect(limit.failed(at: 0) == 2)
    #expect(limit.failed(at: 299_999) == 3)
    #expect(limit.failed(at: 299_999) == nil)
  }

  @Test func aRestartFiveMinutesAgoCountsNoMore() {
    var limit = RestartLimit()
    for now: Int64 in [0, 100_000, 200_000] { _ = limit.failed(at: now) }
    #expect(limit.failed(at: 300_000) == 3)
    #expect(limit.failed(at: 399_999) == nil)
    #expect(limit.failed(at: 400_000) == 3)
  }

  @Test(arguments: 0..<(isComplete ? 50 : 10) as Range<UInt64>) func itIsTheNaiveModelInEveryHistory(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let (maximum, span) = (Int.random(in: 0...4, using: &random), Int64.random(in: 1...1_000, using: &random))
    var limit = RestartLimit(maximum: maximum, withinMilliseconds: span)
    var (now, restarts): (Int64, [Int64]) = (Int64.random(in: 0...1_000_000, using: &random), [])
    for _ in 0..<200 {
      now += Bool.random(using: &random) ? 0 : Int64.random(in: 0...span, using: &random)
      let number = restarts.filter { $0 > now - span }.count + 1
      let answer = limit.failed(at: now)
      #expect(answer == (number > maximum ? nil : number), "at \(now), seed \(seed)")
      if number <= maximum { restarts.append(now) }
    }
  }
}
