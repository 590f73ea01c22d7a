import Testing

@testable import Transform

struct RetryPaceTests {
  @Test func `while retries succeed, every round starts all failed records at once`() {
    var pace = RetryPace()
    for waiting in [1, 50_000, 3] {
      #expect(pace.nextRound(of: waiting) == waiting)
      #expect(pace.delay == 20)
      pace.succeeded()
    }
  }

  @Test func `when nothing succeeds, rounds become rare and small, and start at most 128 records a second`() {
    var pace = RetryPace()
    var (rounds, milliseconds): ([Int], [Int]) = ([], [])
    for _ in 0..<12 {
      rounds.append(pace.nextRound(of: 50_000))
      milliseconds.append(pace.delay)
    }
    #expect(rounds == [50_000, 25_000, 12_500, 6_250, 3_125, 1_562, 781, 390, 256, 256, 256, 256])
    #expect(milliseconds == [20, 40, 80, 160, 320, 640, 1280, 2000, 2000, 2000, 2000, 2000])
  }

  @Test func `after a success the pace is fast at once, and the rounds double`() {
    var pace = RetryPace()
    for _ in 0..<20 { _ = pace.nextRound(of: 50_000) }
    var rounds: [Int] = []
    for _ in 0..<9 {
      pace.succeeded()
      rounds.append(pace.nextRound(of: 50_000))
      #expect(pace.delay == 20)
    }
    #expect(rounds == [512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 50_000, 50_000])
  }

  @Test func `few failed records all start in each round`() {
    var pace = RetryPace()
    for _ in 0..<20 { #expect(pace.nextRound(of: 200) == 200) }
  }
}
