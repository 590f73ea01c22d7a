import Notifications
import TestSupport
import Testing

@testable import Store

/// The rule of newness in Swift says what the judge says on a real Redis.
@Suite struct NewnessTests {
  /// A kept revision, and a position that is published afterwards.
  private struct Pair {
    let kept: Judged
    let published: Judged

    init(_ device: Int, _ random: inout SeededRandom) {
      var kept = Judged(device: "d\(device)", id: 1, collapse: "x", offset: Self.number(Self.offsets, &random))
      kept.timestamp = Self.number(Self.timestamps, &random)
      kept.partition = Self.partitions.randomElement(using: &random) ?? 0
      var published = kept
      published.id = 2
      if Bool.random(using: &random) { published.timestamp = Self.near(kept.timestamp, Self.timestamps, &random) }
      if Bool.random(using: &random) { published.offset = Self.near(kept.offset, Self.offsets, &random) }
      if Bool.random(using: &random) { published.partition = Self.partitions.randomElement(using: &random) ?? 0 }
      // Elsewhere the same apns-id is a duplicate, whatever is newer.
      if published.partition == kept.partition, published.offset == kept.offset, Bool.random(using: &random) { published.id = 1 }
      if Bool.random(using: &random) { published.comesAgain = [.replayed, .redriven, .unfinished].randomElement(using: &random) }
      (self.kept, self.published) = (kept, published)
    }

    /// Two partitions, the largest that Kafka and a revision may have, and some of them in other incarnations.
    private static let partitions: [UInt32] = [0, 1, 0xFFFF, 1 << 16, 1 << 16 | 1, 2 << 16, 0xFFFF << 16, .max]
    /// Up to the last moment of the year 9999.
    private static let timestamps: ClosedRange<UInt64> = 0...253_402_300_799_999
    /// Up to where the numbers of Lua are exact.
    private static let offsets: ClosedRange<UInt64> = 0...(1 << 53 - 1)

    private static func number(_ range: ClosedRange<UInt64>, _ random: inout SeededRandom) -> UInt64 {
      switch Int.random(in: 0..<4, using: &random) {
      case 0: range.lowerBound
      case 1: range.upperBound
      case 2: .random(in: 1_000...1_003, using: &random)
      default: .random(in: range, using: &random)
      }
    }

    private static func near(_ number: UInt64, _ range: ClosedRange<UInt64>, _ random: inout SeededRandom) -> UInt64 {
      let step = UInt64.random(in: 0...2, using: &random)
      switch Int.random(in: 0..<3, using: &random) {
      case 0: return number > range.upperBound - step ? number : number + step
      case 1: return number < step ? number : number - step
      default: return Self.number(range, &random)
      }
    }
  }

  @Test(arguments: 0..<(isComplete ? 12 : 4) as Range<UInt64>)
  func `Swift and the judge's script judge by one rule of newness`(seed: UInt64) async throws {
    try await TestJudge.with { (judge) async throws in
      var random = SeededRandom(seed: seed)
      let pairs = (0..<500).map { Pair($0, &random) }
      for pair in pairs { try await judge.register(pair.kept.device) }
      let first = try await judge.judge(pairs.map(\.kept))
      let second = try await judge.judge(pairs.map(\.published))
      for (index, pair) in pairs.enumerated() {
        #expect(first[index] == .new(revision: pair.kept.revision, superseded: nil, presence: false))
        let (known, published) = (pair.kept.revision, pair.published.revision)
        let kept = known.judging(
          published, isSameRequest: pair.published.id == pair.kept.id, comesAgain: pair.published.comesAgain != nil)
        let said: Said =
          switch kept {
          case nil: .stale(by: 1)
          case known?: .again(revision: known, superseded: nil, presence: false)
          case let kept?: .new(revision: kept, superseded: 1, presence: false)
          }
        #expect(second[index] == said, "seed \(seed): \(pair.published) after \(known)")
        if let kept { #expect(kept >= known, "what is kept only grows") }
      }
    }
  }

  @Test(arguments: 0..<(isComplete ? 6 : 3) as Range<UInt64>)
  func `a removal by apns-id finds what is older by the same rule`(seed: UInt64) async throws {
    try await TestJudge.with { (judge) async throws in
      var random = SeededRandom(seed: seed)
      let pairs = (0..<500).map { Pair($0, &random) }.filter { pair in
        // Two requests of one place would contest it.
        (pair.kept.partition, pair.kept.offset) != (pair.published.partition, pair.published.offset)
      }
      for pair in pairs { try await judge.register(pair.kept.device) }
      _ = try await judge.judge(
        pairs.map { pair in
          var notification = pair.kept
          notification.collapse = ""
          return notification
        })
      let said = try await judge.judge(
        pairs.map { pair in
          var removal = pair.published
          (removal.comesAgain, removal.withdraws) = (nil, pair.kept.id)
          return removal
        })
      for (index, pair) in pairs.enumerated() {
        let (known, published) = (pair.kept.revision, pair.published.revision)
        let removed: UInt64? = known.judging(published) == nil ? nil : 1
        #expect(said[index] == .new(revision: published, superseded: removed, presence: false), "seed \(seed): \(published) after \(known)")
      }
    }
  }

  @Test func `three published positions can be newer than each other in a circle`() {
    let (a, b, c) = (
      Revision(timestamp: 300, partition: 0, offset: 1), Revision(timestamp: 100, partition: 0, offset: 2),
      Revision(timestamp: 200, partition: 1, offset: 9)
    )
    #expect(a.judging(b) != nil && b.judging(c) != nil && c.judging(a) != nil)
    #expect(b.judging(a) == nil && c.judging(b) == nil && a.judging(c) == nil)
  }
}
