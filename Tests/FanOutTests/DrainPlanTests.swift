import TestSupport
import Testing

@testable import FanOut

@Suite struct DrainPlanTests {
  /// When each session has to go and its device reconnects, in milliseconds from the beginning.
  private func play(_ count: Int, perSecond: Int, over: Int, serving: Int) -> [(generation: UInt64, end: Int, back: Int)] {
    var plan = DrainPlan(0..<UInt64(count), perSecond: perSecond, overMilliseconds: over, servingMilliseconds: serving)
    var played: [(generation: UInt64, end: Int, back: Int)] = []
    var elapsed = 0
    while !plan.isDone, elapsed <= 1_000_000 {
      for goAway in plan.due(at: elapsed) { played.append((goAway.generation, elapsed, elapsed + goAway.reconnectAfter)) }
      elapsed += 10
    }
    return played
  }

  private func mostInASecond(_ times: [Int]) -> Int {
    let sorted = times.sorted()
    var (most, first) = (0, 0)
    for (index, time) in sorted.enumerated() {
      while sorted[first] <= time - 1000 { first += 1 }
      most = max(most, index - first + 1)
    }
    return most
  }

  @Test(arguments: [(1, 200), (10, 200), (300, 200), (5000, 200), (50_000, 2000)])
  func returnsStayUnderTheCeiling(_ count: Int, _ perSecond: Int) {
    let played = play(count, perSecond: perSecond, over: 1000, serving: 17_000)
    #expect(Set(played.map(\.generation)).count == count)
    // A tenth more than the ceiling: two neighbours may fall to either end of their shares.
    #expect(mostInASecond(played.map(\.back)) <= perSecond + max(2, perSecond / 10))
  }

  @Test func devicesAreServedUntilTheirMoment() {
    let played = play(1000, perSecond: 100, over: 1000, serving: 17_000)
    #expect(played.allSatisfy { $0.back - $0.end <= 20 })
    #expect((played.map(\.end).max() ?? 0) > 9_000)
  }

  @Test func whoseMomentLiesBehindTheTimeThereIsAreToldToWait() {
    let played = play(1000, perSecond: 100, over: 1000, serving: 2000)
    #expect((played.map(\.end).max() ?? 0) <= 2000)
    #expect((played.map(\.back).max() ?? 0) > 9_000)
    #expect(played.count == 1000)
  }

  @Test func fewDevicesAreSpreadOverTheLeastWindow() {
    let played = play(4, perSecond: 1000, over: 800, serving: 10_000)
    #expect((played.map(\.back).max() ?? 0) >= 600)
    #expect((played.map(\.back).max() ?? 0) <= 820)
  }

  @Test func withoutTimeAllGoAtOnce() {
    let played = play(100, perSecond: 10, over: 0, serving: 0)
    #expect(played.count == 100)
    #expect(played.allSatisfy { $0.end == 0 })
  }
}
