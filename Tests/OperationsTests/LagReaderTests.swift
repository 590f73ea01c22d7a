import EventLoop
import Store
import TestSupport
import Testing
import Worker

@testable import Kafka
@testable import Operations

/// What is read of a Kafka: the embedded one, and a real one where there is one.
@Suite struct LagReaderTests {
  private struct Place: Sendable {
    let kafka: KafkaFixture
    let topics: Topics
    let group: String
    let loop: EventLoop
    let reader: ClusterReader

    func look() async throws -> ClusterReport {
      let cluster = ReportedCluster(topics, group: group, laneLifetimeMilliseconds: 10_000, buckets: 4, name: "c")
      let report = ClusterReport(await reader.look(), cluster)
      try #require(report.sample.kafka.value?.lag.value != nil, "\(report.findings)")
      return report
    }

    /// Commits an offset of the requests, as a member of the group without partitions of its own.
    func commit(_ offset: Int64, _ partition: Int32 = 0) async throws { try await Committer(loop).commit(offset, partition, self) }
  }

  private func with(_ body: @Sendable (Place) async throws -> Void) async throws {
    try await KafkaFixture.with { kafka in
      let topics = Topics(prefix: KafkaFixture.unique("lag") + ".")
      try await kafka.makeTopics(topics.all, partitions: 2)
      let (loop, group) = (EventLoop(name: "lag-test"), topics.requests + "-group")
      let reader = try ClusterReader(
        on: loop, kafka.configuration, topics, group: group, nil, kafkaMilliseconds: hangMilliseconds)
      try await body(Place(kafka: kafka, topics: topics, group: group, loop: loop, reader: reader))
      await reader.close()
      await loop.close()
    }
  }

  private actor Committer: LoopActor {
    nonisolated let loop: EventLoop
    init(_ loop: EventLoop) { self.loop = loop }

    private final class Silent: ConsumerHandler {
      var assigned: AssignedPartition?
      func consumerReceived(_ batch: RecordBatch) {}
      func consumerAssigned(_ partitions: [AssignedPartition]) { assigned = partitions.first }
      func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }
      func consumerFailed(_ error: KafkaError) {}
    }

    func commit(_ offset: Int64, _ partition: Int32, _ place: Place) async throws {
      let handler = Silent()
      let consumer = try Consumer(on: loop, place.kafka.configuration, .init(group: place.group), handler: handler)
      let own = try await consumer.assign([(TopicPartition(place.topics.requests, partition), .earliest)])
      let wanted = CommitOffset(partition: own[0].index, generation: own[0].generation, offset: offset)
      let failed = await withCheckedContinuation { continuation in consumer.commit([wanted]) { continuation.resume(returning: $0) } }
      #expect(failed.isEmpty, "\(failed)")
      await consumer.close()
    }
  }

  @Test func recordsAndTimeBehindGrowAndFallToNothing() async throws {
    try await with { place in
      let requests = place.topics.requests
      var report = try await place.look()
      #expect(report.topics.prefix(2).map(\.state.records) == [0, 0] && report.topics.prefix(2).map(\.state.behind) == [0, 0])
      let old = WallClock.milliseconds() - 60_000
      func age() -> Int64 { WallClock.milliseconds() - old }
      try await place.kafka.publish((0..<10).map { TestRecord("\($0)", partition: 0, timestamp: old + $0 * 1000) }, to: requests)
      report = try await place.look()
      let first = try #require(report.topics.first)
      #expect(first.state.records == 10 && (60_000...age()).contains(first.state.behind ?? 0))
      #expect(first.worst?.lag.partition == TopicPartition(requests, 0))
      try await place.commit(9)
      report = try await place.look()
      #expect(report.topics.first?.state.records == 1)
      #expect((51_000...age()).contains(report.topics.first?.state.behind ?? 0), "the oldest that is not finished counts")
      try await place.commit(10)
      report = try await place.look()
      #expect(report.topics.first?.state.records == 0 && report.topics.first?.state.behind == 0 && report.topics.first?.worst == nil)
    }
  }

  @Test func otherTopicsHaveTheirCountsAndNewestTimes() async throws {
    try await with { place in
      let time = WallClock.milliseconds() - 10_000
      try await place.kafka.publish(
        (0..<3).map { TestRecord("\($0)", partition: 1, timestamp: time + $0) }, to: place.topics.events)
      let report = try await place.look()
      let events = try #require(report.topics.first { $0.topic == place.topics.events })
      #expect(events.state.logged == 3 && events.state.newest == time + 2)
      #expect(report.topics.first { $0.topic == place.topics.journal }?.state.newest == nil)
      #expect(report.notes.contains(.redisNotGiven))
    }
  }

  @Test(.enabled(if: TransactionalWriter.isPossible, "\(KafkaFixture.howToGetOne)"))
  func `an open transaction is named, and is no lag`() async throws {
    try await with { place in
      let requests = place.topics.requests
      try await TransactionalWriter.write([TestRecord("a", partition: 0)], to: requests, on: place.kafka)
      try await place.commit(2)
      try await TransactionalWriter.write(
        [TestRecord("b", partition: 0, timestamp: WallClock.milliseconds() - 60_000)], to: requests, on: place.kafka, .open)
      try await place.kafka.publish([TestRecord("c", partition: 0)], to: requests)
      let report = try await place.look()
      #expect(report.topics.first?.state.records == 0)
      let open = report.sample.kafka.value?.lag.value?.openTransactions ?? []
      #expect(open.map { .openTransaction($0) } == report.problems.filter { $0.name == "open-transaction" })
      #expect(open.map(\.partition) == [TopicPartition(requests, 0)] && open.map(\.offset) == [2] && open.map(\.records) == [2])
    }
  }

  @Test func onTheEmbeddedBrokerOwnersAreUntold() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topics = Topics(prefix: "lag.")
      for topic in topics.all where topic != topics.journal { try kafka.embedded?.createTopic(topic, partitions: 1) }
      let loop = EventLoop(name: "lag-test")
      let reader = try ClusterReader(
        on: loop, kafka.configuration, topics, group: "g", nil, kafkaMilliseconds: hangMilliseconds)
      let cluster = ReportedCluster(topics, group: "g", laneLifetimeMilliseconds: 10_000, buckets: 4, name: "c")
      let report = ClusterReport(await reader.look(), cluster)
      #expect(
        report.findings == [.topicMissing(topics.journal), .producersTime(topics.requests), .ownersUntold, .redisNotGiven]
          && report.members == nil)
      await reader.close()
      await loop.close()
    }
  }

  @Test(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
  func ownersAreTheGroupsMembers() async throws {
    try await with { place in
      #expect(try await place.look().problems.contains(.ownerless(topic: place.topics.requests, partitions: [0, 1])))
      try await Member(place.loop).work(place) {
        var report = try await place.look()
        for _ in 0..<60 where report.problems.contains(where: { $0.name == "without-owner" }) { report = try await place.look() }
        #expect(!report.problems.contains { $0.name == "without-owner" } && report.members?.state == "Stable")
        let owner = try #require(report.members?.members.first)
        #expect(owner.client == "carillon-test" && owner.partitions.count == 2)
        let reader = try #require(report.topics.first?.partitions.first?.readers?.first)
        #expect(reader.hasPrefix("carillon-test "), "\(reader)")
      }
      var report = try await place.look()
      await eventually("the group is empty") {
        report = try await place.look()
        return report.members?.state == "Empty"
      }
      #expect(report.topics.prefix(2).map(\.withoutReader) == [[0, 1], [0, 1]])
    }
  }

  /// A member of the group that reads nothing on.
  private actor Member: LoopActor {
    nonisolated let loop: EventLoop
    init(_ loop: EventLoop) { self.loop = loop }

    private final class Owner: ConsumerHandler {
      var count = 0
      func consumerReceived(_ batch: RecordBatch) {}
      func consumerAssigned(_ partitions: [AssignedPartition]) { count += partitions.count }
      func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }
      func consumerFailed(_ error: KafkaError) {}
    }

    func work(_ place: Place, _ body: () async throws -> Void) async throws {
      let owner = Owner()
      let configuration = place.kafka.configuration.merging(["session.timeout.ms": "60000"])
      let consumer = try Consumer(on: loop, configuration, .init(group: place.group), handler: owner)
      try consumer.subscribe([place.topics.requests])
      await eventually("the member has both partitions") { owner.count >= 2 }
      try await body()
      await consumer.close()
    }
  }
}
