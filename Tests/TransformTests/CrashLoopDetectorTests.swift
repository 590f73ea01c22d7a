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

    func becomeIdle() { owner.isIdle = true }

    /// Waits until the lane was asked so many times more.
    func asked(_ count: Int) async {
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
      await lane.asked(3)
      #expect(try await lane.begin(), "what was under way all the while may be what ends workers")
      await lane.becomeIdle()
      await lane.asked(1)
      #expect(try await !lane.begin(), "it was idle once, and did no harm")
      await lane.close()
      await lane.loop.close()
    }
  }
}
