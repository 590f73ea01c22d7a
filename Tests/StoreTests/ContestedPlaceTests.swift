import Notifications
import Redis
import TestSupport
import Testing

@testable import Store

/// Two requests of one place: every producer can write an origin, and name another request's place.
@Suite struct ContestedPlaceTests {
  private static let purposes: [RequestEntry.Redrive] = [.redriven, .unfinished]

  /// A request at offset 5, and another one that names this place as its first.
  private static func pair(_ purpose: RequestEntry.Redrive, collapse: String = "", forged time: UInt64 = 1000) -> (Judged, Judged) {
    (
      Judged(id: 1, collapse: collapse, offset: 5),
      Judged(redrive: purpose, id: 2, collapse: collapse, timestamp: time, offset: 5)
    )
  }

  private func applied(_ request: Judged, superseded: UInt64? = nil) -> Said {
    .new(revision: request.revision, superseded: superseded, presence: true)
  }

  @Test(arguments: ["", "x"], purposes)
  func `an origin never takes another request's place in the mailbox`(collapse: String, purpose: RequestEntry.Redrive) async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      let (real, forged) = Self.pair(purpose, collapse: collapse)
      #expect(try await judge.judge([real, forged]) == [applied(real), .stale(by: 1)])
      #expect(try await judge.judge([forged]) == [.stale(by: 1)], "the same verdict each time")
      #expect(try await judge.mailbox() == [1])
      #expect(try await judge.judge([real]) == [.again(revision: real.revision, superseded: nil, presence: true)])
      // Two origins of one place: the first one stays.
      try await judge.command("DEL", await judge.mailboxKey("a"), await judge.device("a"))
      try await judge.register(isConnected: true)
      var other = forged
      other.id = 3
      #expect(try await judge.judge([forged, other]) == [applied(forged), .stale(by: 2)])
      #expect(try await judge.mailbox() == [2])
    }
  }

  @Test(arguments: purposes, [1, 999, 1001, 5_000] as [UInt64])
  func `an origin with another time takes no collapse id from the request of its place`(
    purpose: RequestEntry.Redrive, time: UInt64
  ) async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      let (real, forged) = Self.pair(purpose, collapse: "x", forged: time)
      #expect(try await judge.judge([real]) == [applied(real)])
      #expect(try await judge.look(forged) == .settled)
      #expect(try await judge.judge([forged]) == [.stale(by: 1)])
      #expect(try await judge.mailbox() == [1])
      // Whoever has acknowledged it has not acknowledged the other one.
      try await judge.command("DEL", await judge.mailboxKey("a"))
      #expect(try await judge.judge([forged]) == [.stale(by: 1)])
      #expect(try await judge.mailbox() == [])
    }
  }

  @Test(arguments: ["", "x"], purposes)
  func `the request without an origin wins its place though the other one came first`(
    collapse: String, purpose: RequestEntry.Redrive
  ) async throws {
    try await TestJudge.with { (judge) async throws in
      for time in collapse.isEmpty ? [1000] : [900, 1000, 1100] as [UInt64] {
        try await judge.command("DEL", await judge.mailboxKey("a"), await judge.device("a"))
        try await judge.register(isConnected: true)
        let (real, forged) = Self.pair(purpose, collapse: collapse, forged: time)
        #expect(try await judge.judge([forged]) == [applied(forged)])
        #expect(try await judge.look(real) == .open)
        // Newer than the other one, which the device may have been shown by now, and with a key of its own.
        let raised = time < 1000 ? real.revision : Revision(timestamp: time + 1, partition: 0, offset: 5)
        #expect(try await judge.judge([real]) == [.new(revision: raised, superseded: 2, presence: true)])
        #expect(try await judge.mailbox() == [1])
        let repeated = Said.again(
          revision: collapse.isEmpty ? real.revision : raised, superseded: collapse.isEmpty ? nil : 2, presence: !collapse.isEmpty)
        #expect(try await judge.judge([real]) == [repeated])
        #expect(try await judge.mailbox() == [1])
        let newer = Judged(id: 9, collapse: collapse, timestamp: 1000, offset: 6)
        guard case .new = try await judge.judge([newer])[0] else {
          Issue.record("what comes behind them is not newer")
          return
        }
      }
    }
  }

  /// The first record of a request may have been written by a broker whose clock is ahead of the others'.
  @Test(arguments: ["", "x"], purposes)
  func `a record that comes again with an earlier time finds its request`(collapse: String, purpose: RequestEntry.Redrive) async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      let first = Judged(id: 1, collapse: collapse, offset: 5)
      let again = Judged(redrive: purpose, id: 1, collapse: collapse, timestamp: 700, offset: 5)
      #expect(try await judge.judge([first]) == [applied(first)])
      let repeated = Said.again(revision: first.revision, superseded: nil, presence: true)
      #expect(try await judge.judge([again, again]) == [repeated, repeated])
      #expect(try await judge.mailbox() == [1])
      #expect(try await judge.command("HLEN", await judge.mailboxKey("a")).integer == 1)
    }
  }

  @Test func `a repeat is not delivered where another request has its place by now`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register(isConnected: true)
      let (real, forged) = Self.pair(.redriven)
      _ = try await judge.judge([real])
      try await judge.delete(real.revision, ofRequest: 1)
      #expect(try await judge.mailbox() == [])
      #expect(try await judge.judge([forged]) == [applied(forged)])
      // Its acknowledgement would delete the other one.
      #expect(try await judge.judge([real]) == [.again(revision: real.revision, superseded: nil, presence: false)])
      #expect(try await judge.mailbox() == [2])
    }
  }

  @Test func `what an event says of one request deletes no other`() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let (real, forged) = Self.pair(.redriven)
      _ = try await judge.judge([real])
      try await judge.delete(forged.revision, ofRequest: forged.id)
      #expect(try await judge.mailbox() == [1])
      try await judge.delete(real.revision, ofRequest: real.id)
      #expect(try await judge.mailbox() == [])
    }
  }

  /// Requests and origins of any places, in any order and several times: each request is in the mailbox, or it was said to have lost its place.
  @Test(arguments: 0..<(isComplete ? 20 : 4) as Range<UInt64>)
  func `no request vanishes, whatever places origins name`(seed: UInt64) async throws {
    try await TestJudge.with { (judge) async throws in
      var random = SeededRandom(seed: seed)
      var requests = (0..<10 as Range<UInt64>).map { Judged(id: $0, timestamp: 1000 + $0 / 2, offset: $0) }
      for id in 10..<30 as Range<UInt64> {
        let place = UInt64.random(in: 0..<10, using: &random)
        let time = 1000 + place / 2 + UInt64.random(in: 0...2, using: &random)
        requests.append(Judged(redrive: Self.purposes.randomElement(using: &random), id: id, timestamp: time, offset: place))
      }
      try await judge.register()
      var lost: Set<UInt64> = []
      for request in requests.shuffled(using: &random) + requests.shuffled(using: &random) {
        switch try await judge.judge([request])[0] {
        case .new(_, let superseded, _):
          lost.remove(request.id)
          if let superseded { lost.insert(superseded) }
        case .stale: lost.insert(request.id)
        case .again: break
        case let said: Issue.record("seed \(seed): \(said)")
        }
      }
      let kept = try await judge.mailbox()
      #expect(kept.isSuperset(of: 0..<10), "seed \(seed): a request without an origin is gone")
      #expect(kept.union(lost) == Set(0..<30), "seed \(seed)")
      #expect(kept.isDisjoint(with: lost), "seed \(seed)")
    }
  }
}
