import TestSupport
import Testing

@testable import FanOut

@Suite struct AdmissionGateTests {
  @Test func hellosNeverEnterFasterThanTheCeiling() {
    var gate = AdmissionGate(maximumInFlight: 1000, perSecond: 200, waitMilliseconds: 60_000)
    var entered: [UInt64] = []
    var waiting: Set<UInt64> = []
    var next: UInt64 = 0
    // A storm of a thousand, then quiet, then a second one.
    for now in stride(from: UInt64(10_000), to: 30_000, by: 10) {
      if now == 10_000 || now == 20_000 {
        for _ in 0..<1000 {
          next += 1
          switch gate.arrived(next, now: now) {
          case .enter: entered.append(now)
          case .wait: waiting.insert(next)
          case .refuse: Issue.record("there is room for all of them to wait")
          }
        }
      }
      while let generation = gate.next(now: now, isThere: { waiting.contains($0) }) {
        waiting.remove(generation)
        entered.append(now)
      }
      while gate.inFlight > 0 { gate.ended() }
    }
    #expect(entered.count == 2000)
    for start in stride(from: UInt64(10_000), to: 30_000, by: 100) {
      #expect(entered.count { (start..<start + 1000).contains($0) } <= 210, "from \(start)")
    }
    // And no slower: five seconds for each thousand.
    #expect(entered[999] <= 15_000)
  }

  @Test func whoWaitsEntersInOrderAndWhoHasGoneTakesNoTurn() {
    var gate = AdmissionGate(maximumInFlight: 1, perSecond: 1000, waitMilliseconds: 1000)
    #expect(gate.arrived(1, now: 0) == .enter)
    for generation in UInt64(2)...5 { #expect(gate.arrived(generation, now: 0) == .wait) }
    #expect(gate.next(now: 10, isThere: { _ in true }) == nil)
    gate.ended()
    #expect(gate.next(now: 10, isThere: { $0 != 2 }) == 3)
    #expect(gate.next(now: 10, isThere: { _ in true }) == nil)
    gate.ended()
    #expect(gate.next(now: 10, isThere: { _ in true }) == 4)
    #expect(gate.waitingCount == 1)
  }

  @Test func aStormBeyondTheQueueIsToldTimesThatKeepTheCeiling() {
    var gate = AdmissionGate(maximumInFlight: 10, perSecond: 100, waitMilliseconds: 1000)
    var times: [Int] = []
    var waited = 0
    for generation in UInt64(0)..<2000 {
      switch gate.arrived(generation, now: 5000) {
      case .enter: break
      case .wait: waited += 1
      case .refuse(let milliseconds): times.append(milliseconds)
      }
    }
    #expect(waited == 100)
    #expect(times.count >= 1890)
    #expect(times.min() ?? 0 >= 1000)
    for start in stride(from: 0, to: 20_000, by: 500) {
      #expect(times.count { (start..<start + 1000).contains($0) } <= 101)
    }
  }

  @Test func whoWaitsTooLongIsToldWhenToComeBack() throws {
    var gate = AdmissionGate(maximumInFlight: 1, perSecond: 100, waitMilliseconds: 1000)
    #expect(gate.arrived(1, now: 0) == .enter)
    #expect(gate.arrived(2, now: 100) == .wait)
    #expect(gate.overdue(now: 1100) == nil)
    let found = gate.overdue(now: 1101)
    let late = try #require(found)
    #expect(late.generation == 2)
    #expect((1000...AdmissionGate.longestAbsence).contains(late.retryAfter))
    #expect(gate.waitingCount == 0)
  }

  @Test func nobodyIsToldToStayAwayForLongerThanTheBound() {
    var gate = AdmissionGate(maximumInFlight: 1, perSecond: 1, waitMilliseconds: 1000)
    for _ in 0..<10_000 {
      let time = gate.retryAfter(now: 1_000_000)
      #expect((1000...AdmissionGate.longestAbsence).contains(time))
    }
  }
}
