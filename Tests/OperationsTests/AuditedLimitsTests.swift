import EventLoop
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Operations

/// Audits of requests with a rate limit.
@Suite struct AuditedLimitsTests {
  private static let device = String(repeating: "ab", count: 32)
  /// The beginning of a window.
  private static let start = (WallClock.milliseconds() - 3_600_000) / 10_000 * 10_000

  /// Writes requests to one device, and what became of each; then audits them.
  ///
  /// - Parameters:
  ///   - times: of the requests, in milliseconds after the start.
  ///   - rejected: the offsets of those that were rejected for the limit. The others were delivered.
  private func audit(
    _ times: [Int64], rejected: Set<Int>, from: Int64? = nil, _ kafka: KafkaFixture
  ) async throws -> [Violation.Kind: Int] {
    let topics = Topics(prefix: KafkaFixture.unique("limits") + ".")
    for topic in topics.all {
      if let embedded = kafka.embedded { try embedded.createTopic(topic, partitions: 1) }
      try await kafka.admin.ensureTopics([TopicSpecification(topic, partitions: 1)])
    }
    let limit = RateLimit(perTarget: 2, perApplication: nil, window: 1_000)
    let value = try #require(ApplicationStops().value(.limit(limit, by: "eve"), forgettingBefore: 0))
    try await kafka.publish(
      [TestRecord(key: "com.example", String(decoding: value, as: UTF8.self), partition: 0, timestamp: Self.start - 60_000)],
      to: topics.applications)
    let headers: [TestRecord.Header] = [.init("target", "device:\(Self.device)"), .init("apns-topic", "com.example")]
    try await kafka.publish(
      times.map { TestRecord(#"{"aps":{"alert":"x"}}"#, headers: headers, partition: 0, timestamp: Self.start + $0) }, to: topics.requests)
    let requests = try await kafka.records(of: topics.requests, count: times.count)
    var journal = JournalWriter(partition: 0, incarnation: 0)
    var events: [TestRecord] = []
    var writer = EventWriter(source: "/carillon/c", worker: "w", requestsTopic: topics.requests)
    for request in requests.sorted(by: { $0.offset ?? 0 < $1.offset ?? 0 }) {
      let (offset, time) = (request.offset ?? 0, request.timestamp ?? 0)
      let source = SourcePosition(partition: 0, offset: offset, timestamp: time)
      let isRejected = rejected.contains(Int(offset))
      journal.append(
        offset: offset, timestamp: time, JournalJudgement(isRejected ? .rejected : .queued, revision: Revision(source)), now: time)
      var topic = topics.requests
      topic.withUTF8 { topic in
        var facts = EventFacts(isRejected ? .rejected : .delivered)
        facts.id = .derived(topic: UnsafeRawBufferPointer(topic), source: source)
        (facts.source, facts.revision) = (source, Revision(source))
        var token = Self.device
        token.withUTF8 { token in
          if !isRejected { facts.device = UnsafeRawBufferPointer(token) }
          if isRejected {
            facts.details = .limited(Rejection(.tooManyRequests, field: "target", rule: "Too many."), retryAfter: time)
          }
          writer.write(facts, at: time + 10)
        }
      }
      var event = TestRecord(nil, partition: 0)
      event.value = writer.withValue(Array.init)
      writer.forEachHeader { event.headers.append(.init($0.rawValue, String(decoding: $1, as: UTF8.self))) }
      events.append(event)
    }
    var record = TestRecord(
      nil, headers: [.init("layout", "1"), .init("worker", "w"), .init("incarnation", "0")], partition: 0, timestamp: Self.start + 20_000)
    record.value = journal.withValue { Array($0) }
    try await kafka.publish([record], to: topics.journal)
    try await kafka.publish(events, to: topics.events)
    var settings = AuditSettings()
    settings.grace = 0
    settings.published.from = from.map { Self.start + $0 }
    let auditor = ClusterTool(on: kafka.loop, kafka.configuration, RequestRules(topics: topics))
    return try await auditor.audit(settings).findings.counts
  }

  @Test(
    arguments: [
      ([2, 3, 6], [:]), ([3, 6], [.passedBeyondLimit: 1]), ([2, 3, 5, 6], [.rejectedWithinLimit: 1]),
      ([1, 3, 6], [.passedBeyondLimit: 1, .rejectedWithinLimit: 1]),
    ] as [(Set<Int>, [Violation.Kind: Int])])
  func `an audit counts the requests again, and finds each wrong verdict`(rejected: Set<Int>, found: [Violation.Kind: Int]) async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let counts = try await audit([0, 100, 200, 300, 1_000, 999, 1_001], rejected: rejected, kafka)
      #expect(counts == found)
    }
  }

  @Test(arguments: [([3, 4, 5], [:]), ([4, 5], [:]), ([5], [.passedBeyondLimit: 1])] as [(Set<Int>, [Violation.Kind: Int])])
  func `an audit of a part of a window counts all of it`(rejected: Set<Int>, found: [Violation.Kind: Int]) async throws {
    try await KafkaFixture.with { kafka in
      let counts = try await audit([-40_000, 0, 100, 200, 300, 400], rejected: rejected, from: 250, kafka)
      #expect(counts == found)
    }
  }
}
