import EventLoop
import JSON
import Kafka
import Notifications
import Store
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
      try await kafka.makeTopics(topics.all, partitions: 2)
      let records = (0..<count).map { number in
        TestRecord(
          #"{"aps":{"alert":"x"}}"#,
          headers: [.init("target", "device:\(JournalAuditTests.device)"), .init("apns-topic", "com.example")],
          partition: Int32(number % 2))
      }
      try await kafka.publish(records, to: topics.requests)
      requests = try await kafka.records(of: topics.requests, count: count)
    }

    /// The journal says of these requests that they were kept, or judged otherwise; an entry at a time, so many to a record.
    func journal(
      _ told: some Sequence<TestRecord>, _ verdict: Outcome = .queued, other: JournalReference? = nil, incarnation: Int = 0,
      later: Int64 = 0
    ) async throws {
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
          let judgement = JournalJudgement(verdict, revision: revision, other: other)
          writer.append(offset: offset, timestamp: timestamp, judgement, now: timestamp)
        }
        if writer.count > 0 { records.append(record(writer, partition, incarnation)) }
      }
      try await kafka.publish(records, to: topics.journal)
    }

    /// The journal says that workers could not read these requests of the first partition.
    func journalUnreadable(_ offsets: Range<Int64>) async throws {
      var writer = JournalWriter(partition: 0, incarnation: 0)
      writer.append(offset: offsets.lowerBound, timestamp: 1, unreadable: offsets.count, now: WallClock.milliseconds())
      try await kafka.publish([record(writer, 0, 0)], to: topics.journal)
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
      let auditor = ClusterTool(on: kafka.loop, kafka.configuration, RequestRules(topics: topics))
      return try await auditor.audit(settings).findings
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
      #expect(findings.counts == [:] && findings.outcomes == [.queued: 4_000])
      #expect(findings.requests == 4_000 && findings.unreadable == 0)
    }
  }

  /// The workers have rejected what names another cluster, so it is a request of its own place.
  @Test func `an origin of another cluster is read as the workers read it`() async throws {
    try await KafkaFixture.with { kafka in
      var cluster = try await Cluster(kafka, requests: 2)
      try await cluster.journal(cluster.requests)
      let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"
      let origin = #"{"cluster":"west","topic":"\#(cluster.topics.requests)","partition":0,"offset":0,"timestamp":1,"why":"redrive"}"#
      var foreign = try #require(cluster.requests.first { $0.partition == 0 })
      foreign.headers += [.init("apns-id", id), .init("carillon-origin", origin)]
      (foreign.offset, foreign.timestamp) = (nil, nil)
      try await kafka.publish([foreign], to: cluster.topics.requests)
      cluster.requests = try await kafka.records(of: cluster.topics.requests, count: 3)
      let lying = try #require(cluster.requests.first { $0.header("apns-id") == id })
      try await cluster.journal([lying], .rejected)
      let source = #"{"topic":"\#(cluster.topics.requests)","partition":0,"offset":1,"timestamp":\#(lying.timestamp ?? 0)}"#
      let event = TestRecord(
        key: "k", #"{"target":"device:\#(Self.device)","worker":"w","source":\#(source)}"#,
        headers: [
          .init("ce_specversion", "1.0"), .init("ce_id", "1"), .init("ce_type", "carillon.rejected.v1"),
          .init("ce_source", "/carillon/east"), .init("ce_subject", id),
        ], partition: 0)
      try await kafka.publish([event], to: cluster.topics.events)
      let findings = try await cluster.audit()
      #expect(findings.counts == [:] && findings.outcomes == [.queued: 2, .rejected: 1])
    }
  }

  @Test func `requests that workers could not read are dead and not lost`() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka, requests: 40)
      try await cluster.journal(cluster.requests.filter { $0.partition == 1 || !(5..<12).contains($0.offset ?? 0) })
      try await cluster.journalUnreadable(5..<11)
      let findings = try await cluster.audit()
      #expect(findings.counts == [.lost: 1] && findings.outcomes == [.queued: 33, .deadLettered: 6] && findings.lost == 1)
    }
  }

  @Test func `an audit refuses a journal that only a newer program reads`() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka, requests: 2)
      try await cluster.journal(cluster.requests)
      try await kafka.publish([TestRecord("x", headers: [.init("layout", "2")], partition: 0)], to: cluster.topics.journal)
      await #expect(throws: StoreError.self) { _ = try await cluster.audit() }
    }
  }

  @Test(.enabled(if: BombWriter.isPossible, "\(KafkaFixture.howToGetOne)"))
  func `what the audit itself cannot read is counted as unreadable`() async throws {
    try await KafkaFixture.with { kafka in
      let cluster = try await Cluster(kafka, requests: 4)
      try await BombWriter.write(to: cluster.topics.requests, on: kafka)
      try await cluster.journal(cluster.requests)
      try await cluster.journalUnreadable(2..<5)
      let findings = try await cluster.audit()
      #expect(findings.counts == [:] && findings.outcomes == [.queued: 4] && findings.unreadable == 3)
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
      #expect(findings.counts == [.lost: 2] && findings.outcomes == [.queued: 198] && findings.lost == 2)
      #expect(findings.unreadable == 1)
    }
  }
}

/// Audits of schedules that lie in Kafka.
extension JournalAuditTests {
  private static let scheduling = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"

  /// A firing of a minute as the cluster writes it; its due time is the minute's number after the request.
  private static func firing(of request: TestRecord, _ name: Int64, after previous: Int64, at time: Int64) -> TestRecord {
    let requested = request.timestamp ?? 0
    let revision = Revision(SourcePosition(partition: 0, offset: request.offset ?? 0, timestamp: requested))
    let header = FiringHeader(
      schedule: JournalReference(revision: revision, id: NotificationID(scheduling)!),
      .init(zone: "", due: requested + name * 60_000, name: name, previous: previous), repeats: true)
    var json = JSONWriter()
    header.write(to: &json)
    let text = json.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    return TestRecord(
      #"{"aps":{"alert":"x"}}"#,
      headers: [
        .init("target", "device:\(device)"), .init("apns-topic", "com.example"), .init("apns-id", header.occurrence.description),
        .init("apns-collapse-id", "order-7"), .init("carillon-firing", text),
      ], partition: 0, timestamp: requested + time)
  }

  @Test func `a forged history of a schedule shows each kind of violation, and what the cluster writes shows none`() async throws {
    try await KafkaFixture.with { kafka in
      var cluster = try await Cluster(kafka, requests: 0)
      let began = WallClock.milliseconds() - 3_600_000
      func publish(_ records: [TestRecord]) async throws {
        try await kafka.publish(records, to: cluster.topics.requests)
        cluster.requests = try await kafka.records(of: cluster.topics.requests, count: cluster.requests.count + records.count)
      }
      let common: [TestRecord.Header] = [
        .init("target", "device:\(Self.device)"), .init("apns-topic", "com.example"), .init("apns-collapse-id", "order-7"),
      ]
      let trigger = #"{"type":"timeInterval","timeInterval":60,"repeats":true}"#
      try await publish([
        TestRecord(
          #"{"aps":{"alert":"x"}}"#, headers: common + [.init("apns-id", Self.scheduling), .init("trigger", trigger)], partition: 0,
          timestamp: began)
      ])
      let request = cluster.requests[0]
      try await publish([
        Self.firing(of: request, 1, after: 0, at: 60_000), Self.firing(of: request, 2, after: 1, at: 120_100),
        Self.firing(of: request, 2, after: 1, at: 120_200),
        TestRecord(nil, headers: common + [.init("operation", "cancel")], partition: 0, timestamp: began + 125_000),
        Self.firing(of: request, 3, after: 2, at: 180_000),
      ])
      let reference = JournalReference(
        revision: Revision(SourcePosition(partition: 0, offset: 0, timestamp: began)), id: NotificationID(Self.scheduling)!)
      try await cluster.journal(cluster.requests[0..<1], .scheduled)
      try await cluster.journal(cluster.requests[1...2])
      try await cluster.journal([cluster.requests[3], cluster.requests[5]], .replayed)
      try await cluster.journal([cluster.requests[4]], .carriedOut, other: reference)
      var findings = try await cluster.audit()
      #expect(findings.counts == [:] && findings.outcomes == [.scheduled: 1, .collapsed: 1, .queued: 1, .replayed: 2, .carriedOut: 1])

      // A worker lets the repeated one and the one behind the cancel pass, and others that are early, and follow nothing.
      try await cluster.journal([cluster.requests[3], cluster.requests[5]])
      try await publish([Self.firing(of: request, 4, after: 3, at: 239_999), Self.firing(of: request, 7, after: 6, at: 420_000)])
      try await cluster.journal(cluster.requests[6...])
      findings = try await cluster.audit()
      #expect(findings.counts == [.firedTwice: 1, .firedAfterEnd: 3, .firedEarly: 1, .occurrenceMissing: 1])
      let early = findings.violations.first { $0.kind == .firedEarly }
      #expect(early?.places.map(\.offset) == [0, 6] && early?.detail == "1 ms before it was due")
    }
  }
}
