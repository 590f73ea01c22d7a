import EventLoop
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

/// Batches that librdkafka cannot read, in the topics of a lane.
@Suite(.enabled(if: BombWriter.isPossible, "\(KafkaFixture.howToGetOne)"))
struct UnreadableTests {
  /// Requests stay compressed as their producer has them.
  private static let compressed: @Sendable (Topics) -> [String: [String: String]] = { [$0.requests: ["compression.type": "producer"]] }

  @Test func `a batch of requests that becomes much larger in memory is refused by the broker`() async throws {
    try await TransformFixture.with(real: { _ in [:] }) { lane in
      let failure = await #expect(throws: CommandFailure.self) { try await BombWriter.write(to: lane.topics.requests, on: lane.kafka) }
      #expect(failure?.description.contains("MSG_SIZE_TOO_LARGE") == true)
    }
  }

  @Test func `a batch that cannot be decompressed goes to the dead letters as a range, and its partition goes on`() async throws {
    try await TransformFixture.with(real: Self.compressed) { lane in
      try await lane.request("user:nobody", count: 2)
      try await BombWriter.write(to: lane.topics.requests, on: lane.kafka)
      try await lane.request("user:nobody", count: 2)
      await lane.eventually("the requests behind it are judged") { lane.count(.unregistered) == 4 }
      await lane.eventually("all of it is committed") { try await lane.committed(lane.topics.requests) == 7 }
      #expect(lane.metric("carillon_transform_unreadable_offsets_total") == 3)
      let letters = try await lane.kafka.records(of: lane.topics.deadLetters, count: 1)
      let letter = try #require(DeadLetter(headers: letters[0].headers.map { ($0.name, String(decoding: $0.value ?? [], as: UTF8.self)) }))
      #expect(letter.reason == DeadLetter.unreadable && letter.source.topic == lane.topics.requests && letter.error?.isEmpty == false)
      #expect(letter.source.position.offset == 2 && letter.last == 4 && letters[0].value == nil && !letter.isComplete)
      let stretches = try await lane.unreadableEntries()
      #expect(stretches == [2..<5])
    }
  }

  @Test func `nobody begins inside of what was passed over`() async throws {
    try await TransformFixture.with(real: Self.compressed) { lane in
      try await lane.request("user:nobody")
      try await BombWriter.write(to: lane.topics.requests, on: lane.kafka)
      await lane.eventually("it is passed over and committed") { try await lane.committed(lane.topics.requests) == 4 }
      #expect(try await lane.marker(.requests(0)) == Marker(offset: 4, timestamp: -1))
      await lane.drain(withinMilliseconds: hangMilliseconds)
      try await lane.beside(1) { healths in
        await lane.eventually("another lane is ready") { healths[0].isReady }
        try await lane.request("user:nobody")
        await lane.eventually("it has committed the next request") { try await lane.committed(lane.topics.requests) == 5 }
      }
      #expect(try await lane.kafka.admin.ends(of: [TopicPartition(lane.topics.deadLetters, 0)]).values.first?.upperBound == 1)
    }
  }

  @Test func `registrations behind a batch that cannot be read complete the registry, also of a rebuilt Redis`() async throws {
    let token = TransformFixture.tokens(in: [(0, 1)])[0]
    try await TransformFixture.with(
      before: { lane in
        try await BombWriter.write(to: lane.topics.devices, on: lane.kafka)
        try await lane.publishRegistrations([token], for: "ada")
        try await BombWriter.write(to: lane.topics.devices, on: lane.kafka)
      }, real: Self.compressed
    ) { lane in
      try await lane.request("user:ada")
      await lane.eventually("the request waits in the mailbox") { try await lane.waiting(token) == 1 }
      // Each of the batches is decompressed again and again while its end is searched.
      await lane.eventually("all of it is committed") {
        let (devices, requests) = (try await lane.committed(lane.topics.devices), try await lane.committed(lane.topics.requests))
        return devices == 7 && requests == 1
      }
      try await BombWriter.write(to: lane.topics.requests, on: lane.kafka)
      await lane.eventually("the requests, too") { try await lane.committed(lane.topics.requests) == 4 }
      let markers = [try await lane.marker(.devices(0)), try await lane.marker(.requests(0))]
      await lane.drain(withinMilliseconds: hangMilliseconds)
      try await lane.rebuild()
      #expect(try await [lane.marker(.devices(0)), lane.marker(.requests(0))] == markers)
      #expect(try await lane.waiting(token) == 1)
    }
  }
}
