import TestSupport
import Testing

@testable import Kafka

/// For how long a producer's oldest record has been in flight, against a model that knows each of them.
@Suite struct QueueAgeTests {
  @Test(arguments: 0..<(isComplete ? 200 : 40)) func theOldestRecordIsToldToBeNoOlderThanItIs(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var (age, waiting, given, now): (QueueAge, [Int64], Int64, Int64) = (QueueAge(), [], 0, 0)
    for _ in 0..<300 {
      let before = now
      now += 1_000
      let new = Int.random(in: 0...5, using: &random)
      waiting += (0..<new).map { _ in Int64.random(in: before...now, using: &random) }.sorted()
      given += Int64(new)
      // In order, but for some.
      for _ in 0..<min(waiting.count, Int.random(in: 0...6, using: &random)) {
        waiting.remove(at: Int.random(in: 0..<4, using: &random) == 0 ? waiting.indices.randomElement(using: &random) ?? 0 : 0)
      }
      let told = age.observe(given: given, reported: given - Int64(waiting.count), at: now)
      #expect(told <= waiting.first.map { now - $0 } ?? 0)
    }
  }

  @Test func aRecordThatWaitsGrowsOlderUntilItIsReported() {
    var age = QueueAge()
    #expect(age.observe(given: 0, reported: 0, at: 1_000) == 0)
    #expect(age.observe(given: 5, reported: 3, at: 2_000) == 0)
    #expect(age.observe(given: 9, reported: 4, at: 3_000) == 1_000)
    #expect(age.observe(given: 9, reported: 4, at: 62_000) == 60_000)
    #expect(age.observe(given: 12, reported: 5, at: 63_000) == 60_000, "the four that came until 3,000")
    #expect(age.observe(given: 12, reported: 12, at: 64_000) == 0)
    for second in Int64(1)...500 { _ = age.observe(given: 13, reported: 12, at: 64_000 + second * 1_000) }
    #expect(age.observe(given: 13, reported: 12, at: 565_000) == 500_000)
  }
}
