import EventLoop
import Notifications
import Redis
import TestSupport
import Testing

@testable import Store
@testable import Transform

/// Partitions that workers begin again and again.
@Suite struct CrashLoopDetectorTests {
  private static let partition = MarkedPartition.requests(3)

  private actor Lane: LoopActor {
    nonisolated let loop = EventLoop(name: "crashes")
    private var parts: Parts?
    private let owner = Owner()

    /// What is made on the loop.
    private struct Parts {
      let shards: Shards
      let detector: CrashLoopDetector
    }

    private final class Owner: CrashLoopDetectorOwner {
      var isIdle = false
      var questions = 0

      func isIdle(_ index: Int) -> Bool {
        questions += 1
        return isIdle
      }

      func foundHarmless(_ partitions: [MarkedPartition]) {}

      var refusals = 0
      func redisRefusedWrites(_ error: StoreError) { refusals += 1 }

      var waker: @Sendable () -> Void { {} }
    }

    func start(_ address: RedisAddress) async throws {
      var configuration = StoreConfiguration(address, buckets: 1)
      configuration.callDeadlineMilliseconds = hangMilliseconds
      let shards = Shards(on: loop, configuration, clientName: "test")
      let detector = CrashLoopDetector(on: loop, CrashLoops(shards), CrashLoopPermit(), healthyMilliseconds: 20)
      parts = Parts(shards: shards, detector: detector)
      detector.owner = owner
      shards.start()
      try await shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
    }

    /// A worker begins the partition at an offset: whether it is suspected.
    func begin() async throws -> Bool { try await !#require(parts).detector.began([(partition, 7)]).isEmpty }

    /// A worker begins the partition: what it is to do about the record at which it begins.
    func remedy() async throws -> CrashLoopDetector.Remedy? {
      try await #require(parts).detector.began([(partition, 7)])[partition]?.remedies[7]
    }

    /// The lane's turn comes, and it notes a group.
    func note(_ group: CrashLoopDetector.Group) async {
      guard let detector = parts?.detector, detector.takePermit() else { return }
      await withCheckedContinuation { continuation in detector.note(partition, group) { continuation.resume() } }
    }

    /// Waits until the lane was told that Redis takes no writes.
    func isRefused() async { await eventually("Redis takes no writes") { owner.refusals > 0 } }

    /// The lane has no further group; Redis has been told.
    func returnPermit() async throws {
      parts?.detector.returnPermit()
      _ = try await parts?.detector.began([])
    }

    func watch() { parts?.detector.watch(partition, 0) }

    /// Waits until the lane was asked so many times more, and has said this each time.
    func asked(_ count: Int, isIdle: Bool) async {
      owner.isIdle = isIdle
      let end = owner.questions + count
      await eventually("the lane was asked") { owner.questions >= end }
    }

    func close() {
      parts?.detector.close()
      parts?.shards.close()
    }
  }

  @Test(.timeLimit(.minutes(10))) func aPartitionIsSuspectedUntilNothingOfItIsUnderWay() async throws {
    try await withRedis { redis in
      let lane = Lane()
      try await lane.start(redis.address)
      for _ in 1..<CrashLoopDetector.suspectedAfter { #expect(try await !lane.begin()) }
      await lane.watch()
      await lane.asked(3, isIdle: false)
      #expect(try await lane.begin(), "what was under way all the while may be what ends workers")
      await lane.asked(1, isIdle: true)
      #expect(try await !lane.begin(), "it was idle once, and did no harm")
      await lane.close()
      await lane.loop.close()
    }
  }

  /// A lane that starts again in place, or a partition that comes back, begins what its own process has noted: that has not ended.
  @Test(.timeLimit(.minutes(10))) func onlyTheEndOfAnotherProcessIsHeldAgainstARecordAndOnce() async throws {
    try await withRedis { redis in
      let (lane, other) = (Lane(), Lane())
      try await lane.start(redis.address)
      try await other.start(redis.address)
      _ = try await lane.begin()
      await lane.note(CrashLoopDetector.Group(first: 7, width: 1))
      for _ in 0..<2 { #expect(try await lane.remedy() == nil) }
      for _ in 0..<3 {
        #expect(
          try await other.remedy() == .withoutExtensions,
          "the process that worked on it has ended once, however often others begin")
      }
      await other.note(CrashLoopDetector.Group(first: 7, width: 1))
      #expect(try await lane.remedy() == .deadLetter)
      for lane in [lane, other] {
        await lane.close()
        await lane.loop.close()
      }
    }
  }

  @Test(
    .timeLimit(.minutes(10)),
    arguments: [["q3", "7 x"], ["q3 group", "1 1"], ["q3 group", "x"], ["q3 ended 7", "x"], ["q3 ended x", "5"]])
  func whatCannotBeReadIsNotHeldAgainstAnything(_ field: [String]) async throws {
    try await withRedis { redis in
      try await RedisProbe.with(redis.address) { probe in
        _ = try await probe.command("HSET", .text(Keys.tries), .text(field[0]), .text(field[1]))
      }
      let lane = Lane()
      try await lane.start(redis.address)
      #expect(try await lane.remedy() == nil)
      #expect(try await !lane.begin())
      await lane.close()
      await lane.loop.close()
    }
  }

  @Test(.timeLimit(.minutes(10))) func aNoteThatRedisRefusesIsToldOfAndTakenLater() async throws {
    try await withRedis { redis in
      try await RedisProbe.with(redis.address) { probe in
        let lane = Lane()
        try await lane.start(redis.address)
        try await probe.command("CONFIG", "SET", "maxmemory", "1")
        async let noted: Void = lane.note(CrashLoopDetector.Group(first: 7, width: 1))
        await lane.isRefused()
        try await probe.command("CONFIG", "SET", "maxmemory", "0")
        await noted
        let other = Lane()
        try await other.start(redis.address)
        #expect(try await other.remedy() == .withoutExtensions)
        for lane in [lane, other] {
          await lane.close()
          await lane.loop.close()
        }
      }
    }
  }

  /// What a worker does late, of a partition that has gone to another, is not in that one's way.
  @Test(.timeLimit(.minutes(10))) func aNoteIsWithdrawnOnlyByTheProcessThatMadeIt() async throws {
    try await withRedis { redis in
      let (lane, other, third) = (Lane(), Lane(), Lane())
      for lane in [lane, other, third] { try await lane.start(redis.address) }
      await lane.note(CrashLoopDetector.Group(first: 7, width: 1))
      await other.note(CrashLoopDetector.Group(first: 7, width: 1))
      try await lane.returnPermit()
      #expect(try await third.remedy() == .withoutExtensions)
      await third.note(CrashLoopDetector.Group(first: 7, width: 1))
      try await third.returnPermit()
      #expect(try await other.remedy() == .withoutExtensions, "it was finished")
      for lane in [lane, other, third] {
        await lane.close()
        await lane.loop.close()
      }
    }
  }

  /// While Redis misses a registration the requests are held back: a request that ends workers has not been read.
  @Test(.timeLimit(.minutes(10))) func aPartitionStaysSuspectedWhileItsRequestsAreHeldBack() async throws {
    let token = TransformFixture.tokens(in: [(0, 1)])[0]
    let set = TransformFixture.keys.recipients(user: "ada", application: Name(TransformFixture.application))
    try await TransformFixture.with(
      {
        $0.healthyMilliseconds = 10
        $0.tries = .max
      },
      before: { lane in
        // A registration that cannot be applied as long as somebody else's value lies in the place of its person's devices.
        try await lane.probe.command("SET", .text(set), "no set")
        try await lane.publishRegistrations([token], for: "ada")
      }
    ) { lane in
      let counted = { try await lane.probe.command("HGET", .text(Keys.tries), "q0").bytes != nil }
      await lane.eventually("the registration fails again and again") { lane.metric("carillon_transform_retries_total") >= 3 }
      #expect(try await counted(), "nothing shows that its requests do no harm")
      try await lane.probe.command("DEL", .text(set))
      await lane.eventually("it is idle with its requests") { try await !counted() }
    }
  }
}
