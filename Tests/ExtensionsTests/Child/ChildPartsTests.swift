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
