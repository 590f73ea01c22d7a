import Kafka
import TestSupport
import Testing
import Worker

@testable import Transform

/// Partitions that are added to a topic while workers run, and before they start.
@Suite struct TopicPartitionsTests {
  @Test func `each partition of devices belongs to one partition of the requests that is worked through`() {
    for requests in 1...9 {
      for journal in 1...9 {
        for devices in 0...20 {
          let partitions = TopicPartitions(requests: requests, journal: journal, devices: devices)
          let owned = (0..<Int32(requests)).flatMap { partitions.devices(of: $0) }
          #expect(owned.sorted() == (0..<Int32(devices)).map { $0 }, "\(partitions)")
          #expect(partitions.unjournaled.allSatisfy { partitions.devices(of: $0).isEmpty && $0 >= Int32(journal) })
          #expect(partitions.unjournaled.count + partitions.journaled == max(requests, 1))
        }
      }
    }
  }

  @Test func `workers that started before and after partitions were added to the requests agree about devices`() {
    for devices in 0...20 {
      let before = TopicPartitions(requests: 4, journal: 4, devices: devices)
      let after = TopicPartitions(requests: 7, journal: 4, devices: devices)
      for request in 0..<7 as Range<Int32> { #expect(before.devices(of: request) == after.devices(of: request)) }
    }
  }

  private static let isReal = TransactionalWriter.isPossible

  /// Clients that hear soon of what was added.
  private static func soon(_ settings: inout TransformSettings) {
    settings.kafka = settings.kafka.merging(["topic.metadata.refresh.interval.ms": "500"])
  }

  private static func publish(_ count: Int, to partition: Int32, _ fixture: TransformFixture) async throws {
    let target = "device:" + String(repeating: "0", count: 64)
    let record = TestRecord(
      key: target, #"{"aps":{"alert":"x"}}"#, headers: [.init("target", target), .init("apns-topic", TransformFixture.application)],
      partition: partition)
    try await fixture.kafka.publish(Array(repeating: record, count: count), to: fixture.topics.requests)
  }

  private static func committed(_ partition: Int32, _ fixture: TransformFixture) async throws -> Int64 {
    let partition = TopicPartition(fixture.topics.requests, partition)
    return try await fixture.kafka.admin.committed(group: fixture.topics.requests, of: [partition])[partition] ?? 0
  }

  /// The partition that the journal lacks waits, and says so; the others go on, and all is done when the journal has got it.
  private static func waitAndGoOn(_ fixture: TransformFixture) async throws {
    for partition in 0..<3 as Range<Int32> { try await publish(20, to: partition, fixture) }
    await fixture.eventually("the lane says that a partition waits") {
      fixture.health.unready.contains { $0.name == "partitions" && $0.reason.contains(fixture.topics.journal) }
    }
    await fixture.eventually("the others go on") {
      let (first, second) = (try await committed(0, fixture), try await committed(1, fixture))
      return first == 20 && second == 20
    }
    #expect(fixture.metric("carillon_transform_partitions_without_journal") == 1)
    #expect(try await committed(2, fixture) == 0)
    #expect(fixture.metric(#"carillon_transform_requests_total"#) < 60, "what waits is not judged again and again")
    try await fixture.kafka.addPartitions(to: fixture.topics.journal, total: 3)
    await fixture.eventually("what waited is done") { try await committed(2, fixture) == 20 }
    await fixture.eventually("the lane is ready") { fixture.health.isReady }
    #expect(fixture.metric("carillon_transform_partitions_without_journal") == 0)
  }

  @Test(.enabled(if: isReal, "\(KafkaFixture.howToGetOne)"))
  func `a partition that is added to the requests alone waits and holds up no other`() async throws {
    try await TransformFixture.with({ Self.soon(&$0) }, partitions: 2, real: { _ in [:] }) { fixture in
      try await fixture.kafka.addPartitions(to: fixture.topics.requests, total: 3)
      try await Self.waitAndGoOn(fixture)
    }
  }

  @Test(.enabled(if: isReal, "\(KafkaFixture.howToGetOne)"))
  func `a lane starts though the journal has fewer partitions than the requests`() async throws {
    try await TransformFixture.with(
      { Self.soon(&$0) },
      before: { try await $0.kafka.addPartitions(to: $0.topics.requests, total: 3) }, partitions: 2,
      real: { _ in [:] }, awaitsReadiness: false
    ) { try await Self.waitAndGoOn($0) }
  }
}
