import EventLoop
import JSON
import Kafka
import Notifications
import Synchronization
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// Topics whose last offset has no record: it is a transaction's end, or lies in an aborted transaction.
@Suite(.enabled(if: TransactionalWriter.isPossible, "\(KafkaFixture.howToGetOne)"))
struct TransactionEndTests {
  private static func registration(_ token: String, for user: String) throws -> TestRecord {
    var json = JSONWriter(capacity: 256)
    let device = try #require(DeviceToken(token))
    Registration(device: device, application: Name(TransformFixture.application), user: Name(user), since: 1).write(to: &json)
    return TestRecord(key: token, json.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }, partition: 0)
  }

  private static func request(_ target: String) -> TestRecord {
    TestRecord(
      key: target, #"{"aps":{"alert":"hello"}}"#,
      headers: [.init("target", target), .init("apns-topic", TransformFixture.application)], partition: 0)
  }

  private static func end(of topic: String, _ lane: TransformFixture) async throws -> Int64 {
    try await lane.kafka.admin.ends(of: [TopicPartition(topic, 0)]).values.first?.upperBound ?? 0
  }

  @Test func `registrations written in a transaction complete the registry`() async throws {
    let tokens = TransformFixture.tokens(in: [(0, 2)])
    try await TransformFixture.with(
      before: { lane in
        try await TransactionalWriter.write([try Self.registration(tokens[0], for: "ada")], to: lane.topics.devices, on: lane.kafka)
      }, real: { _ in [:] }
    ) { lane in
      try await lane.request("user:ada")
      await lane.eventually("the person's request is judged") { lane.count(.addressed) == 1 }
      #expect(try await Self.end(of: lane.topics.devices, lane) == 2)
      await lane.eventually("the group has committed the transaction's end") { try await lane.committed(lane.topics.devices) == 2 }
      // Another lane waits for what the topic has then.
      try await TransactionalWriter.write([try Self.registration(tokens[1], for: "ada")], to: lane.topics.devices, on: lane.kafka, .aborted)
      await lane.eventually("the group has committed the end of the aborted one") { try await lane.committed(lane.topics.devices) == 4 }
      #expect(try await lane.waiting(tokens[0]) == 1)
    }
  }

  @Test func `a rebuilt Redis has the ends of transactions in its markers`() async throws {
    let tokens = TransformFixture.tokens(in: [(0, 2)])
    try await TransformFixture.with(real: { _ in [:] }) { lane in
      for (past, end) in [(3, TransactionalWriter.End.committed), (6, .aborted)] {
        let registrations = try tokens.map { try Self.registration($0, for: "ada") }
        try await TransactionalWriter.write(registrations, to: lane.topics.devices, on: lane.kafka, end)
        // A request is not ordered with registrations of its target: the topics are read side by side.
        await lane.eventually("the group has committed the registrations") { try await lane.committed(lane.topics.devices) == past }
        try await TransactionalWriter.write([Self.request("user:ada")], to: lane.topics.requests, on: lane.kafka, end)
      }
      await lane.eventually("the group has committed the requests") { try await lane.committed(lane.topics.requests) == 4 }
      let (devices, requests) = (try await lane.marker(.devices(0)), try await lane.marker(.requests(0)))
      #expect(devices?.offset == 6 && requests?.offset == 4)
      await lane.drain(withinMilliseconds: hangMilliseconds)
      let told = Mutex<[RebuildReport]>([])
      let report = try await lane.rebuild { report in told.withLock { $0.append(report) } }
      // What was aborted and the transactions' ends have offsets, and are no records.
      let requestsRead = try #require(told.withLock { $0 }.last { $0.phase == .markers })
      #expect(requestsRead.read == requestsRead.total && requestsRead.records < requestsRead.total)
      #expect(report.requests == 1)
      #expect(try await lane.marker(.devices(0)) == devices)
      #expect(try await lane.marker(.requests(0)) == requests)
      for token in tokens { #expect(try await lane.waiting(token) == 1) }
      try await lane.beside(1) { healths in
        await lane.eventually("another lane is ready") { healths[0].isReady }
        try await lane.request("user:ada")
        await lane.eventually("it judges the next request") { try await lane.waiting(tokens[0]) == 2 }
      }
    }
  }

  @Test func `stops of applications written in a transaction are known before the lane takes work`() async throws {
    try await TransformFixture.with(
      before: { lane in
        let value = try #require(ApplicationStops().value(.stop(by: "test", reason: nil), forgettingBefore: 0))
        let stop = TestRecord(key: TransformFixture.application, String(decoding: value, as: UTF8.self), partition: 0)
        try await TransactionalWriter.write([stop], to: lane.topics.applications, on: lane.kafka)
        try await TransactionalWriter.write([stop], to: lane.topics.applications, on: lane.kafka, .aborted)
      }, real: { _ in [:] }
    ) { lane in
      try await lane.request("device:" + String(repeating: "a", count: 64))
      await lane.eventually("the request is filtered") { lane.count(.filtered) == 1 }
    }
  }

  @Test func `an open transaction holds back no lane, and what is written behind it comes with its end`() async throws {
    let token = TransformFixture.tokens(in: [(0, 1)])[0]
    try await TransformFixture.with(
      before: { lane in
        try await TransactionalWriter.write([try Self.registration(token, for: "ada")], to: lane.topics.devices, on: lane.kafka, .open)
      }, real: { _ in [:] }
    ) { lane in
      try await lane.request("user:ada")
      await lane.eventually("the request is judged") { lane.count(.unregistered) == 1 }
      await lane.eventually("no lag is shown") {
        lane.metric("carillon_lag_records{topic=\"\(lane.topics.devices)\",partition=\"0\"}") == 0
      }
      // The next transaction of the topic aborts the first.
      try await TransactionalWriter.write([try Self.registration(token, for: "ada")], to: lane.topics.devices, on: lane.kafka)
      await lane.eventually("the device is registered") {
        lane.metric("carillon_transform_registration_verdicts_total{verdict=\"applied\"}") == 1
      }
      try await lane.request("user:ada")
      await lane.eventually("the next request waits in the mailbox") { try await lane.waiting(token) == 1 }
    }
  }

  @Test func `requests written in a transaction leave no lag`() async throws {
    try await TransformFixture.with(real: { _ in [:] }) { lane in
      try await TransactionalWriter.write(Array(repeating: Self.request("user:nobody"), count: 3), to: lane.topics.requests, on: lane.kafka)
      try await TransactionalWriter.write([Self.request("user:nobody")], to: lane.topics.requests, on: lane.kafka, .aborted)
      await lane.eventually("the requests are judged") { lane.count(.unregistered) == 3 }
      await lane.eventually("the group has committed the end") { try await lane.committed(lane.topics.requests) == 6 }
      await lane.eventually("no lag is shown") {
        lane.metric("carillon_lag_records{topic=\"\(lane.topics.requests)\",partition=\"0\"}") == 0
      }
      // The marker fits what is read next.
      try await lane.request("user:nobody")
      await lane.eventually("the next request is judged") { lane.count(.unregistered) == 4 }
    }
  }
}
