import TestSupport
import Testing

@testable import Extensions

/// The values that a child's supervision is made of.
@Suite struct ChildPartsTests {
  @Test func linesAreTheSameHoweverTheBytesCome() {
    var random = SeededRandom(seed: 7)
    for _ in 0..<2_000 {
      let bytes: [UInt8] = (0..<Int.random(in: 0..<60, using: &random)).map { _ in Bool.random(using: &random) ? 10 : 97 }
      let whole: [[UInt8]] = bytes.split(separator: 10, omittingEmptySubsequences: false).map { Array($0) }
      // A naive reading of all at once: whole lines until one is too long.
      let lines = whole.dropLast().prefix { $0.count <= 2 }
      let isInBounds = whole.allSatisfy { $0.count <= 2 }
      var splitter = LineSplitter(limit: 2)
      var taken: [[UInt8]] = []
      var rest = bytes[...]
      var goesOn = true
      while goesOn, !rest.isEmpty {
        let part = Array(rest.prefix(Int.random(in: 1...9, using: &random)))
        rest = rest.dropFirst(part.count)
        goesOn = part.withUnsafeBytes {
          splitter.take($0) { line in
            taken.append(Array(line))
            return true
          }
        }
      }
      #expect(taken == Array(lines))
      #expect(goesOn == isInBounds)
    }
  }

  /// What changes a value stands outside of the macro.
  private func expect(_ holds: Bool, _ location: SourceLocation = #_sourceLocation) { #expect(holds, sourceLocation: location) }

  @Test func aProgramHangsThatOwesAnAnswerAndSaysNothing() {
    var program = HangDetector(at: 0)
    expect(program.reason(at: 1 << 40, hasExpired: true) == nil)
    // It may take its time to start, once.
    program.asked(1, at: 100)
    expect(program.reason(at: 59_999, hasExpired: true) == nil)
    expect(program.reason(at: 60_000, hasExpired: true) != nil)
    // What is given up meanwhile is owed only from its first word on.
    var slow = HangDetector(at: 0)
    slow.asked(1, at: 0)
    slow.gaveUp(1, at: 10_000)
    expect(slow.reason(at: 59_999, hasExpired: true) == nil)
    slow.asked(2, at: 50_000)
    expect(slow.answered(2, at: 55_000))
    expect(slow.reason(at: 59_999, hasExpired: true) == nil)
    expect(slow.reason(at: 84_999, hasExpired: false) == nil)
    expect(slow.reason(at: 85_000, hasExpired: false) != nil)
    expect(program.answered(1, at: 60_000))
    expect(!program.answered(1, at: 60_000))
    // From then on silence counts, as long as it owes something, and when a call's time ends.
    expect(program.reason(at: 1_000_000, hasExpired: true) == nil)
    program.asked(2, at: 1_000_000)
    expect(program.reason(at: 1_005_000, hasExpired: false) == nil)
    expect(program.reason(at: 1_004_999, hasExpired: true) == nil)
    expect(program.reason(at: 1_005_000, hasExpired: true) != nil)
    program.spoke(at: 1_005_000)
    expect(program.reason(at: 1_009_999, hasExpired: true) == nil)
  }

  @Test func aProgramAnswersAlsoWhatWasGivenUp() {
    var program = HangDetector(at: 0)
    program.spoke(at: 0)
    for call in 1...Int64(10_000) {
      let now = UInt64(call) * 10
      program.asked(call, at: now)
      program.gaveUp(call, at: now)
      // All but the last one of each thousand are answered soon.
      if call % 1_000 != 0 || call < 9_000 { expect(program.answered(call, at: now)) }
      expect(program.reason(at: now, hasExpired: true) == nil)
    }
    expect(program.reason(at: 90_000 + 29_999, hasExpired: false) == nil)
    expect(program.reason(at: 90_000 + 30_000, hasExpired: false) != nil)
    expect(program.answered(9_000, at: 120_000))
    expect(program.reason(at: 120_000, hasExpired: false) == nil)
    expect(program.reason(at: 130_000, hasExpired: false) != nil)
  }

  @Test func whoHasWorkedIsStartedAtOnceAndOthersLaterAndLater() {
    var backoff = RestartBackoff()
    let waits = (0..<12).map { _ in backoff.ended(answers: 99, lived: 9_999) }
    #expect(waits == [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000])
    #expect(backoff.ended(answers: 100, lived: 0) == 0)
    #expect(backoff.ended(answers: 0, lived: 0) == 100)
    #expect(backoff.ended(answers: 0, lived: 10_000) == 0)
    #expect(backoff.ended(answers: 0, lived: 0) == 100)
  }
}
