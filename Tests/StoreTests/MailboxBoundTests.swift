import Notifications
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
      } else if request.comesAgain == nil {
        recent = (recent + [request.offset]).suffix(12)
      }
      if !request.isExpired { entries.insert(request.offset) }
    }
  }

  /// Evicts what the judge has named, and what is named next, to the end.
  private func evict(_ named: [UInt64], _ judge: TestJudge, _ model: inout Model) async throws {
    var named = named
    while !named.isEmpty {
      #expect(named == Array(model.entries.sorted().prefix(named.count)), "the oldest go")
      model.entries.subtract(named)
      named = try await judge.evict(named.map { Judged(id: $0, offset: $0) }[...], maximum: Self.maximum)
    }
    #expect(model.entries.count <= Self.maximum)
  }

  @Test(arguments: 0..<24) func `a mailbox never has more than sixteen entries above its maximum`(seed: Int) async throws {
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
            if !model.entries.contains(again) { request = Judged(comesAgain: .unfinished, id: again, offset: again) }
          default: break
          }
          if request.comesAgain == nil {
            // Half of the histories have all that comes in the same place of the window expired on arrival.
            request.isExpired = seed % 2 == 0 ? next % 17 == UInt64(seed / 2) % 17 : random.next() % 5 == 0
            next += 1
          }
          requests.append(request)
        }
        let before = await judge.overflows.count
        _ = try await judge.judge(requests, maximum: Self.maximum, ids: 32)
        for request in requests { model.apply(request) }
        let overflows = await judge.overflows.dropFirst(before)
        looks += overflows.count
        // A call names a mailbox once, with what it has by then.
        if let named = overflows.first { try await evict(named, judge, &model) }
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
}
