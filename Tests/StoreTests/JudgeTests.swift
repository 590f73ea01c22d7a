import Notifications
import Redis
import TestSupport
import Testing

@testable import Store

@Suite struct JudgeTests {
  @Test func aBucketThatRedisHasLostIsNotWrittenTo() async throws {
    try await TestJudge.with { judge in
      try await judge.register()
      try await judge.command("DEL", "k{0}")
      #expect(try await judge.judge([Judged(id: 1, offset: 1)]) == [.lost])
      #expect(try await judge.mailbox() == [])
    }
  }

  private func applied(_ request: Judged, superseded: UInt64? = nil, presence: Bool = false) -> Said {
    .new(revision: request.revision, superseded: superseded, presence: presence)
  }

  @Test func aDeviceThatIsNotRegisteredGetsNothing() async throws {
    try await TestJudge.with { (judge) async throws in
      #expect(try await judge.judge([Judged(id: 1, offset: 1)]) == [.unregistered])
      #expect(try await judge.mailbox().isEmpty)
    }
  }

  @Test func theSameRecordAgainIsTheSameAndAnotherWithItsIdIsADuplicate() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      let first = Judged(id: 1, offset: 1)
      let said = try await judge.judge([first, first, Judged(id: 1, offset: 2), Judged(id: 2, offset: 3)])
      #expect(
        said == [
          applied(first, presence: true), .again(revision: first.revision, superseded: nil, presence: true), .duplicate,
          applied(Judged(id: 2, offset: 3), presence: true),
        ])
      #expect(try await judge.mailbox() == [1, 2])
    }
  }

  @Test func whatIsNoLongerInTheMailboxIsNotRoutedAgain() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      let first = Judged(id: 1, offset: 1)
      _ = try await judge.judge([first])
      try await judge.command("HDEL", await judge.mailboxKey("a"), .bytes(first.revision.withBytes { Array($0) }))
      #expect(try await judge.judge([first]) == [.again(revision: first.revision, superseded: nil, presence: false)])
      #expect(try await judge.mailbox().isEmpty)
    }
  }

  @Test func whatIsRedrivenIsNewWorkUnlessTheDeviceRemembersItsIdOrHasItsEntry() async throws {
    for collapse in ["", "x"] {
      try await TestJudge.with { (judge) async throws in
        try await judge.register()
        let first = Judged(id: 1, collapse: collapse, offset: 1)
        var again = first
        again.redrive = .redriven
        let repeated = Said.again(revision: first.revision, superseded: nil, presence: false)
        #expect(try await judge.judge([first, again]) == [applied(first), repeated], "it is remembered")
        try await judge.command("HDEL", await judge.device("a"), "w")
        #expect(try await judge.judge([again]) == [repeated], "it is in the mailbox")
        try await judge.command("DEL", await judge.mailboxKey("a"))
        try await judge.command("HDEL", await judge.device("a"), "w")
        #expect(try await judge.look(again) == .open)
        #expect(try await judge.judge([again]) == [applied(first)])
        #expect(try await judge.mailbox() == [1])
        #expect(try await judge.judge([again]) == [repeated])
        // Somebody has found that the device has no outcome of it.
        var lost = first
        lost.redrive = .unfinished
        #expect(try await judge.judge([lost]) == [repeated], "it is in the mailbox")
        try await judge.command("DEL", await judge.mailboxKey("a"))
        #expect(try await judge.judge([again]) == [repeated], "its id is among the recent ones")
        #expect(try await judge.look(lost) == .open)
        #expect(try await judge.judge([lost]) == [applied(first)])
        #expect(try await judge.mailbox() == [1])
        #expect(try await judge.judge([lost, first]) == [repeated, repeated])
        // A newer one stands above it.
        guard !collapse.isEmpty else { return }
        _ = try await judge.judge([Judged(id: 2, collapse: collapse, timestamp: 1001, offset: 6)])
        try await judge.command("HDEL", await judge.device("a"), "w")
        #expect(try await judge.judge([again, lost]) == [.stale(by: 2), .stale(by: 2)])
        #expect(try await judge.mailbox() == [2])
      }
    }
  }

  @Test func onlyTheNewestOfACollapseIdStays() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let first = Judged(id: 1, collapse: "x", offset: 5)
      let second = Judged(id: 2, collapse: "x", timestamp: 1001, offset: 6)
      #expect(try await judge.judge([first]) == [applied(first)])
      #expect(try await judge.judge([second]) == [applied(second, superseded: 1)])
      #expect(try await judge.mailbox() == [2])
      // An older one of another partition is stale; one of the same partition counts by its offset, whatever the broker's clock says.
      #expect(try await judge.judge([Judged(id: 3, collapse: "x", timestamp: 1000, partition: 1, offset: 99)]) == [.stale(by: 2)])
      let raised = Revision(timestamp: 1001, partition: 0, offset: 7)
      #expect(
        try await judge.judge([Judged(id: 4, collapse: "x", timestamp: 900, offset: 7)]) == [
          .new(revision: raised, superseded: 2, presence: false)
        ])
      #expect(try await judge.mailbox() == [4])
    }
  }

  @Test func aRepeatSaysAgainWhatItSuperseded() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let first = Judged(id: 1, collapse: "x", offset: 5)
      let second = Judged(id: 2, collapse: "x", offset: 6)
      _ = try await judge.judge([first, second])
      #expect(try await judge.judge([second]) == [.again(revision: second.revision, superseded: 1, presence: false)])
    }
  }

  @Test func anExpiredNewerRevisionTakesTheOlderAwayAndIsNotKept() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let first = Judged(id: 1, collapse: "x", offset: 5)
      var second = Judged(id: 2, collapse: "x", offset: 6)
      second.isExpired = true
      #expect(try await judge.judge([first, second]) == [applied(first), applied(second, superseded: 1)])
      #expect(try await judge.mailbox().isEmpty)
      #expect(try await judge.judge([Judged(id: 3, collapse: "x", offset: 4)]) == [.stale(by: 2)])
    }
  }

  @Test func aRequestForAPersonReachesOnlyDevicesOfThatPersonAtThatTime() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register(user: 7, since: 100_000)
      var request = Judged(id: 1, offset: 1)
      request.user = 8
      request.timestamp = 200_000
      #expect(try await judge.judge([request]) == [.wrongUser])
      request.user = 7
      #expect(try await judge.judge([request]) == [applied(request)])
      // Published a minute before the device came to the person; a few seconds are two brokers' clocks.
      request = Judged(id: 2, timestamp: 40_000, offset: 2, user: 7)
      #expect(try await judge.judge([request]) == [.wrongUser])
      request = Judged(id: 3, timestamp: 98_000, offset: 3, user: 7)
      #expect(try await judge.judge([request]) == [applied(request)])
    }
  }

  @Test func anotherApplicationsDeviceIsNotReached() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      #expect(try await judge.judge([Judged(id: 1, offset: 1)], application: 5) == [.wrongApplication])
    }
  }

  @Test func aRemovalFindsANotificationWithoutCollapseIdByItsId() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let shown = Judged(id: 1, offset: 1)
      let removal = Judged(id: 2, collapse: "00000000-0000-0000-0000-000000000001", offset: 2, withdraws: 1)
      #expect(try await judge.judge([shown, removal]) == [applied(shown), applied(removal, superseded: 1)])
      #expect(try await judge.mailbox() == [2])
    }
  }

  @Test func `a removal by id takes no newer notification, none that has a collapse id, and nothing once it has expired`() async throws {
    let text = "00000000-0000-0000-0000-000000000001"
    let removal = Judged(id: 2, collapse: text, timestamp: 2_000, partition: 1, offset: 2, withdraws: 1)
    for (notification, isMeant) in [
      (Judged(id: 1, timestamp: 1_999, offset: 9), true), (Judged(id: 1, timestamp: 2_001, offset: 1), false),
      (Judged(id: 1, timestamp: 9_000, partition: 1, offset: 1), true), (Judged(id: 1, timestamp: 1_000, partition: 1, offset: 3), false),
      (Judged(id: 1, collapse: "order", timestamp: 1_000, offset: 1), false),
    ] {
      try await TestJudge.with { (judge) async throws in
        try await judge.register()
        #expect(try await judge.judge([notification, removal]).last == applied(removal, superseded: isMeant ? 1 : nil), "\(notification)")
        #expect(try await judge.mailbox() == (isMeant ? [2] : [1, 2]))
      }
    }
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let shown = Judged(id: 1, offset: 1)
      let expired = Judged(id: 2, collapse: text, offset: 2, isExpired: true, withdraws: 1)
      _ = try await judge.judge([shown, expired])
      #expect(try await judge.mailbox() == [1])
    }
  }

  @Test func aFullMailboxNamesItsOldestUntilTheyAreDeleted() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let requests = (0..<400).map { Judged(id: $0, offset: $0) }
      for request in requests[..<300] { _ = try await judge.judge([request], maximum: 20) }
      // Not with each request: what is too many is long on its way out when the next one comes.
      let times = await judge.overflows
      #expect((15...20).contains(times), "\(times) times")
      #expect(try await judge.mailbox().count == 300)
      #expect(try await judge.evict([], maximum: 20) == Array(0..<280), "what is too many")
      #expect(try await judge.mailbox().count == 300, "to ask deletes nothing")
      #expect(try await judge.command("HEXISTS", judge.device("a"), "g").integer == 0)
      for start in stride(from: 0, to: 280, by: 40) {
        #expect(try await judge.evict(requests[start..<start + 40], maximum: 20) == Array(UInt64(start + 40)..<280))
      }
      #expect(try await judge.mailbox() == Set(280..<300))
      #expect(try await judge.evict(requests[..<40], maximum: 20) == [], "what is gone is not evicted again")
      for request in requests[300...] { _ = try await judge.judge([request], maximum: 20) }
      #expect(await judge.overflows > times)
      #expect(try await judge.evict([], maximum: 20).first == 280)
    }
  }

  @Test func `a connected device's mailbox may have more entries, and has as many as any other when the device has left`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      let requests = (0..<200).map { Judged(id: $0, offset: $0) }
      for request in requests[..<100] { _ = try await judge.judge([request], maximum: 20, connected: 90) }
      #expect(try await judge.evict([], maximum: 20, connected: 90) == Array(0..<10), "only what is beyond 90")
      let early = await judge.overflows
      #expect(early <= 1, "it is looked at with one of sixteen, and has had too many for ten")
      #expect(try await judge.evict(requests[..<20], maximum: 20, connected: 90) == [])
      #expect(try await judge.mailbox() == Set(20..<100))
      try await judge.command("HSET", judge.device("a"), "p", "")
      for request in requests[100..<120] { _ = try await judge.judge([request], maximum: 20, connected: 90) }
      #expect(await judge.overflows > early)
      #expect(try await judge.evict([], maximum: 20, connected: 90) == Array(20..<100))
      #expect(try await judge.evict(requests[20..<60], maximum: 20, connected: 90) == Array(60..<100))
    }
  }

  @Test func aMailboxThatSeveralRequestsOfACallFillIsNamedOnce() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      _ = try await judge.judge((0..<64).map { Judged(id: $0, offset: $0) }, maximum: 2)
      #expect(await judge.overflows == 1)
    }
  }

  @Test func fieldsThatAreNoRevisionsHarmNoRequestAndAreNamedFirst() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      for field in ["junk", "", String(repeating: "long ", count: 9)] {
        try await judge.command("HSET", await judge.mailboxKey("a"), .text(field), "x")
      }
      for offset in 0..<200 as Range<UInt64> {
        let request = Judged(id: offset, offset: offset)
        #expect(try await judge.judge([request], maximum: 20) == [applied(request)])
      }
      #expect(try await judge.evict([], maximum: 20) == [.max, .max, .max] + Array(0..<180))
      let removal = Judged(id: 999, collapse: "00000000-0000-0000-0000-000000000005", offset: 999, withdraws: 5)
      #expect(try await judge.judge([removal], maximum: 1000) == [applied(removal, superseded: 5)])
    }
  }

  /// What anybody who can write to Redis may have put in the place of a device's keys is that device's trouble alone.
  @Test(arguments: [
    "device", "mailbox", "revision", "revision 20", "revision 35", "revision 37", "revision 71", "window", "owner", "floor",
  ])
  func aDeviceWhoseStateCannotBeReadHarmsNoOther(_ part: String) async throws {
    try await TestJudge.with { (judge) async throws in
      for token in ["a", "b", "c"] { try await judge.register(token) }
      switch part {
      case "device":
        try await judge.command("DEL", await judge.device("b"))
        try await judge.command("SET", await judge.device("b"), "no hash")
      case "mailbox": try await judge.command("LPUSH", await judge.mailboxKey("b"), "no hash")
      case "revision": try await judge.command("HSET", await judge.device("b"), "cx", "short")
      case _ where part.hasPrefix("revision "):
        let bytes = try #require(Int(part.dropFirst("revision ".count)))
        try await judge.command("HSET", await judge.device("b"), "cx", .text(String(repeating: "x", count: bytes)))
      case "window": try await judge.command("HSET", await judge.device("b"), "w", "x")
      case "floor":
        _ = try await judge.judge([Judged(device: "b", id: 99, timestamp: 2000, offset: 99, removesAll: true)])
        try await judge.command("HSET", await judge.device("b"), "f", "x")
      default: try await judge.command("HSET", await judge.device("b"), "u", "x")
      }
      let requests = ["a", "b", "c", "b", "a"].enumerated().map {
        Judged(device: $1, id: UInt64($0), collapse: "x", timestamp: 1000 + UInt64($0), offset: UInt64($0))
      }
      let broken: Said = part == "owner" ? .wrongApplication : .unreadable
      let said = try await judge.judge(requests)
      #expect(said == [applied(requests[0]), broken, applied(requests[2]), broken, applied(requests[4], superseded: 0)])
      #expect(try await judge.judge(requests)[1] == broken, "and the same again")
    }
  }

  @Test func aRedisThatTakesNoWritesHasJudgedNothing() async throws {
    try await TestJudge.with { (judge) async throws in
      for token in ["a", "b"] { try await judge.register(token) }
      try await judge.command("CONFIG", "SET", "maxmemory", "1")
      let requests = [Judged(id: 1, offset: 1), Judged(device: "b", id: 2, offset: 2)]
      #expect(try await judge.judge(requests) == [.failed(.writesRefused), .failed(.writesRefused)])
      try await judge.command("CONFIG", "SET", "maxmemory", "0")
      #expect(try await judge.judge(requests) == requests.map { applied($0) })
    }
  }

  @Test func requestsForManyBucketsAreJudgedTogetherOrNotAtAll() async throws {
    try await TestJudge.with(buckets: 16) { (judge) async throws in
      var requests: [Judged] = []
      for number in 0..<200 as Range<UInt64> {
        let token = "device \(number % 90)"
        try await judge.register(token)
        requests.append(Judged(device: token, id: number, offset: number))
      }
      #expect(try await judge.judge(requests) == requests.map { applied($0) })
      let again = try await judge.judge(requests.reversed())
      #expect(again == requests.reversed().map { .again(revision: $0.revision, superseded: nil, presence: false) })
      let lost = await judge.bucket(requests[150].device)
      try await judge.command("DEL", .text("k{\(lost)}"))
      let others = requests[140..<170].map { Judged(device: $0.device, id: $0.id + 1000, offset: $0.offset + 1000) }
      #expect(try await judge.judge(others) == others.map { _ in .lost }, "one bucket that is lost keeps the whole call from being applied")
      #expect(try await judge.mailbox(others[0].device).allSatisfy { $0 < 1000 })
    }
  }

  /// A turn's requests are shared out to several calls.
  @Test func theRequestsOfADeviceAreJudgedInTheirOrderHoweverManyCallsThereAre() async throws {
    try await TestJudge.with(buckets: 16) { (judge) async throws in
      for number in 0..<20 { try await judge.register("device \(number)") }
      let requests = (0..<400 as Range<UInt64>).map {
        Judged(device: "device \($0 * 7 % 20)", id: $0, collapse: "x", timestamp: 1000 + $0, offset: $0)
      }
      let expected = requests.map { applied($0, superseded: $0.id < 20 ? nil : $0.id - 20) }
      #expect(try await judge.judge(requests) == expected, "each takes the place of the one before it")
    }
  }

  /// It said so when the device was registered, and its record came again after the device had signed out.
  @Test func whatWasAppliedIsSaidAgainWhoeverHasTheDeviceByThen() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register(user: 7, isConnected: true)
      let first = Judged(id: 1, collapse: "x", offset: 5, user: 7)
      let second = Judged(id: 2, collapse: "x", offset: 6, user: 7)
      let plain = Judged(id: 3, offset: 7, user: 7)
      let all = [first, second, plain, Judged(id: 3, offset: 8, user: 7)]
      #expect(
        try await judge.judge(all) == [
          applied(first, presence: true), applied(second, superseded: 1, presence: true), applied(plain, presence: true), .duplicate,
        ])
      let again: [Said] = [
        .again(revision: first.revision, superseded: nil, presence: false),
        .again(revision: second.revision, superseded: 1, presence: false),
        .again(revision: plain.revision, superseded: nil, presence: false), .duplicate,
      ]
      try await judge.command("HDEL", await judge.device("a"), "u", "p")
      #expect(try await judge.judge(all) == again)
      // Another person's by now: the mailbox may still have it, but nobody is told that it is there.
      try await judge.register(user: 8, isConnected: true)
      #expect(try await judge.judge(all) == again)
      #expect(try await judge.judge([Judged(id: 4, offset: 9, user: 7)]) == [.wrongUser])
    }
  }

  /// A lane that was killed leaves presences behind, of devices that may never return.
  @Test func aMailboxOfADeviceThatSeemsConnectedEndsOneDay() async throws {
    try await TestJudge.with { (judge) async throws in
      func end() async throws -> Int64 { try await judge.command("PTTL", await judge.mailboxKey("a")).integer ?? 0 }
      try await judge.register(isConnected: true)
      let first = Judged(id: 1, offset: 1)
      #expect(try await judge.judge([first]) == [applied(first, presence: true)])
      #expect(try await end() / 86_400_000 == 30)
      // Its lane makes that undone as long as it lives; what comes in the next generation of ids does it again.
      try await judge.command("PERSIST", await judge.mailboxKey("a"))
      _ = try await judge.judge([Judged(id: 2, offset: 2)], now: 1_000_601)
      #expect(try await end() / 86_400_000 == 30)
    }
  }

  /// What begins a generation of ids may go into no mailbox, and what is given once more begins none.
  @Test func aMailboxEndsAfterAllThatLiesInIt() async throws {
    try await TestJudge.with { (judge) async throws in
      func endsInDays() async throws -> Int64 { (try await judge.command("PTTL", await judge.mailboxKey("a")).integer ?? 0) / 86_400_000 }
      try await judge.register()
      #expect(try await judge.judge([Judged(id: 1, offset: 1)]) == [applied(Judged(id: 1, offset: 1))])
      try await judge.command("PEXPIRE", await judge.mailboxKey("a"), .integer(10 * 86_400_000))
      var expired = Judged(id: 2, offset: 2)
      expired.isExpired = true
      let (later, last) = (1_000_000 + 20 * 86_400 as Int64, Judged(id: 3, offset: 3))
      #expect(try await judge.judge([expired], now: later) == [applied(expired)])
      #expect(try await judge.judge([last], now: later + 60) == [applied(last)])
      #expect(try await endsInDays() == 30)
      // The device has lost what it was given.
      try await judge.command("DEL", await judge.mailboxKey("a"))
      var again = last
      again.redrive = .unfinished
      #expect(try await judge.judge([again], now: later + 61) == [applied(again)])
      #expect(try await endsInDays() == 30)
    }
  }

  @Test func aMailboxThatNobodyReadsEndsOneDay() async throws {
    try await TestJudge.with { (judge) async throws in
      func endsInDays() async throws -> Int64 { (try await judge.command("PTTL", await judge.mailboxKey("a")).integer ?? 0) / 86_400_000 }
      try await judge.register()
      _ = try await judge.judge([Judged(id: 1, offset: 1)])
      #expect(try await endsInDays() == 30)
      // The device reads it empty and leaves: the next thing that comes for it begins a new mailbox.
      try await judge.command("DEL", await judge.mailboxKey("a"))
      try await judge.command("HSET", await judge.device("a"), "p", "")
      for number in 2..<5 as Range<UInt64> { _ = try await judge.judge([Judged(id: number, offset: number)]) }
      #expect(try await endsInDays() == 30)
      // What takes the only entry's place keeps the mailbox's end.
      _ = try await judge.judge([Judged(device: "b", id: 1, collapse: "x", offset: 1)])
      try await judge.register("b")
      for number in 2..<40 as Range<UInt64> {
        _ = try await judge.judge([Judged(device: "b", id: number, collapse: "x", timestamp: 1000 + number, offset: number)])
      }
      #expect(try await judge.mailbox("b") == [39])
      #expect((try await judge.command("PTTL", await judge.mailboxKey("b")).integer ?? 0) / 86_400_000 == 30)
    }
  }

  @Test func whatIsRememberedOfADeviceIsBounded() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      for number in 0..<600 as Range<UInt64> {
        let request = Judged(id: number, collapse: "c\(number)", timestamp: number, offset: number)
        #expect(try await judge.judge([request], now: 1000 + Int64(number)) == [applied(request)])
      }
      let fields = try await judge.command("HLEN", await judge.device("a")).integer ?? 0
      // Each seventeenth id asks whether they are too many.
      #expect(fields <= 64 + 17 + 3)
      let window = try await judge.command("HGET", await judge.device("a"), "w").bytes ?? []
      #expect(window.count <= 6 + 12 * 48)
      // The newest is still known, the oldest is not.
      #expect(try await judge.judge([Judged(id: 9999, collapse: "c599", timestamp: 1, offset: 1)], now: 1600) == [.stale(by: 599)])
    }
  }

  /// What has a collapse id need not be what a generation of ids begins with.
  @Test func newestRevisionsAreBoundedWhateverComesBetweenThem() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      // One that nobody can read takes none of the others with it.
      try await judge.command("HSET", await judge.device("a"), "cbroken", "x")
      for hour in 0..<200 as Range<UInt64> {
        let requests = (0..<3 as Range<UInt64>).map { number in
          Judged(
            id: 3 * hour + number, collapse: number == 0 ? "" : "c\(3 * hour + number)", timestamp: 1_000_000_000 + hour,
            offset: 3 * hour + number)
        }
        #expect(try await judge.judge(requests, now: 1_000_000 + 3600 * Int64(hour)) == requests.map { applied($0) })
      }
      #expect((try await judge.command("HLEN", await judge.device("a")).integer ?? 0) <= 64 + 17 + 3)
      #expect(try await judge.command("HGET", await judge.device("a"), "cbroken") == .null)
    }
  }

  /// Records come in any order, several times, from two partitions with clocks of their own: the mailbox ends the same.
  @Test(arguments: 0..<(isComplete ? 20 : 4) as Range<UInt64>)
  func theOrderOfRecordsDecidesNothing(seed: UInt64) async throws {
    try await TestJudge.with { (judge) async throws in
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
        if let newest = records.filter({ $0.collapse == collapse }).max(by: { $0.revision.isKeptBefore($1.revision) }) {
          expected.insert(newest.id)
        }
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
