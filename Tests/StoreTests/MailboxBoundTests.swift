import Notifications
import Redis
import TestSupport
import Testing

@testable import Store

/// How many entries a mailbox has, whatever comes to it, when what it has too many is evicted as it is told.
@Suite struct MailboxBoundTests {
  private static let maximum = 8
  /// A mailbox is looked at with one of so many requests: between two looks it may grow by so many entries.
  private static let slack = 16

  /// A mailbox without any slack: what a request does to it.
  private struct Model {
    var entries: Set<UInt64> = []
    /// The newest entry of each collapse id.
    var places: [String: UInt64] = [:]
    /// Recent requests without a collapse id.
    var recent: [UInt64] = []

    mutating func apply(_ request: Judged) {
      if !request.collapse.isEmpty {
        if let former = places.updateValue(request.offset, forKey: request.collapse) { entries.remove(former) }
      } else if request.redrive == nil {
        recent = (recent + [request.offset]).suffix(12)
      }
      if !request.isExpired { entries.insert(request.offset) }
    }
  }

  /// Evicts what a mailbox has too many, to the end.
  private func evict(_ judge: TestJudge, _ model: inout Model) async throws {
    var named = try await judge.evict([], maximum: Self.maximum)
    while !named.isEmpty {
      #expect(named == Array(model.entries.sorted().prefix(named.count)), "the oldest go")
      model.entries.subtract(named)
      named = try await judge.evict(named.map { Judged(id: $0, offset: $0) }[...], maximum: Self.maximum)
    }
    #expect(model.entries.count <= Self.maximum)
  }

  @Test(arguments: 0..<(isComplete ? 24 : 4)) func `a mailbox never has more than sixteen entries above its maximum`(seed: Int) async throws
  {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      var (random, model, looks) = (SeededRandom(seed: UInt64(seed)), Model(), 0)
      var next: UInt64 = 0
      for _ in 0..<400 {
        // Those of one call are plain: its mailbox is named in the middle of it, before what comes later may change what is named.
        let count = random.next() % 4 == 0 ? Int(random.next() % 5) + 1 : 1
        var requests: [Judged] = []
        for _ in 0..<count {
          var request = Judged(id: next, offset: next)
          switch count > 1 ? 9 : random.next() % 10 {
          case 0: request.collapse = "place \(random.next() % 3)"
          case 1 where !model.recent.isEmpty:
            // An acknowledged or evicted one is given once more.
            let again = model.recent[Int(random.next() % UInt64(model.recent.count))]
            if !model.entries.contains(again) { request = Judged(redrive: .unfinished, id: again, offset: again) }
          default: break
          }
          if request.redrive == nil {
            // Half of the histories have all that comes in the same place of the window expired on arrival.
            request.isExpired = seed % 2 == 0 ? next % 17 == UInt64(seed / 2) % 17 : random.next() % 5 == 0
            next += 1
          }
          requests.append(request)
        }
        let before = await judge.overflows
        _ = try await judge.judge(requests, maximum: Self.maximum, ids: 32)
        for request in requests { model.apply(request) }
        let overflows = await judge.overflows - before
        looks += overflows
        if overflows > 0 { try await evict(judge, &model) }
        #expect(try await judge.mailbox() == model.entries)
        #expect(model.entries.count <= Self.maximum + Self.slack, "after \(next) requests")
        if random.next() % 3 == 0, let acknowledged = model.entries.randomElement(using: &random) {
          model.entries.remove(acknowledged)
          model.places = model.places.filter { $0.value != acknowledged }
          try await judge.delete(Judged(id: acknowledged, offset: acknowledged).revision, ofRequest: acknowledged)
        }
      }
      #expect(looks > 0)
    }
  }

  /// Requests of several partitions at few moments, so that many have the same timestamp.
  private static func burst(_ count: UInt64, _ random: inout SeededRandom) -> [Judged] {
    (0..<count).map { number in
      Judged(id: number, timestamp: 1000 + random.next() % 40, partition: UInt32(random.next() % 3), offset: number)
    }
  }

  private static func oldestFirst(_ requests: [Judged]) -> [Judged] {
    requests.sorted { ($0.timestamp, $0.partition, $0.offset) < ($1.timestamp, $1.partition, $1.offset) }
  }

  /// A mailbox that grew faster than it was evicted would cost more with each eviction, if each took as few as one call of the judge adds.
  @Test(arguments: 0..<(isComplete ? 4 : 2)) func `a mailbox that a burst has filled is evicted in few steps, the oldest first`(seed: Int)
    async throws
  {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      var random = SeededRandom(seed: UInt64(seed))
      let burst = Self.burst(3_000, &random)
      _ = try await judge.judge(burst, maximum: Self.maximum)
      #expect(
        try await judge.command("INFO", "commandstats").calls["hkeys"] == nil,
        "the judge looks at no mailbox as a whole, however full it is")
      var left = Self.oldestFirst(burst)
      var (evicting, steps) = ([Judged](), 0)
      repeat {
        left.removeFirst(evicting.count)
        let named = try await judge.evict(evicting[...], maximum: Self.maximum)
        evicting = Array(left.prefix(named.count))
        #expect(named == evicting.map(\.id), "the oldest go")
        steps += 1
      } while !evicting.isEmpty
      #expect(steps == 4, "three with entries, and the last answer")
      #expect(left.count == Self.maximum)
      #expect(try await judge.mailbox() == Set(left.map(\.id)))
    }
  }

  @Test func `an eviction takes no more entries with large heads than an answer of Redis may have`() async throws {
    try await TestJudge.with { (judge) async throws in
      // Four empty fields, and a category that is as long as its length can tell.
      let head = [UInt8](repeating: 0, count: 68) + [UInt8](repeating: 255, count: 2 + 65_535)
      #expect(try await evicted(of: 40, each: head, judge) == 4)
    }
  }

  @Test func `an eviction's answer has no payloads, so that a flood of large ones is evicted in as few steps`() async throws {
    try await TestJudge.with { (judge) async throws in
      #expect(try await evicted(of: 40, each: [UInt8](repeating: 0, count: 100_000), judge) == 40 - Self.maximum)
    }
  }

  /// How many entries one answer of an eviction has.
  private func evicted(of count: UInt64, each entry: [UInt8], _ judge: TestJudge) async throws -> Int {
    try await judge.register()
    let requests = (0..<count).map { Judged(id: $0, offset: $0) }
    _ = try await judge.judge(requests, maximum: 100)
    for request in requests {
      try await judge.command("HSET", judge.mailboxKey("a"), .bytes(request.revision.withBytes { Array($0) }), .bytes(entry))
    }
    return try await judge.evict([], maximum: Self.maximum).count
  }

  @Test(arguments: 0..<(isComplete ? 4 : 2)) func `each page of a mailbox is what a sort of all finds there`(seed: Int) async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      var random = SeededRandom(seed: UInt64(seed))
      let all = Self.oldestFirst(Self.burst(300, &random))
      _ = try await judge.judge(all.shuffled(using: &random), maximum: 1_000)
      for _ in 0..<60 {
        let (skipped, count) = (Int(random.next() % 320), Int(random.next() % 64) + 1)
        #expect(try await judge.page(count: count, skipping: skipped) == all.dropFirst(skipped).prefix(count).map(\.id))
      }
    }
  }
}
