import Notifications
import Redis
import TestSupport
import Testing

@testable import Store

/// Mailbox entries of a newer program, on a real Redis: every script leaves them alone, and goes on with the others.
@Suite struct NewerEntriesTests {
  /// Gives entries the version after this program's. Answers their bytes.
  @discardableResult
  private func age(_ requests: [Judged], _ judge: TestJudge) async throws -> [[UInt8]] {
    var newer: [[UInt8]] = []
    for request in requests {
      let field = RedisArgument.bytes(request.revision.withBytes { Array($0) })
      let bytes = NewerLayout.entry(try #require(try await judge.command("HGET", judge.mailboxKey("a"), field).bytes))
      try await judge.command("HSET", judge.mailboxKey("a"), field, .bytes(bytes))
      newer.append(bytes)
    }
    return newer
  }

  private func kept(_ requests: [Judged], _ judge: TestJudge) async throws -> [[UInt8]] {
    var kept: [[UInt8]] = []
    for request in requests {
      let field = RedisArgument.bytes(request.revision.withBytes { Array($0) })
      kept.append(try await judge.command("HGET", judge.mailboxKey("a"), field).bytes ?? [])
    }
    return kept
  }

  @Test func `the scripts know the version that the program reads`() {
    for file in ["mailbox-page", "mailbox-evict", "mailbox-cancel", "judge"] {
      #expect(RedisScript(file: file).source.contains("local ENTRY = \(Layout.entry.newest)\n"), "\(file)")
    }
  }

  @Test func `pages leave out what a newer program has written, and are as long as without it`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let requests = (1...9 as ClosedRange<UInt64>).map { Judged(id: $0, timestamp: 1000 + $0, offset: $0) }
      _ = try await judge.judge(requests)
      let newer = [requests[0], requests[1], requests[2], requests[4]]
      let bytes = try await age(newer, judge)
      #expect(try await judge.page(count: 2, skipping: 0) == [4, 6])
      #expect(try await judge.page(count: 2, skipping: 2) == [7, 8])
      #expect(try await judge.page(count: 5, skipping: 0) == [4, 6, 7, 8, 9])
      #expect(try await judge.page(count: 6, skipping: 0) == [4, 6, 7, 8, 9])
      #expect(try await judge.newer(count: 6) == 4)
      #expect(try await kept(newer, judge) == bytes)
    }
  }

  @Test func `a full mailbox evicts around what a newer program has written`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let requests = (1...9 as ClosedRange<UInt64>).map { Judged(id: $0, timestamp: 1000 + $0, offset: $0) }
      _ = try await judge.judge(requests)
      let bytes = try await age(Array(requests.prefix(4)), judge)
      // Three are too many, and the oldest are not this program's.
      #expect(try await judge.evict([], maximum: 6) == [5, 6, 7])
      #expect(try await judge.evict(requests[4...6], maximum: 6) == [])
      #expect(try await kept(Array(requests.prefix(4)), judge) == bytes)
      #expect(try await judge.evict([], maximum: 0) == [8, 9])
      #expect(try await judge.evict(requests[7...8], maximum: 0) == [], "nothing is left that this program may evict")
      #expect(try await kept(Array(requests.prefix(4)), judge) == bytes)
    }
  }

  @Test func `a removal cancels around what a newer program has written`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let requests = (1...4 as ClosedRange<UInt64>).map { Judged(id: $0, timestamp: 1000 + $0, offset: $0) }
      _ = try await judge.judge(requests)
      let newer = [requests[0], requests[2]]
      let bytes = try await age(newer, judge)
      // By its apns-id, and then all.
      _ = try await judge.judge([Judged(id: 5, collapse: "\(NotificationID(number: 1))", timestamp: 1005, offset: 5, withdraws: 1)])
      _ = try await judge.judge([Judged(id: 6, timestamp: 1006, offset: 6, removesAll: true)])
      #expect(try await judge.cancel([]) == [2, 4, 5])
      #expect(try await kept(newer, judge) == bytes)
    }
  }

  @Test func `the cluster withdraws a newer program's location request by its place, and nothing else of a newer program`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let requests = [Judged(id: 1, collapse: "x", offset: 5, isOfPending: true), Judged(id: 2, collapse: "y", offset: 6)]
      _ = try await judge.judge(requests)
      try await age(requests, judge)
      let withdrawal = Judged(id: 3, collapse: "x", offset: 5, isOfPending: true, isBounded: true)
      let removal = Judged(id: 4, collapse: "y", offset: 7, isOfPending: true, isBounded: true)
      let later = Revision(timestamp: 1001, partition: 0, offset: 5)
      #expect(
        try await judge.judge([withdrawal, removal]) == [.new(revision: later, superseded: 1, presence: false), .stale(by: 2)])
      #expect(try await judge.mailbox() == [2, 3])
    }
  }

  @Test func `a bucket of a newer program has no markers that this one raises`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.command("HSET", "k{0}", "i", .bytes([2] + [UInt8](repeating: 7, count: 8)))
      #expect(try await judge.markersFailure() == .newer(.bucket))
      try await judge.command("HSET", "k{0}", "i", .bytes([1] + [UInt8](repeating: 7, count: 8)))
      #expect(try await judge.markersFailure() == nil)
    }
  }
}

/// The second marker of a partition, without requests that wait for a newer program.
@Suite struct ReadableMarkerTests {
  @Test func `the second marker counts where it is farther, of the same incarnation, and in all buckets`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.command("HSET", "k{0}", "i", .bytes([1] + [UInt8](repeating: 7, count: 8)))
      func reach(_ partition: Int32 = 0) async throws -> Int64? { try await judge.readableOffset(in: partition) }
      try await judge.raise(.requests(0), Marker(offset: 5, timestamp: 50, incarnation: 1))
      #expect(try await reach() == 5)
      try await judge.raise(.readableRequests(0), Marker(offset: 9, timestamp: 90, incarnation: 1))
      #expect(try await reach() == 9)
      // Another owner of the partition begins again, and says what it has applied.
      try await judge.raise(.readableRequests(0), Marker(offset: 7, timestamp: 70, incarnation: 1))
      #expect(try await reach() == 7)
      try await judge.command("HDEL", "k{0}", .text(MarkedPartition.readableRequests(0).field))
      #expect(try await reach() == 5)
      try await judge.raise(.readableRequests(0), Marker(offset: 9, timestamp: 90, incarnation: 0))
      #expect(try await reach() == 5, "it is of the deleted topic")
      try await judge.raise(.readableRequests(0), Marker(offset: 3, timestamp: 30, incarnation: 1))
      #expect(try await reach() == 5)
      try await judge.raise(.readableRequests(1), Marker(offset: 9, timestamp: 90, incarnation: 1))
      #expect(try await reach(1) == 0, "nothing is known of the partition's topic")
      let other = Marker(offset: 99, timestamp: 1, incarnation: 1)
      try await judge.command("HSET", "k{0}", .text("q0/\(Layout.schedule.newest + 1)"), .bytes(other.bytes))
      #expect(try await reach() == 5, "who reads newer schedules waits for other requests")
      try await judge.command("DEL", "k{0}")
      try await judge.raise(.readableRequests(0), Marker(offset: 9, timestamp: 90, incarnation: 1))
      #expect(try await judge.command("EXISTS", "k{0}").integer == 0, "a bucket that is lost stays lost")
    }
  }
}

extension TestJudge {
  /// How far a partition is applied but for requests that wait for a newer program.
  fileprivate func readableOffset(in partition: Int32) async throws -> Int64? {
    guard let shards else { return nil }
    return try await Markers(shards).readableOffsets(of: [partition])?[partition]
  }

  /// Sets a marker in all buckets that Redis has.
  fileprivate func raise(_ partition: MarkedPartition, _ marker: Marker) async throws {
    guard let shards else { return }
    let markers = Markers(shards)
    _ = await markers.read([])
    await withCheckedContinuation { continuation in
      markers.write([MarkerChange(partition, forcing: marker)]) { _ in continuation.resume() }
    }
  }

  /// How many entries of a newer program a page has left out.
  fileprivate func newer(count: Int) async throws -> Int {
    guard let shards else { return -1 }
    let mailboxes = Mailboxes(shards)
    return try await withCheckedContinuation { continuation in
      mailboxes.page(of: "a", count: count) { answer in continuation.resume(returning: answer.map(\.newer)) }
    }.get()
  }

  /// Why the markers cannot be read.
  fileprivate func markersFailure() async throws -> StoreError.Code? {
    guard let shards else { return nil }
    let markers = Markers(shards)
    let found = await markers.read([])
    #expect((found == nil) == (markers.failure != nil))
    return markers.failure?.code
  }
}
