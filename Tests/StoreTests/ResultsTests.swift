import Notifications
import Redis
import TestSupport
import Testing

@testable import Store

@Suite struct ResultsTests {
  /// What is looked up before the extensions are called is what the judge says afterwards.
  @Test(arguments: 0..<(isComplete ? 12 : 4)) func aRequestIsSettledWhereTheJudgeWouldShowItToNobody(seed: UInt64) async throws {
    try await TestJudge.with(buckets: 3) { (judge) async throws in
      var random = SeededRandom(seed: seed)
      try await judge.register("a", user: 5, since: 990)
      try await judge.register("b", user: 5, since: 990, isConnected: true)
      var (settled, open) = (0, 0)
      for step in 0..<150 {
        let request = Judged(
          device: ["a", "b", "c"].randomElement(using: &random) ?? "a", id: UInt64.random(in: 1...60, using: &random),
          collapse: ["", "", "x", "y"].randomElement(using: &random) ?? "", timestamp: UInt64.random(in: 1_000...1_010, using: &random),
          partition: UInt32.random(in: 0...1, using: &random), offset: UInt64.random(in: 1...80, using: &random),
          user: [0, 0, 5, 6].randomElement(using: &random) ?? 0)
        let standing = try await judge.look(request)
        let said = try await judge.judge([request])[0]
        switch said {
        case .new:
          #expect(standing == .open, "step \(step)")
          open += 1
        case .again(_, _, presence: true):
          #expect(standing == .open, "step \(step): it goes to the device once more")
        case .again where request.device == "b": break
        default:
          #expect(standing == .settled, "step \(step): \(said)")
          settled += 1
        }
      }
      #expect(settled > 20 && open > 20)
    }
  }

  @Test func whatIsRememberedIsFoundByItsSourceUntilItIsForgotten() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      let (one, other) = (Judged(id: 1, offset: 1), Judged(id: 1, offset: 2))
      try await judge.remember([1, 2, 3], of: one)
      #expect(try await judge.look(one) == .remembered([1, 2, 3]))
      #expect(try await judge.look(other) == .open)
      // Also when it was judged meanwhile: what it ends in is emitted again with the same content.
      _ = try await judge.judge([one])
      #expect(try await judge.look(one) == .remembered([1, 2, 3]))
      // Who was given it first has remembered it first.
      try await judge.remember([4], of: one, as: "another lane")
      #expect(try await judge.look(one) == .remembered([1, 2, 3]))
    }
  }

  @Test func aResultIsKeptForAWhileOnly() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.remember([1], of: Judged(id: 1, offset: 1))
      var keys: [RedisValue] = []
      // Nobody waits for the answer to what it remembers.
      await eventually("Redis has it") {
        keys = (try? await judge.command("KEYS", "x*").array) ?? []
        return keys.count == 1
      }
      let left = try await judge.command("PTTL", .bytes(keys.first?.bytes ?? [])).integer ?? -1
      #expect((1...60_000).contains(left))
    }
  }

  @Test func aBucketThatRedisHasLostSaysNothing() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.register()
      try await judge.command("DEL", "k{0}")
      await #expect(throws: StoreError.bucketLost) { try await judge.look(Judged(id: 1, offset: 1)) }
    }
  }

  @Test func aDeviceThatCannotBeReadIsTheJudgesToTellOf() async throws {
    try await TestJudge.with { (judge) async throws in
      try await judge.command("SET", judge.device("a"), "text")
      #expect(try await judge.look(Judged(id: 1, offset: 1)) == .open)
    }
  }

  @Test func aPersonWithoutDevicesIsSettled() async throws {
    try await TestJudge.with { (judge) async throws in
      #expect(try await judge.look(Judged(id: 1, offset: 1), person: "ada") == .settled)
      try await judge.command("ZADD", "u{0}com.example.shop/ada", 0, "token")
      #expect(try await judge.look(Judged(id: 1, offset: 1), person: "ada") == .open)
    }
  }
}
