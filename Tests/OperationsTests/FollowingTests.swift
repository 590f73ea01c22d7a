import EventLoop
import Kafka
import Notifications
import Synchronization
import TestSupport
import Testing
import Worker

@testable import Operations

/// Published requests are followed until each has its outcomes.
@Suite struct FollowingTests {
  private static let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"
  private static let device = String(repeating: "ab", count: 32)

  /// A request that lay at an offset first.
  private static func request(_ topics: Topics, first offset: Int64, target: String = "device:\(device)") -> TestRecord {
    let origin = #"{"cluster":"c","topic":"\#(topics.requests)","partition":0,"offset":\#(offset),"timestamp":1000,"why":"redrive"}"#
    return TestRecord(
      key: target, #"{"aps":{"alert":"x"}}"#,
      headers: [.init("target", target), .init("apns-topic", "com.example"), .init("apns-id", id), .init("carillon-origin", origin)],
      partition: 0)
  }

  /// A request that lies where it lay first.
  private static func request(_ id: String) -> TestRecord {
    TestRecord(
      key: "device:\(device)", #"{"aps":{"alert":"x"}}"#,
      headers: [.init("target", "device:\(device)"), .init("apns-topic", "com.example"), .init("apns-id", id)], partition: 0)
  }

  /// An event of the request that lay at an offset first.
  private static func event(_ topics: Topics, _ type: String, first offset: Int64, of id: String = id) -> TestRecord {
    TestRecord(
      key: device,
      #"{"device":"\#(device)","worker":"w","source":{"topic":"\#(topics.requests)","partition":0,"offset":\#(offset),"timestamp":1000}}"#,
      headers: [
        .init("ce_specversion", "1.0"), .init("ce_id", "\(type)\(offset)"), .init("ce_type", "carillon.\(type).v1"),
        .init("ce_source", "/carillon/c"), .init("ce_subject", id),
      ], partition: 0)
  }

  private static func make(_ topics: Topics, on kafka: KafkaFixture) async throws {
    let names = [topics.requests, topics.events, topics.journal, topics.deliveries]
    for topic in names { try kafka.embedded?.createTopic(topic, partitions: 1) }
    try await kafka.admin.ensureTopics(names.map { TopicSpecification($0, partitions: 1) })
  }

  /// What a worker's journal says of requests that were kept for their device.
  private static func journal(kept requests: some Sequence<TestRecord>) -> TestRecord {
    var writer = JournalWriter(partition: 0, incarnation: 0)
    for request in requests {
      let (offset, timestamp) = (request.offset ?? 0, request.timestamp ?? 0)
      let revision = Revision(SourcePosition(partition: 0, offset: offset, timestamp: timestamp))
      writer.append(offset: offset, timestamp: timestamp, JournalJudgement(.queued, revision: revision), now: timestamp)
    }
    var record = TestRecord(nil, headers: [.init("layout", "1"), .init("worker", "w"), .init("incarnation", "0")], partition: 0)
    record.value = writer.withValue { Array($0) }
    return record
  }

  /// A delivery of a request to its device's lane.
  private static func delivery(_ request: TestRecord, _ rules: RequestRules) throws -> TestRecord {
    var buffer = ByteBuffer()
    let texts = request.headers.map { $0.value ?? [] } + [request.value ?? [], Array(rules.topics.requests.utf8)]
    try Array(texts.joined()).withUnsafeBytes { all in
      var (spans, start): ([UnsafeRawBufferPointer], Int) = ([], 0)
      for text in texts {
        spans.append(UnsafeRawBufferPointer(rebasing: all[start..<start + text.count]))
        start += text.count
      }
      var headers = RequestHeaders()
      for (index, header) in request.headers.enumerated() { header.name.withCString { headers.take(name: $0, value: spans[index]) } }
      let record = RequestRecord(
        key: UnsafeRawBufferPointer(start: nil, count: 0), value: spans[request.headers.count], headers: headers,
        topic: spans[request.headers.count + 1],
        position: SourcePosition(partition: 0, offset: request.offset ?? 0, timestamp: request.timestamp ?? 0))
      guard case .accepted(let view) = RequestView.read(record, limits: RequestLimits()) else { throw UnexpectedRequest() }
      var encoded = ByteBuffer()
      try DeliveryEntry(view).append(to: &encoded)
      encoded.withUnsafeBytes {
        DeliveryRecord.append(encoded: $0, kind: .notify, revision: view.envelope.revision, generation: 1, to: &buffer)
      }
    }
    var delivery = TestRecord(nil, partition: 0)
    delivery.key = [UInt8](repeating: 0xAB, count: 32)
    delivery.value = buffer.withUnsafeBytes { Array($0) }
    return delivery
  }

  private struct UnexpectedRequest: Error {}

  /// New topics, a tool, and the places at which it begins to follow.
  private static func withTool(
    _ body: @Sendable (KafkaFixture, RequestRules, ClusterTool, [TopicPartition: Int64]) async throws -> Void
  ) async throws {
    try await KafkaFixture.with { kafka in
      let rules = RequestRules(topics: Topics(prefix: KafkaFixture.unique("followed") + "."))
      try await make(rules.topics, on: kafka)
      let loop = EventLoop(name: "watch-test")
      let tool = ClusterTool(on: loop, kafka.configuration, rules)
      try await body(kafka, rules, tool, try await tool.placesToFollow())
      await loop.close()
    }
  }

  @Test func `a device that is away is not waited for, a connected one is until it has answered`() async throws {
    try await Self.withTool { kafka, rules, tool, positions in
      let topics = rules.topics
      // Each of its own apns-id, at 0, 1 and 2.
      let ids = (1...3).map { "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c1\($0)" }
      try await kafka.publish(ids.map { Self.request($0) }, to: topics.requests)
      let requests = try await kafka.records(of: topics.requests, count: 3).sorted { ($0.offset ?? 0) < ($1.offset ?? 0) }
      try await kafka.publish([try Self.delivery(requests[1], rules), try Self.delivery(requests[2], rules)], to: topics.deliveries)
      try await kafka.publish([Self.journal(kept: requests)], to: topics.journal)
      let settled = Mutex<[String: Bool]>([:])
      let isStopped = Mutex(false)
      let following = Task {
        try await tool.follow(
          (0..<3).map { ("\($0)", 0, $0) }, from: positions, forMilliseconds: 4 * hangMilliseconds, waitsForAbsent: false,
          isStopped: { isStopped.withLock { $0 } }
        ) { outcome in settled.withLock { $0[outcome.id] = outcome.isSettled } }
      }
      // The one whose device is away is over while the two connected ones have not answered.
      await eventually("nobody waits for the device that is away") { settled.withLock { $0 } == ["0": true] }
      try await kafka.publish([Self.event(topics, "delivered", first: 1, of: ids[1])], to: topics.events)
      await eventually("the second one is delivered") { settled.withLock { $0 } == ["0": true, "1": true] }
      isStopped.withLock { $0 = true }
      try await following.value
      #expect(settled.withLock { $0 } == ["0": true, "1": true, "2": false])
    }
  }

  @Test func eachOfSeveralRequestsWithOneApnsIdHasItsOwnOutcome() async throws {
    try await Self.withTool { kafka, rules, tool, positions in
      let topics = rules.topics
      try await kafka.publish(Array(repeating: TestRecord("first", partition: 0), count: 20), to: topics.requests)
      try await kafka.publish((10..<13).map { Self.request(topics, first: $0) }, to: topics.requests)
      // They lie at 20, 21 and 22.
      #expect(try await kafka.records(of: topics.requests, count: 23).map(\.offset).last == 22)
      try await kafka.publish(
        [
          Self.event(topics, "rejected", first: 10), Self.event(topics, "delivered", first: 11),
          // Of a record with the same apns-id that nobody follows.
          Self.event(topics, "expired", first: 99),
        ], to: topics.events)
      let outcomes = Mutex<[Int64: FollowedRequest]>([:])
      let isKnown = Mutex(false)
      let isStopped = Mutex(false)
      let following = Task {
        try await tool.follow(
          (20..<23).map { ("\($0)", 0, $0) }, from: positions, forMilliseconds: 600_000, isStopped: { isStopped.withLock { $0 } }
        ) { outcome in
          let count = outcomes.withLock {
            $0[Int64(outcome.id) ?? -1] = outcome
            return $0.count
          }
          if count == 2 { isKnown.withLock { $0 = true } }
        }
      }
      await eventually("two have their outcomes") { isKnown.withLock { $0 } }
      // It looks once more, and nothing is told of the third.
      isStopped.withLock { $0 = true }
      try await following.value
      let found = outcomes.withLock { $0 }
      #expect(found.count == 3, "each is told of once: \(found)")
      #expect(found[20]?.explanation.devices.first?.outcome == .rejected && found[20]?.isSettled == true)
      #expect(found[21]?.explanation.devices.first?.outcome == .delivered && found[21]?.isSettled == true)
      #expect(found[22]?.explanation.devices.isEmpty == true && found[22]?.isSettled == false, "nothing is told of the third")
    }
  }
}
