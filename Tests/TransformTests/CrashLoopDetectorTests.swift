import EventLoop
import Redis
import TestSupport
import Testing

@testable import Store
@testable import Transform

/// Partitions that workers begin again and again.
@Suite struct CrashLoopDetectorTests {
  private static let partition = MarkedPartition.requests(3)

  private actor Lane {
    nonisolated let loop = EventLoop(name: "crashes")
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
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
    }

    func start(_ address: RedisAddress) async throws {
      let shards = Shards(on: loop, StoreConfiguration(address, buckets: 1), clientName: "test")
      let detector = CrashLoopDetector(on: loop, CrashLoops(shards), healthyMilliseconds: 20)
      parts = Parts(shards: shards, detector: detector)
      detector.owner = owner
      shards.start()
      try await shards.waitUntilUp(withinMilliseconds: 20_000)
    }

    /// A worker begins the partition at an offset: whether it is suspected.
    func begin() async throws -> Bool { try await #require(parts).detector.began([(partition, 7)]).isBisecting }

    func watch() { parts?.detector.watch(partition, 0) }

    /// Waits until the lane was asked so many times more, and has said this each time.
    func asked(_ count: Int, isIdle: Bool) async {
      owner.isIdle = isIdle
      let end = owner.questions + count
      while owner.questions < end { await loop.sleep(milliseconds: 5) }
    }

    func close() {
      parts?.detector.close()
      parts?.shards.close()
    }
  }

  @Test(.timeLimit(.minutes(1))) func aPartitionIsSuspectedUntilNothingOfItIsUnderWay() async throws {
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

  /// While Redis misses a registration the requests are held back: a request that ends workers has not been read.
  @Test(.timeLimit(.minutes(2))) func aPartitionStaysSuspectedWhileItsRequestsAreHeldBack() async throws {
    let token = TransformFixture.tokens(in: [(0, 1)])[0]
    let device = TransformFixture.keys.device(token)
    try await TransformFixture.with(
      {
        $0.healthyMilliseconds = 10
        $0.tries = .max
      },
      before: { lane in
        // A registration that cannot be applied as long as somebody else's value lies in the device's place.
        try await lane.probe.command("SET", .text(device), "no hash")
        try await lane.publishRegistrations([token], for: "ada")
      }
    ) { lane in
      let counted = { try await lane.probe.command("HGET", .text(Keys.tries), "q0").bytes != nil }
      await lane.eventually("the registration fails again and again") { lane.metric("carillon_transform_retries_total") >= 3 }
      #expect(try await counted(), "nothing shows that its requests do no harm")
      try await lane.probe.command("DEL", .text(device))
      await lane.eventually("it is idle with its requests") { try await !counted() }
    }
  }
}
