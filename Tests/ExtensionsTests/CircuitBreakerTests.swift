import TestSupport
import Testing

@testable import Extensions

/// The breaker, by random histories beside a model that keeps every call and looks at all of them each time.
@Suite struct CircuitBreakerTests {
  private struct Call {
    let isTrial: Bool
    var success: Bool?
  }

  private struct Model {
    let limit: Int
    var row = 0
    var openUntil: UInt64?
    var trials = 0
    var isTrying = false

    func isOpen(_ now: UInt64) -> Bool { isTrying || openUntil.map { now < $0 } ?? false }

    mutating func ended(_ call: Call, _ success: Bool, _ now: UInt64) {
      if call.isTrial {
        isTrying = false
        trials = success ? 0 : trials + 1
        row = 0
        openUntil = success ? nil : now + min(30_000, 1_000 << UInt64(min(trials, 10)))
      } else if openUntil == nil, !isTrying {
        row = success ? 0 : row + 1
        if limit > 0, row >= limit { openUntil = now + 1_000 }
      }
    }
  }

  @Test(arguments: 0..<(isComplete ? 40 : 8)) func itOpensAfterFailuresInARowAndOneCallShowsWhenItWorksAgain(seed: Int) {
    var random = SeededRandom(seed: UInt64(seed))
    let limit = Int.random(in: 0...4, using: &random)
    var breaker = CircuitBreaker(limit: limit)
    var model = Model(limit: limit)
    var calls: [Call] = []
    var now: UInt64 = 0
    for _ in 0..<500 {
      now += UInt64([0, 1, 300, 1_000, 20_000].randomElement(using: &random) ?? 0)
      #expect(breaker.isOpen(at: now) == model.isOpen(now))
      if Bool.random(using: &random) {
        guard !breaker.isOpen(at: now) else { continue }
        let isTrial = breaker.begin()
        #expect(isTrial == (model.openUntil != nil))
        model.isTrying = isTrial
        calls.append(Call(isTrial: isTrial))
      } else if let index = calls.indices.randomElement(using: &random) {
        let call = calls.remove(at: index)
        switch Int.random(in: 0..<8, using: &random) {
        case 0:
          breaker.abandoned(isTrial: call.isTrial, at: now)
          if call.isTrial { (model.isTrying, model.openUntil) = (false, now) }
        case 1...4:
          breaker.failed(isTrial: call.isTrial, at: now)
          model.ended(call, false, now)
        default:
          breaker.succeeded(isTrial: call.isTrial)
          model.ended(call, true, now)
        }
      }
    }
  }

  @Test func oneWithoutALimitNeverOpens() {
    var breaker = CircuitBreaker(limit: 0)
    for _ in 0..<1_000 { breaker.failed(isTrial: breaker.begin(), at: 0) }
    #expect(!breaker.isOpen(at: 0))
  }
}
