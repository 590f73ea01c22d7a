import Notifications
import TestSupport
import Testing

@testable import Store

/// The rule of newness in Swift says what each script says on a real Redis.
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
      if Bool.random(using: &random) { published.redrive = [.redriven, .unfinished].randomElement(using: &random) }
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
          published, isSameRequest: pair.published.id == pair.kept.id, isRedriven: pair.published.redrive != nil)
        let said: Said =
          switch kept {
          case nil: .stale(by: 1)
          case known?: .again(revision: known, superseded: nil, presence: false)
          case let kept?: .new(revision: kept, superseded: 1, presence: false)
          }
        #expect(second[index] == said, "seed \(seed): \(pair.published) after \(known)")
        if let kept { #expect(!kept.isKeptBefore(known), "what is kept only grows") }
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
          (removal.redrive, removal.withdraws) = (nil, pair.kept.id)
          return removal
        })
      for (index, pair) in pairs.enumerated() {
        let (known, published) = (pair.kept.revision, pair.published.revision)
        let removed: UInt64? = known.judging(published) == nil ? nil : 1
        #expect(said[index] == .new(revision: published, superseded: removed, presence: false), "seed \(seed): \(published) after \(known)")
      }
    }
  }

  /// Pairs of requests of different places, without origins.
  private static func ordinary(_ seed: UInt64) -> [Pair] {
    var random = SeededRandom(seed: seed)
    return (0..<200).map { Pair($0, &random) }.filter { !$0.kept.revision.sharesPlace(with: $0.published.revision) }
  }

  @Test(arguments: 0..<(isComplete ? 6 : 3) as Range<UInt64>)
  func `a removal of all bars what is older by the same rule, in the mailbox and afterwards`(seed: UInt64) async throws {
    try await TestJudge.with { (judge) async throws in
      let pairs = Self.ordinary(seed)
      for pair in pairs {
        for device in [pair.kept.device, "later" + pair.kept.device] { try await judge.register(device) }
      }
      let removals = pairs.map { pair in
        var removal = pair.kept
        (removal.removesAll, removal.collapse) = (true, "")
        return removal
      }
      func requests(_ prefix: String = "") -> [Judged] {
        pairs.map { pair in
          var request = pair.published
          (request.device, request.id, request.collapse, request.redrive) = (prefix + request.device, 2, "", nil)
          return request
        }
      }
      _ = try await judge.judge(requests())
      _ = try await judge.judge(removals)
      let later = removals.map { removal in
        var removal = removal
        removal.device = "later" + removal.device
        return removal
      }
      _ = try await judge.judge(later)
      let said = try await judge.judge(requests("later"))
      for (index, pair) in pairs.enumerated() {
        let (removal, request) = (pair.kept.revision, pair.published.revision)
        let canceled = try await judge.cancel([], of: pair.kept.device)
        #expect(canceled == (request.isOlder(than: removal) ? [request.offset] : []), "seed \(seed): \(request) below \(removal)")
        let expected: Said =
          removal.judging(request).map { .new(revision: $0, superseded: nil, presence: false) } ?? .canceled(by: pair.kept.id)
        #expect(said[index] == expected, "seed \(seed): \(request) after \(removal)")
      }
    }
  }

  @Test(arguments: 0..<(isComplete ? 6 : 3) as Range<UInt64>)
  func `of two cancels of all the newer one by the same rule stays`(seed: UInt64) async throws {
    try await TestSchedules.with { test in
      for (number, pair) in Self.ordinary(seed).enumerated() {
        let key = try #require(ScheduleKey(application: "com.example.shop", target: Name("user:\(number)"), identifier: "all"))
        let cancels = [pair.kept, pair.published].map { JournalReference(revision: $0.revision, id: NotificationID(number: $0.id)) }
        for cancel in cancels { _ = try await test.cancelAll(key, cancel) }
        let newest = cancels[0].revision.isOlder(than: cancels[1].revision) ? cancels[1] : cancels[0]
        #expect(try await test.read(key).floor == newest, "seed \(seed): \(cancels)")
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
