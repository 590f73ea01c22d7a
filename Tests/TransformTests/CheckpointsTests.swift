import EventLoop
import Redis
import Store
import TestSupport
import Testing
import Worker

@testable import Kafka
@testable import Transform

/// The markers of what a consumer of a group owns, in a Redis of its own.
@Suite struct CheckpointsTests {
  /// What was applied since the marker may be lost, and nobody rewinds a partition that is going: its next owner has to find the marker as
  /// it was.
  @Test func anUnverifiedMarkerIsNotRaisedWhileItsPartitionIsGivenUp() async throws {
    try await CheckpointsLane.with { lane in
      await lane.distrust()
      await lane.giveUp()
      // What is compared now does not see the partition any more.
      #expect(await lane.isVerified)
      #expect(await lane.raise(to: 5) == [])
      #expect(await lane.markers == [0, 0])
    }
  }

  @Test func aVerifiedMarkerIsRaisedWhileItsPartitionIsGivenUp() async throws {
    try await CheckpointsLane.with { lane in
      await lane.giveUp()
      #expect(await lane.raise(to: 5) == [5])
      #expect(await lane.markers == [5, 5])
    }
  }

  /// What is not sent is known to stand as it was: nothing has to be applied again.
  @Test func markersThatAreNotSentAreLeveledAndRewindNothing() async throws {
    try await CheckpointsLane.with { lane in
      // One more call is taken, so that the first bucket has the marker, and the second has not.
      #expect(await lane.raise(to: 5, withOthersInFlight: 65_535) == [])
      #expect(await lane.markers == [5, 0])
      #expect(await lane.signs == ["not sent"])
      #expect(await lane.isVerified)
      #expect(await lane.markers == [0, 0])
      #expect(await lane.raise(to: 6) == [6])
      #expect(await lane.markers == [6, 6])
    }
  }

  @Test func aSignThatComesDuringAComparisonRewindsWhatItCompares() async throws {
    try await CheckpointsLane.with { lane in
      #expect(await lane.raise(to: 5) == [5])
      #expect(await !lane.isVerified(distrustedMeanwhile: true))
      #expect(await lane.startsAgain)
    }
  }
}

/// A consumer whose offers are begun where the markers are, and which gives its partition up only when a test consents.
private actor CheckpointsLane: LoopActor {
  private final class Parts: ConsumerHandler, CheckpointsOwner {
    let topics = Topics(prefix: KafkaFixture.unique("checkpoints") + ".")
    let shards: Shards
    let store: Markers
    let crashes: CrashLoopDetector
    let checkpoints: Checkpoints
    var consumer: Consumer?
    var revocation: Revocation?
    var signs: [String] = []

    init(on loop: EventLoop, _ address: RedisAddress) {
      var configuration = StoreConfiguration(address, buckets: 2)
      configuration.callDeadlineMilliseconds = 60_000
      shards = Shards(on: loop, configuration, clientName: "test")
      store = Markers(shards)
      crashes = CrashLoopDetector(on: loop, CrashLoops(shards), CrashLoopPermit(), healthyMilliseconds: 60_000)
      checkpoints = Checkpoints(store, crashes, topics)
      checkpoints.owner = self
    }

    func suspected(_ partition: MarkedPartition, _ suspicion: CrashLoopDetector.Suspicion) {}
    func startedAgain(_ partition: MarkedPartition) {}
    func rewinds(_ partition: TopicPartition, from: Int64, to: Int64) { signs.append("rewinds") }
    func markersDiffer() { signs.append("differ") }
    func markersUnreadable(_ places: [String]) { signs.append("unreadable") }
    func markersNotSent() { signs.append("not sent") }
    func redisRefusedWrites(_ error: StoreError) { signs.append("refused") }
    func markersRaised(_ partitions: Int) {}

    func consumerReceived(_ batch: RecordBatch) {}
    func consumerAssigned(_ partitions: [AssignedPartition]) {}
    func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { self.revocation = revocation }
    func consumerFailed(_ error: KafkaError) {}
  }

  nonisolated let loop = EventLoop(name: "checkpoints")
  private var parts: Parts?
  private var partition: AssignedPartition?
  private var leaving: Task<Void, Never>?

  /// Gives `body` a lane that owns a partition, and ends it afterwards.
  static func with(_ body: @Sendable (CheckpointsLane) async throws -> Void) async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      try await withRedis { redis in
        let lane = CheckpointsLane()
        var failure: (any Error)?
        do {
          try await lane.begin(kafka, redis.address)
          try await body(lane)
        } catch { failure = error }
        await lane.end()
        await lane.loop.close()
        if let failure { throw failure }
      }
    }
  }

  private func begin(_ kafka: KafkaFixture, _ address: RedisAddress) async throws {
    let parts = Parts(on: loop, address)
    self.parts = parts
    try kafka.embedded?.createTopic(parts.topics.requests, partitions: 1)
    parts.shards.start()
    try await parts.shards.waitUntilUp(withinMilliseconds: hangMilliseconds)
    var options = Consumer.Options(group: "checkpoints")
    options.offersPartitions = true
    options.revocationTimeoutMilliseconds = 60_000
    let configuration = kafka.configuration.merging(["session.timeout.ms": "60000"])
    let consumer = try Consumer(on: loop, configuration, options, handler: parts)
    parts.consumer = consumer
    try consumer.subscribe([parts.topics.requests])
    try await requireEventually("the partition is assigned") {
      _ = await parts.checkpoints.compare(consumer) {
        true
      } noted: { _ in
        [:]
      }
      return !consumer.assignment.isEmpty
    }
    let partition: AssignedPartition = try #require(consumer.assignment.first)
    self.partition = partition
  }

  func distrust() { parts?.checkpoints.distrust() }

  /// What the lane was told, but for what it has asked for.
  var signs: [String] { parts?.signs ?? [] }

  /// Whether the partition is on offer a second time.
  var startsAgain: Bool { parts?.consumer?.offers.contains { $0.startsAgain } ?? false }

  /// Whether a comparison finds everything as it was left.
  var isVerified: Bool { get async { await isVerified(distrustedMeanwhile: false) } }

  /// The same, where Redis may have lost something once the markers were asked for.
  func isVerified(distrustedMeanwhile: Bool) async -> Bool {
    guard let parts, let consumer = parts.consumer else { return false }
    let sign = distrustedMeanwhile ? Task { distrust() } : nil
    let finding = await parts.checkpoints.compare(consumer) {
      true
    } noted: { _ in
      [:]
    }
    await sign?.value
    if case .verified = finding { return true }
    return false
  }

  /// Begins to leave the group, which waits for the consent.
  func giveUp() async {
    leaving = Task { await close() }
    while parts?.revocation == nil { await Task.yield() }
  }

  private func close() async { _ = await parts?.consumer?.close(withinMilliseconds: hangMilliseconds) }

  /// Raises the markers: the offsets that they stand at then.
  ///
  /// - Parameter others: calls that Redis has not answered yet.
  func raise(to offset: Int64, withOthersInFlight others: Int = 0) async -> [Int64] {
    guard let parts, let partition else { return [] }
    let (checkpoints, mailboxes) = (parts.checkpoints, Mailboxes(parts.shards))
    for _ in 0..<others { mailboxes.page(of: "0123", count: 1) { _ in } }
    return await withCheckedContinuation { continuation in
      checkpoints.raise([CommitOffset(partition: partition.index, generation: partition.generation, offset: offset)]) {
        continuation.resume(returning: $0.map(\.offset))
      }
    }
  }

  /// The partition's marker in each bucket.
  var markers: [Int64?] {
    get async { await parts?.store.read([.requests(0)])?.map { $0?[0]?.offset } ?? [] }
  }

  private func end() async {
    if leaving == nil, partition != nil { await giveUp() }
    parts?.revocation?.finish()
    await leaving?.value
    await close()
    parts?.crashes.close()
    parts?.shards.close()
    parts = nil
  }
}
