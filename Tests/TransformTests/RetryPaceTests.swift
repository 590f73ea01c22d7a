import TestSupport
import Testing

@testable import Transform

struct RetryPaceTests {
  /// Begins rounds as soon as they are due, and says how each ends.
  private static func rounds(_ pace: inout RetryPace, _ count: Int, of waiting: Int, at now: inout UInt64, succeeds: Bool) -> [Int] {
    (0..<count).map { _ in
      now += UInt64(pace.delay(at: now))
      defer { if succeeds { pace.succeeded() } else { pace.failedAgain() } }
      return pace.nextRound(of: waiting, at: now)
    }
  }

  @Test func `while retries succeed, every round starts all failed records soon`() {
    var (pace, now) = (RetryPace(), UInt64(0))
    for waiting in [1, 50_000, 3] {
      #expect(Self.rounds(&pace, 1, of: waiting, at: &now, succeeds: true) == [waiting])
      #expect(pace.delay(at: now) == 20)
    }
  }

  @Test func `while all fail, rounds become small and rare, down to 128 records a second`() {
    var (pace, now) = (RetryPace(), UInt64(0))
    #expect(
      Self.rounds(&pace, 12, of: 50_000, at: &now, succeeds: false)
        == [50_000, 25_000, 12_500, 6_250, 3_125, 1_562, 781, 390, 256, 256, 256, 256])
    let start = now
    #expect(Self.rounds(&pace, 10, of: 50_000, at: &now, succeeds: false).reduce(0, +) == 2_560)
    #expect(now - start == 20_000)
  }

  @Test func `after a success rounds are frequent at once and grow, without waiting for the round that was due`() {
    var (pace, now) = (RetryPace(), UInt64(0))
    _ = Self.rounds(&pace, 20, of: 50_000, at: &now, succeeds: false)
    #expect(pace.delay(at: now) == 2_000)
    pace.succeeded()
    #expect(pace.delay(at: now) == 20)
    #expect(
      Self.rounds(&pace, 9, of: 50_000, at: &now, succeeds: true)
        == [512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 50_000, 50_000])
  }

  @Test func `a round before its time starts nothing, and one without an answer yet changes no pace`() {
    var pace = RetryPace()
    #expect(pace.nextRound(of: 10_000, at: 5) == 10_000)
    #expect(pace.nextRound(of: 10_000, at: 24) == 0)
    #expect(pace.nextRound(of: 10_000, at: 25) == 10_000, "its records still wait for reports")
    #expect(pace.delay(at: 25) == 20)
  }

  @Test func `a round without records does not count`() {
    var (pace, now) = (RetryPace(), UInt64(0))
    _ = Self.rounds(&pace, 3, of: 3, at: &now, succeeds: false)
    now += 10_000
    #expect(pace.nextRound(of: 0, at: now) == 0)
    #expect(pace.nextRound(of: 50_000, at: now) == 50_000, "a few failures do not make the next round small")
  }

  @Test func `clocks at their ends and huge numbers trap nowhere`() {
    var pace = RetryPace()
    for now: UInt64 in [0, .max / 2, 3] {
      for waiting in [0, 1, Int.max] { _ = pace.nextRound(of: waiting, at: now) }
      pace.failedAgain()
      #expect(pace.delay(at: now) >= 20)
    }
  }
}
