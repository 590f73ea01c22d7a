import EventLoop
import Redis
import Store
import TestSupport
import Testing

/// Whether a worker may judge by its clock: random offsets, and those from a real Redis.
@Suite struct ClockTrustTests {
  @Test func `a clock is wrong when it surely is, and right again when it surely is`() {
    for seed in 0..<(isComplete ? 200 : 40) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var trust = ClockTrust()
      var former: ClockTrust.Judgement?
      for _ in 0..<100 {
        let bound = ([0, 5_000, 30_000, 3_000_000] as [Int64]).randomElement(using: &random) ?? 0
        let truth = Int64.random(in: -2...2, using: &random) + (Bool.random(using: &random) ? bound : -bound)
        let wait = Int64.random(in: 0..<3, using: &random) * Int64.random(in: 0...20_000, using: &random)
        let until = Int64.random(in: 0...wait, using: &random)
        let server = Int64.random(in: 1_700_000_000_000...1_700_000_100_000, using: &random)
        let offset = ClockOffset(before: server + truth - until, server: server, after: server + truth - until + wait)
        #expect(offset.bounds.contains(truth) && offset.bounds.contains(offset.milliseconds), "seed \(seed)")
        let judgement = trust.judge(offset)
        // The model: what each offset within the bounds would be.
        let possible = Set(Self.corners(offset.bounds).map(Self.judgement))
        #expect(possible.contains(judgement), "seed \(seed)")
        // What the offset leaves open stays as it was.
        if let former, possible.contains(former) { #expect(judgement == former, "seed \(seed)") }
        former = judgement
      }
    }
  }

  private static func judgement(_ offset: Int64) -> ClockTrust.Judgement {
    switch abs(offset) {
    case ...5_000: .agrees
    case ...30_000: .differs
    default: .wrong
    }
  }

  /// Offsets of each kind that lie within the bounds.
  private static func corners(_ bounds: ClosedRange<Int64>) -> [Int64] {
    [bounds.lowerBound, bounds.upperBound] + [-30_000, -30_001, -5_000, -5_001, 0, 5_000, 5_001, 30_000, 30_001].filter(bounds.contains)
  }

  @Test func `no time is too extreme to be judged`() {
    for (before, server, after) in [(Int64.min, Int64.max, Int64.max), (.max, .min, .min), (0, .max, 0), (.max, 0, .min)] {
      var trust = ClockTrust()
      #expect(trust.judge(ClockOffset(before: before, server: server, after: after)) >= .agrees)
    }
  }

  @Test(arguments: [0, 3_000_000, -3_000_000] as [Int64])
  func `a machine's clock is compared with that of Redis`(ahead: Int64) async throws {
    try await withRedis { redis in
      var store = StoreConfiguration(redis.address)
      store.callDeadlineMilliseconds = hangMilliseconds
      store.wallClock = { WallClock.milliseconds() + ahead }
      let offset = try #require(try await Lane().offset(store))
      // Redis runs on this machine: the truth is known, whatever time the answer takes.
      #expect((offset.bounds.lowerBound - 1...offset.bounds.upperBound + 1).contains(ahead))
    }
  }

  @Test func `a Redis that does not tell its time is not compared`() async throws {
    try await withRedis { redis in
      try await RedisProbe.with(redis.address) { _ = try await $0.command("ACL", "SETUSER", "default", "-time") }
      var store = StoreConfiguration(redis.address)
      store.callDeadlineMilliseconds = hangMilliseconds
      #expect(try await Lane().offset(store) == nil)
    }
  }

  private actor Lane: LoopActor {
    nonisolated let loop = EventLoop(name: "clock")

    func offset(_ store: StoreConfiguration) async throws -> ClockOffset? {
      let shards = Shards(on: loop, store, clientName: "test")
      defer {
        shards.close()
        Task.detached { [loop] in await loop.close() }
      }
      shards.start()
      try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
      return try await shards.clockOffset()
    }
  }
}
