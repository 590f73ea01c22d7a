import EventLoop
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Operations

/// Audits of what lies in Kafka: requests, the journal beside them, and events.
@Suite struct JournalAuditTests {
  private static let device = String(repeating: "ab", count: 32)

  /// What is written to a partition, and read again with the timestamps that Kafka gave.
  private struct Cluster {
    let kafka: KafkaFixture
    let topics: Topics
    var requests: [TestRecord] = []

    init(_ kafka: KafkaFixture, requests count: Int) async throws {
      self.kafka = kafka
      topics = Topics(prefix: KafkaFixture.unique("audited") + ".")
      for topic in topics.all {
        if let embedded = kafka.embedded { try embedded.createTopic(topic, partitions: 2) }
        try await kafka.admin.ensureTopics([TopicSpecification(topic, partitions: 2)])
      }
      let records = (0..<count).map { number in
        TestRecord(
          #"{"aps":{"alert":"x"}}"#,
          headers: [.init("target", "device:\(JournalAuditTests.device)"), .init("apns-topic", "com.example")],
          partition: Int32(number % 2))
      }
      try await kafka.publish(records, to: topics.requests)
      requests = try await kafka.records(of: topics.requests, count: count)
    }

    /// The journal says of these requests that they were kept; an entry at a time, so many to a record.
    func journal(_ told: some Sequence<TestRecord>, incarnation: Int = 0, later: Int64 = 0) async throws {
      var records: [TestRecord] = []
      for partition in 0..<2 as Range<Int32> {
        var writer = JournalWriter(partition: partition, incarnation: UInt32(incarnation))
        for (number, request) in told.filter({ $0.partition == partition }).enumerated() {
          if number > 0, number.isMultiple(of: 100) {
            records.append(record(writer, partition, incarnation))
            writer.reset()
          }
          let (offset, timestamp) = (request.offset ?? 0, (request.timestamp ?? 0) + later)
          let revision = Revision(SourcePosition(partition: partition, offset: offset, timestamp: timestamp)).inIncarnation(
            UInt32(incarnation))
          writer.append(offset: offset, timestamp: timestamp, JournalJudgement(.kept, revision: revision), now: timestamp)
        }
        if writer.count > 0 { records.append(record(writer, partition, incarnation)) }
      }
      try await kafka.publish(records, to: topics.journal)
    }

    private func record(_ writer: borrowing JournalWriter, _ partition: Int32, _ incarnation: Int) -> TestRecord {
      var record = TestRecord(
        nil, headers: [.init("layout", "1"), .init("worker", "w"), .init("incarnation", String(incarnation))], partition: partition)
      record.value = writer.withValue { Array($0) }
      return record
    }

    func audit() async throws -> AuditFindings {
      var settings = AuditSettings()
      settings.grace = 0
      let auditor = Auditor(on: kafka.loop, kafka.configuration, RequestRules(topics: topics), settings) { _ in }
      return try await auditor.audit().findings
    }
  }

  @Test func whatIsToldOnceMoreOrLateIsJoinedWithItsRequest() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka, requests: 4_000)
      // A lane has rewound, twice, and what it had parked comes last.
      try await cluster.journal(cluster.requests[100...])
      try await cluster.journal(cluster.requests[1_000..<1_700])
      try await cluster.journal(cluster.requests[1_500..<1_600])
      try await cluster.journal(cluster.requests[..<100])
      let findings = try await cluster.audit()
      #expect(findings.counts == [:] && findings.outcomes == [.pending: 4_000])
      #expect(findings.requests == 4_000 && findings.late >= 800 && findings.unreadable == 0)
    }
  }

  @Test func aRequestOfWhichNothingIsSaidIsLostWhateverIsSaidOfOthers() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka, requests: 200)
      // Of another record at its offset; of a former topic.
      try await cluster.journal(cluster.requests[..<1], later: 1)
      try await cluster.journal(cluster.requests[1..<2])
      try await cluster.journal(cluster.requests[2...], incarnation: 1)
      try await kafka.publish([TestRecord("no journal", partition: 0)], to: cluster.topics.journal)
      let findings = try await cluster.audit()
      #expect(findings.counts == [.lost: 2] && findings.outcomes == [.pending: 198, .lost: 2])
      #expect(findings.unreadable == 1)
    }
  }
}
