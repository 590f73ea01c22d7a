import Extensions
import TestSupport
import Testing

@Suite struct CallBudgetTests {
  @Test func noCallGoesBeyondItsOwnBudgetThatOfTheNotificationOrItsExpiration() {
    var random = SeededRandom(seed: 1)
    for _ in 0..<10_000 {
      let now = UInt64.random(in: 0...1_000_000, using: &random)
      let lifetime = Int64([-5, 0, 1, 900, 5_000, 100_000, .max / 2].randomElement(using: &random) ?? 0)
      let budget = CallBudget(at: now, lifetime: lifetime)
      let later = now + UInt64.random(in: 0...40_000, using: &random)
      let limit = Int.random(in: 1...30_000, using: &random)
      guard let share = budget.share(at: later, atMost: limit) else {
        #expect(lifetime - Int64(later - now) <= max(1, lifetime / 4) || later - now >= 29_000)
        continue
      }
      #expect(share.milliseconds >= 1 && share.milliseconds <= limit)
      #expect(later - now + UInt64(share.milliseconds) <= 30_000)
      #expect(Int64(later - now) + Int64(share.milliseconds) <= lifetime)
      #expect(share.warningMilliseconds < share.milliseconds, "there is a moment for the last word")
    }
  }

  @Test func whatHasExpiredCallsNobody() {
    #expect(CallBudget(at: 100, lifetime: 0).share(at: 100, atMost: 1_000) == nil)
    #expect(CallBudget(at: 100, lifetime: -7_000).share(at: 100, atMost: 1_000) == nil)
    #expect(CallBudget(at: 100, lifetime: 60_000).share(at: 30_100, atMost: 1_000) == nil)
  }
}
