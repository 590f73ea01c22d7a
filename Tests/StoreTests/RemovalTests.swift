import Notifications
import Redis
import TestSupport
import Testing

@testable import Store

/// Removals of delivered notifications, by identifier and of all, on a real Redis: what is older never comes to a device afterwards.
@Suite struct RemovalTests {
  private func applied(_ request: Judged, superseded: UInt64? = nil) -> Said {
    .new(revision: request.revision, superseded: superseded, presence: false)
  }

  private func removal(_ id: UInt64, at offset: UInt64, partition: UInt32 = 0, timestamp: UInt64 = 1000) -> Judged {
    Judged(id: id, timestamp: timestamp, partition: partition, offset: offset, removesAll: true)
  }

  @Test func `a removal of all cancels what is older, whenever that is judged, and nothing newer`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let waiting = [Judged(id: 1, offset: 1), Judged(id: 2, collapse: "x", offset: 2)]
      _ = try await judge.judge(waiting)
      let all = removal(3, at: 5)
      #expect(try await judge.judge([all]) == [applied(all)])
      #expect(await judge.cancellations == 1)
      #expect(try await judge.cancel([]) == [1, 2], "the entries that waited stay until their events are durable")
      #expect(try await judge.mailbox() == [1, 2, 3])
      #expect(try await judge.floor() == JournalReference(revision: all.revision, id: NotificationID(number: 3)))
      #expect(try await judge.cancel(waiting) == [])
      #expect(try await judge.mailbox() == [3])
      // What was published before and is judged now.
      let late = [
        Judged(id: 4, offset: 3), Judged(id: 5, collapse: "y", offset: 4), Judged(id: 6, timestamp: 999, partition: 1, offset: 90),
      ]
      #expect(try await judge.judge(late) == late.map { _ in .canceled(by: 3) })
      #expect(try await judge.judge(late) == late.map { _ in .canceled(by: 3) }, "and the same again")
      let newer = [Judged(id: 7, offset: 6), Judged(id: 8, timestamp: 1001, partition: 1, offset: 91)]
      #expect(try await judge.judge(newer) == newer.map { applied($0) })
      #expect(try await judge.mailbox() == [3, 7, 8])
    }
  }

  @Test func `a removal of all for an empty mailbox, or for one with nothing but its own entry, is not read again`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let all = removal(1, at: 1)
      _ = try await judge.judge([all])
      _ = try await judge.judge([all])
      #expect(await judge.cancellations == 0)
    }
  }

  @Test func `another application's removal of all cancels nothing`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.apply(Owner(user: 1, since: 5, application: TestJudge.application), offset: 1)
      _ = try await judge.judge([removal(1, at: 10)])
      try await judge.apply(Owner(user: 1, since: 6, application: 99), offset: 2)
      let older = Judged(id: 2, offset: 2)
      #expect(try await judge.judge([older], application: 99) == [applied(older)])
      #expect(try await judge.cancel([]) == [])
    }
  }

  @Test func `what a removal of all cancels is told without payloads, whole in all else`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      _ = try await judge.judge([Judged(id: 1, offset: 1), Judged(id: 2, collapse: "x", offset: 2), removal(3, at: 5)])
      #expect(try await judge.canceledHeads() == ["1  0", "2 x 0"])
    }
  }

  @Test func `a removal of all that comes again is the same one, and names again what it cancels`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      _ = try await judge.judge([Judged(id: 1, offset: 1)])
      let all = removal(2, at: 2)
      _ = try await judge.judge([all])
      #expect(try await judge.judge([all]) == [.again(revision: all.revision, superseded: nil, presence: false)])
      #expect(await judge.cancellations == 2)
      // The window of ids has forgotten it.
      try await judge.command("HDEL", await judge.device("a"), "w")
      #expect(try await judge.judge([all]) == [.again(revision: all.revision, superseded: nil, presence: false)])
    }
  }

  @Test func `the newest removal of all counts, in whatever order they are judged`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let (first, second) = (removal(1, at: 3), removal(2, at: 5, partition: 1, timestamp: 1005))
      #expect(try await judge.judge([second, first]) == [applied(second), .canceled(by: 2)])
      #expect(try await judge.floor()?.revision == second.revision)
      let late = Judged(id: 9, timestamp: 1004, offset: 8)
      #expect(try await judge.judge([late]) == [.canceled(by: 2)])
    }
  }

  @Test func `a removal of all leaves what waits for a place`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let (before, late) = (Judged(id: 1, offset: 1, isOfPending: true), Judged(id: 3, offset: 2, isOfPending: true))
      _ = try await judge.judge([before, removal(2, at: 3)])
      #expect(try await judge.cancel([]) == [])
      #expect(try await judge.judge([late]) == [applied(late)])
      #expect(try await judge.mailbox() == [1, 2, 3])
    }
  }

  @Test func `what waits for a place keeps its revision though a removal of all was judged before it`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      _ = try await judge.judge([removal(2, at: 3)])
      let older = Judged(id: 1, collapse: "x", timestamp: 900, offset: 2, isOfPending: true)
      let newer = Judged(id: 3, collapse: "x", timestamp: 950, partition: 1, offset: 7, isOfPending: true)
      #expect(try await judge.judge([older, newer]) == [applied(older), .new(revision: newer.revision, superseded: 1, presence: false)])
    }
  }

  @Test(arguments: [false, true])
  func `an id that the device had before a rebuild is remembered, whatever is judged first now`(isKept: Bool) async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let (first, second) = (Judged(id: 1, collapse: "x", offset: 1, wasKept: isKept), Judged(id: 3, offset: 3, wasKept: isKept))
      let newer = Judged(id: 2, collapse: "x", timestamp: 1001, partition: 1, offset: 1)
      #expect(try await judge.judge([newer, first]) == [applied(newer), .stale(by: 2)])
      #expect(try await judge.judge([removal(4, at: 5), second]).last == .canceled(by: 4))
      // The same ids once more, in newer records.
      let again = [first, second].map { Judged(id: $0.id, collapse: $0.collapse, timestamp: 1100, partition: 2, offset: $0.offset) }
      let said = try await judge.judge(again)
      #expect((said == [.duplicate, .duplicate]) == isKept)
      #expect(said.contains(.duplicate) == isKept)
    }
  }

  @Test func `what is newer by its offset stays newer though the broker's clock went back`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      _ = try await judge.judge([removal(1, at: 3)])
      let later = Judged(id: 2, timestamp: 900, offset: 4)
      let raised = Revision(timestamp: 1000, partition: 0, offset: 4)
      #expect(try await judge.judge([later]) == [.new(revision: raised, superseded: nil, presence: false)])
      #expect(try await judge.judge([later]) == [.again(revision: raised, superseded: nil, presence: false)])
    }
  }

  @Test func `a connected device is not sent again what a removal of all has canceled`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      let first = Judged(id: 1, offset: 1)
      _ = try await judge.judge([first, removal(2, at: 2)])
      #expect(try await judge.judge([first]) == [.again(revision: first.revision, superseded: nil, presence: false)])
    }
  }

  @Test func `a removal of all that has expired cancels the only entry`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      _ = try await judge.judge([Judged(id: 1, offset: 1)])
      var all = removal(2, at: 2)
      all.isExpired = true
      _ = try await judge.judge([all])
      #expect(await judge.cancellations == 1)
      #expect(try await judge.cancel([]) == [1])
    }
  }

  @Test func `what stands between two removals of all is canceled by the newer one`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      #expect(try await judge.canceling() == nil)
      _ = try await judge.judge([removal(1, at: 1), Judged(id: 2, offset: 2), removal(3, at: 3)])
      #expect(try await judge.cancel([]) == [1, 2])
      #expect(try await judge.canceling() == NotificationID(number: 3))
    }
  }

  @Test func `a flood of removals of all looks at no mailbox, and names it once in a call`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      for start in 0..<4 { _ = try await judge.judge((0..<64).map { removal(UInt64(start * 64 + $0), at: UInt64(start * 64 + $0)) }) }
      #expect(await judge.cancellations == 4)
      #expect(try await judge.command("INFO", "commandstats").calls["hkeys"] == nil)
      #expect(try await judge.cancel([]) == Array(0..<255))
    }
  }

  @Test func `a full mailbox is canceled page by page`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let requests = (0..<150 as Range<UInt64>).map { Judged(id: $0 + 1, offset: $0) }
      for start in stride(from: 0, to: 150, by: 30) { _ = try await judge.judge(Array(requests[start..<start + 30]), maximum: 1000) }
      _ = try await judge.judge([removal(999, at: 500)], maximum: 1000)
      #expect(try await judge.cancel([]) == Array(0..<150))
      #expect(try await judge.cancel(Array(requests[..<64])) == Array(64..<150))
      #expect(try await judge.cancel(Array(requests[64..<128])) == Array(128..<150))
      #expect(try await judge.cancel(Array(requests[128...])) == [])
      #expect(try await judge.mailbox() == [999])
    }
  }

  @Test func `the floor stays through registrations, for its own application`() async throws {
    try await TestJudge.with { (judge) async throws in
      let owner = Owner(user: 1, since: 5, application: TestJudge.application)
      try await judge.apply(owner, offset: 1)
      _ = try await judge.judge([removal(1, at: 10)])
      let late = Judged(id: 2, offset: 2)
      try await judge.apply(Owner(user: 2, since: 6, application: TestJudge.application), offset: 2)
      #expect(try await judge.judge([late]) == [.canceled(by: 1)], "another person has the device")
      try await judge.apply(Owner(user: 2, since: 4, application: TestJudge.application), offset: 1)
      #expect(try await judge.judge([late]) == [.canceled(by: 1)], "an earlier registration came later")
      try await judge.apply(Owner(user: 2, since: 7, application: 99), offset: 3)
      #expect(try await judge.floor() == nil)
      #expect(try await judge.judge([late], application: 99) == [applied(late)], "another application's notifications")
      try await judge.apply(nil, offset: 4)
      try await judge.apply(owner, offset: 5)
      #expect(try await judge.floor()?.revision == removal(1, at: 10).revision)
      #expect(try await judge.judge([Judged(id: 3, offset: 3)]) == [.canceled(by: 1)], "the device signed out and in again")
    }
  }

  @Test func `what a removal named by its apns-id does not come though it is judged later`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let name = "\(NotificationID(number: 1))"
      var (lower, upper) = (
        Judged(id: 7, collapse: name, timestamp: 1010, offset: 1, withdraws: 1),
        Judged(
          id: 8, collapse: "\(NotificationID(number: 2))".uppercased(), timestamp: 1010, offset: 2, withdraws: 2)
      )
      (lower.partition, upper.partition) = (1, 1)
      #expect(try await judge.judge([lower, upper]) == [applied(lower), applied(upper)])
      let late = [Judged(id: 1, offset: 5), Judged(id: 2, offset: 6), Judged(id: 3, offset: 7)]
      #expect(try await judge.judge(late) == [.stale(by: 7), .stale(by: 8), applied(late[2])])
      let newer = Judged(id: 1, timestamp: 1011, offset: 8)
      #expect(try await judge.judge([newer]) == [applied(newer)], "it was published after the removal")
    }
  }

  @Test func `extensions are not called for what a removal of all cancels`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      _ = try await judge.judge([removal(1, at: 10)])
      #expect(try await judge.look(Judged(id: 2, offset: 2)) == .settled)
      #expect(try await judge.look(Judged(id: 2, offset: 2, isOfPending: true)) == .open)
      #expect(try await judge.look(Judged(id: 3, offset: 11)) == .open)
    }
  }

  @Test(arguments: [true, false])
  func `a removal of what was opened takes it and nothing newer, and it does not come again`(_ isCollapsed: Bool) async throws {
    try await TestJudge.with { (judge) async throws in
      let name = isCollapsed ? "x" : "\(NotificationID(number: 1))"
      let opened = Judged(id: 1, collapse: isCollapsed ? "x" : "", offset: 5)
      var removal = Judged(id: 2, collapse: name, offset: 5, isBounded: true)
      if !isCollapsed { removal.withdraws = 1 }
      let later = Revision(timestamp: 1001, partition: 0, offset: 5)
      func removed(_ device: String) async throws {
        var (opened, removal) = (opened, removal)
        (opened.device, removal.device) = (device, device)
        #expect(try await judge.judge([removal]) == [.again(revision: later, superseded: 1, presence: false)])
        // The window of ids has forgotten it, and its record is read once more.
        try await judge.command("HDEL", await judge.device(device), "w")
        #expect(try await judge.judge([opened]) == [.stale(by: 2)])
        #expect(try await judge.mailbox(device) == [2])
      }
      // It waits for this device.
      try await judge.register("a")
      #expect(try await judge.judge([opened, removal]).last == .new(revision: later, superseded: 1, presence: false))
      if isCollapsed { try await removed("a") }
      #expect(try await judge.mailbox("a") == [2])
      // This device has it already.
      try await judge.register("b")
      var (shown, other) = (opened, removal)
      (shown.device, other.device) = ("b", "b")
      _ = try await judge.judge([shown])
      try await judge.delete(shown.revision, ofRequest: 1, token: "b")
      let said = try await judge.judge([other])
      #expect(said == [.new(revision: isCollapsed ? later : shown.revision, superseded: nil, presence: false)])
      try await judge.command("HDEL", await judge.device("b"), "w")
      #expect(try await judge.judge([shown]) == [.stale(by: 2)])
      #expect(try await judge.mailbox("b") == [2])
    }
  }

  @Test func `a removal whose bound is the revision of a notification that it does not name leaves it`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let other = Judged(id: 1, collapse: "other", offset: 5)
      let removal = Judged(id: 2, collapse: "x", offset: 5, isBounded: true)
      let later = Revision(timestamp: 1001, partition: 0, offset: 5)
      #expect(try await judge.judge([other, removal]).last == .new(revision: later, superseded: nil, presence: false))
      #expect(try await judge.judge([removal]) == [.again(revision: later, superseded: nil, presence: false)])
      #expect(try await judge.mailbox() == [1, 2])
    }
  }

  @Test func `a removal of what waits for a place takes that, and nothing that waits for its device`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let placed = Judged(id: 1, collapse: "x", offset: 5, isOfPending: true)
      let published = Judged(id: 2, collapse: "y", offset: 6)
      let removals = ([(3, placed), (4, published)] as [(UInt64, Judged)]).map { id, other in
        Judged(id: id, collapse: other.collapse, offset: other.offset, isOfPending: true, isBounded: true)
      }
      let later = Revision(timestamp: 1001, partition: 0, offset: 5)
      let said = try await judge.judge([placed, published] + removals)
      #expect(Array(said.suffix(2)) == [.new(revision: later, superseded: 1, presence: false), .stale(by: 2)])
      #expect(try await judge.mailbox() == [2, 3])
    }
  }

  @Test func `a removal of what waits for a place leaves a notification without a collapse id that waits for its device`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      var removals: [Judged] = []
      for id in 1...2 as ClosedRange<UInt64> {
        let name = "\(NotificationID(number: id))"
        removals.append(Judged(id: id + 2, collapse: name, offset: id + 7, withdraws: id, isOfPending: true, isBounded: true))
      }
      _ = try await judge.judge([Judged(id: 1, offset: 5), Judged(id: 2, offset: 6, isOfPending: true)] + removals)
      #expect(try await judge.mailbox() == [1, 3, 4])
    }
  }

  @Test func `a removal of what was opened leaves an update that came before it or comes after it`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let (opened, update) = (Judged(id: 1, collapse: "x", offset: 5), Judged(id: 2, collapse: "x", timestamp: 1007, offset: 6))
      let removal = Judged(id: 3, collapse: "x", offset: 5, isBounded: true)
      _ = try await judge.judge([opened, update])
      #expect(try await judge.judge([removal]) == [.stale(by: 2)])
      #expect(try await judge.mailbox() == [2])
      try await judge.register("b")
      var requests = [opened, removal, update]
      for index in requests.indices { requests[index].device = "b" }
      #expect(try await judge.judge(requests).last == .new(revision: update.revision, superseded: 3, presence: false))
      #expect(try await judge.mailbox("b") == [2])
    }
  }

  /// A history of one device: notifications with and without a collapse id, and removals of each kind, from two partitions.
  private static func history(_ random: inout SeededRandom) -> [Judged] {
    var records: [Judged] = []
    for partition in 0..<2 as Range<UInt32> {
      var timestamp: UInt64 = 1000
      for offset in 0..<12 as Range<UInt64> {
        timestamp += UInt64.random(in: 1...4, using: &random)
        var record = Judged(id: UInt64(partition) * 100 + offset + 1, timestamp: timestamp, partition: partition, offset: offset)
        switch Int.random(in: 0..<10, using: &random) {
        case 0: record.removesAll = true
        case 1:
          record.withdraws = UInt64(Int.random(in: 0..<2, using: &random)) * 100 + UInt64.random(in: 1...12, using: &random)
          record.collapse = "\(NotificationID(number: record.withdraws ?? 0))"
        case 2...5: record.collapse = "c\(Int.random(in: 0..<3, using: &random))"
        case 6: record.isOfPending = true
        default: break
        }
        records.append(record)
      }
    }
    return records
  }

  /// The ids that a device may still be sent of a history: the rule, without any order of judging.
  private static func left(of records: [Judged]) -> Set<UInt64> {
    let floor = records.filter(\.removesAll).map(\.revision).max { $0.isKeptBefore($1) }
    return Set(
      records.filter { record in
        if let floor, record.revision.isKeptBefore(floor), !record.isOfPending { return false }
        if record.removesAll { return true }
        return !records.contains { other in
          guard record.revision.isKeptBefore(other.revision) else { return false }
          if !record.collapse.isEmpty { return other.collapse == record.collapse }
          return other.withdraws == record.id && record.withdraws == nil
        }
      }.map(\.id))
  }

  @Test(arguments: 0..<(isComplete ? 30 : 6) as Range<UInt64>)
  func `a device is left with the same after any order of notifications and removals`(seed: UInt64) async throws {
    try await TestJudge.with { (judge) async throws in
      var random = SeededRandom(seed: seed)
      let records = Self.history(&random)
      let expected = Self.left(of: records)
      let revisions = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
      for device in ["a", "b", "c"] {
        try await judge.register(device)
        var order = records + records.shuffled(using: &random).prefix(8)
        if device != "a" { order.shuffle(using: &random) }
        for index in order.indices { order[index].device = device }
        var (start, floor) = (0, Revision?.none)
        while start < order.count {
          let count = min(Int.random(in: 1...5, using: &random), order.count - start)
          let requests = Array(order[start..<start + count])
          for (request, said) in zip(requests, try await judge.judge(requests)) {
            #expect(said != .duplicate && said != .unreadable && said != .unknown, "seed \(seed), \(request)")
            if case .new(let revision, _, _) = said, let floor, revision.isKeptBefore(floor), !request.isOfPending {
              Issue.record("seed \(seed): \(request) came below the floor \(floor)")
            }
            if request.removesAll, floor?.isKeptBefore(request.revision) ?? true { floor = request.revision }
          }
          start += count
        }
        let kept = try await judge.mailbox(device)
        let floors = try await judge.floor(device)?.revision
        #expect(floors == records.filter(\.removesAll).map(\.revision).max { $0.isKeptBefore($1) }, "seed \(seed)")
        // What lies below the floor stays until its event is durable; a session cancels it.
        let sendable = kept.filter { id in
          guard let record = revisions[id] else { return true }
          return record.isOfPending || floors.map { !record.revision.isKeptBefore($0) } ?? true
        }
        #expect(sendable == expected, "seed \(seed), device \(device)")
      }
    }
  }
}
