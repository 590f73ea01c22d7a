import Notifications
import Redis
import TestSupport
import Testing

@testable import Transform

@Suite struct JudgeTests {
  @Test func aBucketThatRedisHasLostIsNotWrittenTo() async throws {
    try await Judge.with { judge in
      try await judge.register()
      _ = try await judge.command("DEL", "k{0}")
      #expect(try await judge.judge([Judged(id: 1, offset: 1)]) == [.lost])
      #expect(try await judge.mailbox() == [])
    }
  }

  private func applied(_ request: Judged, displaced: UInt64? = nil, presence: Bool = false) -> Said {
    .new(revision: request.revision, displaced: displaced, presence: presence)
  }

  @Test func aDeviceThatIsNotRegisteredGetsNothing() async throws {
    try await Judge.with { (judge) async throws in
      #expect(try await judge.judge([Judged(id: 1, offset: 1)]) == [.unregistered])
      #expect(try await judge.mailbox().isEmpty)
    }
  }

  @Test func theSameRecordAgainIsTheSameAndAnotherWithItsIdIsADuplicate() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      let first = Judged(id: 1, offset: 1)
      let said = try await judge.judge([first, first, Judged(id: 1, offset: 2), Judged(id: 2, offset: 3)])
      #expect(
        said == [
          applied(first, presence: true), .again(revision: first.revision, displaced: nil, presence: true), .duplicate,
          applied(Judged(id: 2, offset: 3), presence: true),
        ])
      #expect(try await judge.mailbox() == [1, 2])
    }
  }

  @Test func whatIsNoLongerInTheMailboxIsNotRoutedAgain() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      let first = Judged(id: 1, offset: 1)
      _ = try await judge.judge([first])
      _ = try await judge.command("HDEL", "m{0}a", .bytes(first.revision.withBytes { Array($0) }))
      #expect(try await judge.judge([first]) == [.again(revision: first.revision, displaced: nil, presence: false)])
      #expect(try await judge.mailbox().isEmpty)
    }
  }

  @Test func onlyTheNewestOfACollapseIdStays() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register()
      let first = Judged(id: 1, collapse: "x", offset: 5)
      let second = Judged(id: 2, collapse: "x", timestamp: 1001, offset: 6)
      #expect(try await judge.judge([first]) == [applied(first)])
      #expect(try await judge.judge([second]) == [applied(second, displaced: 1)])
      #expect(try await judge.mailbox() == [2])
      // An older one of another partition is stale; one of the same partition counts by its offset, whatever the broker's clock says.
      #expect(try await judge.judge([Judged(id: 3, collapse: "x", timestamp: 1000, partition: 1, offset: 99)]) == [.stale(by: 2)])
      let raised = Revision(timestamp: 1001, partition: 0, offset: 7)
      #expect(
        try await judge.judge([Judged(id: 4, collapse: "x", timestamp: 900, offset: 7)]) == [
          .new(revision: raised, displaced: 2, presence: false)
        ])
      #expect(try await judge.mailbox() == [4])
    }
  }

  @Test func aRepeatSaysAgainWhatItDisplaced() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register()
      let first = Judged(id: 1, collapse: "x", offset: 5)
      let second = Judged(id: 2, collapse: "x", offset: 6)
      _ = try await judge.judge([first, second])
      #expect(try await judge.judge([second]) == [.again(revision: second.revision, displaced: 1, presence: false)])
    }
  }

  @Test func anExpiredNewerRevisionTakesTheOlderAwayAndIsNotKept() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register()
      let first = Judged(id: 1, collapse: "x", offset: 5)
      var second = Judged(id: 2, collapse: "x", offset: 6)
      second.isExpired = true
      #expect(try await judge.judge([first, second]) == [applied(first), applied(second, displaced: 1)])
      #expect(try await judge.mailbox().isEmpty)
      #expect(try await judge.judge([Judged(id: 3, collapse: "x", offset: 4)]) == [.stale(by: 2)])
    }
  }

  @Test func aRequestForAPersonReachesOnlyDevicesOfThatPersonAtThatTime() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register(user: 7, since: 100_000)
      var request = Judged(id: 1, offset: 1)
      request.user = 8
      request.timestamp = 200_000
      #expect(try await judge.judge([request]) == [.foreign])
      request.user = 7
      #expect(try await judge.judge([request]) == [applied(request)])
      // Published a minute before the device came to the person; a few seconds are two brokers' clocks.
      request = Judged(id: 2, timestamp: 40_000, offset: 2, user: 7)
      #expect(try await judge.judge([request]) == [.foreign])
      request = Judged(id: 3, timestamp: 98_000, offset: 3, user: 7)
      #expect(try await judge.judge([request]) == [applied(request)])
    }
  }

  @Test func anotherApplicationsDeviceIsNotReached() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register()
      #expect(try await judge.judge([Judged(id: 1, offset: 1)], application: 5) == [.wrongApplication])
    }
  }

  @Test func aRemovalFindsANotificationWithoutCollapseIdByItsId() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register()
      let shown = Judged(id: 1, offset: 1)
      let removal = Judged(id: 2, collapse: "00000000-0000-0000-0000-000000000001", offset: 2, withdraws: 1)
      #expect(try await judge.judge([shown, removal]) == [applied(shown), applied(removal, displaced: 1)])
      #expect(try await judge.mailbox() == [2])
    }
  }

  @Test func aFullMailboxNamesItsOldestUntilTheyAreDeleted() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register()
      func fill(_ offsets: Range<UInt64>) async throws {
        for offset in offsets { _ = try await judge.judge([Judged(id: offset, offset: offset)], bound: 20) }
      }
      try await fill(0..<60)
      // Not with each request: what is too many is long on its way out when the next one comes.
      #expect(await judge.surplus == [Array(0..<16), Array(0..<32)])
      #expect(try await judge.mailbox().count == 60)
      let oldest = (0..<40).map { Judged(id: $0, offset: $0).revision.withBytes { RedisArgument.bytes(Array($0)) } }
      #expect(try await judge.evict(Array(oldest[..<30]), bound: 20) == Array(30..<40))
      #expect(try await judge.evict(Array(oldest[30...]), bound: 20) == [])
      #expect(try await judge.mailbox() == Set(40..<60))
      #expect(try await judge.evict(oldest, bound: 20) == [], "what is gone is not evicted again")
      try await fill(60..<76)
      #expect(await judge.surplus.last == Array(40..<56))
    }
  }

  @Test func fieldsThatAreNoRevisionsHarmNoRequestAndAreNamedFirst() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register()
      for field in ["junk", "", String(repeating: "long ", count: 9)] { _ = try await judge.command("HSET", "m{0}a", .text(field), "x") }
      for offset in 0..<33 as Range<UInt64> {
        let request = Judged(id: offset, offset: offset)
        #expect(try await judge.judge([request], bound: 20) == [applied(request)])
      }
      #expect(await judge.surplus.last == [.max, .max, .max] + Array(0..<13))
      let removal = Judged(id: 99, collapse: "00000000-0000-0000-0000-000000000005", offset: 99, withdraws: 5)
      #expect(try await judge.judge([removal], bound: 1000) == [applied(removal, displaced: 5)])
    }
  }

  @Test func aMailboxOfADeviceThatIsThereNamesItsOldestAsOftenByChance() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      for offset in 0..<400 as Range<UInt64> { _ = try await judge.judge([Judged(id: offset, offset: offset)], bound: 20) }
      let times = await judge.surplus.count
      #expect((8...60).contains(times), "\(times) times")
      #expect(await judge.surplus.last == Array(0..<64))
    }
  }

  @Test func whatIsRememberedOfADeviceIsBounded() async throws {
    try await Judge.with { (judge) async throws in
      try await judge.register()
      for number in 0..<600 as Range<UInt64> {
        let request = Judged(id: number, collapse: "c\(number)", timestamp: number, offset: number)
        _ = try await judge.judge([request], now: 1000 + Int64(number))
      }
      let fields = try await judge.command("HLEN", "d{0}a").integer ?? 0
      #expect(fields <= 70)
      let window = try await judge.command("HGET", "d{0}a", "w").bytes ?? []
      #expect(window.count <= 6 + 12 * 48)
      // The newest is still known, the oldest is not.
      #expect(try await judge.judge([Judged(id: 9999, collapse: "c599", timestamp: 1, offset: 1)], now: 1600) == [.stale(by: 599)])
    }
  }

  /// Records come in any order, several times, from two partitions with clocks of their own: the mailbox ends the same.
  @Test(arguments: 0..<20 as Range<UInt64>)
  func theOrderOfRecordsDecidesNothing(seed: UInt64) async throws {
    try await Judge.with { (judge) async throws in
      var random = SeededRandom(seed: seed)
      var records: [Judged] = []
      for partition in 0..<2 as Range<UInt32> {
        var timestamp: UInt64 = 1000
        for offset in 0..<12 as Range<UInt64> {
          timestamp += UInt64.random(in: 0...3, using: &random)
          let collapse = Int.random(in: 0..<3, using: &random)
          records.append(
            Judged(
              id: UInt64(partition) * 100 + offset, collapse: collapse == 0 ? "" : "c\(collapse)", timestamp: timestamp,
              partition: partition,
              offset: offset))
        }
      }
      var expected: Set<UInt64> = Set(records.filter { $0.collapse.isEmpty }.map(\.id))
      for collapse in ["c1", "c2"] {
        if let newest = records.filter({ $0.collapse == collapse }).max(by: { $0.revision < $1.revision }) { expected.insert(newest.id) }
      }
      for device in ["a", "b", "c"] {
        try await judge.register(device)
        var order = records + records.shuffled(using: &random).prefix(10)
        if device != "a" { order.shuffle(using: &random) }
        for index in order.indices { order[index].device = device }
        var start = 0
        while start < order.count {
          let count = min(Int.random(in: 1...5, using: &random), order.count - start)
          let said = try await judge.judge(Array(order[start..<start + count]))
          #expect(!said.contains(.duplicate) && !said.contains(.unreadable), "seed \(seed)")
          start += count
        }
        #expect(try await judge.mailbox(device) == expected, "seed \(seed), device \(device)")
      }
    }
  }
}
