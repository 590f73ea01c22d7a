import EventLoop
import Synchronization
import TestSupport
import Testing

@testable import Kafka

@Suite struct BatchEndTests {
  @Test(arguments: 0..<(isComplete ? 200 : 40)) func `the end of a batch is found, wherever in it the search begins`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    let first = Int64(random.next() % 1_000)
    let batch = first..<first + 1 + Int64(random.next() % 5_000)
    let begin = batch.lowerBound + Int64(random.next() % UInt64(batch.count))
    // Behind it may be nothing, or anything.
    var search = BatchEnd(inside: begin, end: batch.upperBound + Int64(random.next() % 3) * 2_000)
    var looks = 0
    while let offset = search.next {
      looks += 1
      if batch.contains(offset) {
        search.isInside(offset)
      } else {
        // The next batch may tell where it begins.
        search.isOutside(random.next() % 2 == 0 ? offset : min(offset, batch.upperBound + Int64(random.next() % 10)))
      }
      if looks > 40 { break }
    }
    #expect(search.found == batch.upperBound && looks <= 30)
  }
}

@Suite(.enabled(if: BombWriter.isPossible, "\(KafkaFixture.howToGetOne)"))
struct UnreadableTests {
  private actor Lane: LoopActor {
    nonisolated let loop: EventLoop
    private let records = Records()
    private var consumer: Consumer?
    init(_ loop: EventLoop) { self.loop = loop }

    func read(_ topic: String, from offset: Int64, _ kafka: KafkaFixture) async throws {
      let consumer = try Consumer(on: loop, kafka.configuration, Consumer.Options(), handler: records)
      self.consumer = consumer
      try await consumer.assign([(TopicPartition(topic, 0), .offset(offset))])
    }

    var found: (offsets: [Int64], stretches: [Range<Int64>]) { (records.offsets, records.stretches) }

    func close() async { await consumer?.close() }
  }

  private final class Records: ConsumerHandler {
    var offsets: [Int64] = []
    var stretches: [Range<Int64>] = []
    func consumerReceived(_ batch: RecordBatch) { for place in batch.indices { offsets.append(batch[place].offset) } }
    func consumerAssigned(_ partitions: [AssignedPartition]) {}
    func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }
    func consumerFailed(_ error: KafkaError) {}
    func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
      stretches.append(stretch.offsets)
      return true
    }
  }

  private func read(
    _ topic: String, from offset: Int64, _ kafka: KafkaFixture, until isEnough: ([Int64], [Range<Int64>]) -> Bool
  ) async throws -> (offsets: [Int64], stretches: [Range<Int64>]) {
    let lane = Lane(kafka.loop)
    try await lane.read(topic, from: offset, kafka)
    await eventually("all of it is found") {
      let found = await lane.found
      return isEnough(found.offsets, found.stretches)
    }
    let found = await lane.found
    await lane.close()
    return found
  }

  @Test func `a batch that cannot be decompressed is passed over once, and what follows is read`() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("bomb")
      try await kafka.publish([TestRecord("a"), TestRecord("b")], to: topic)
      try await BombWriter.write(to: topic, on: kafka)
      try await kafka.publish([TestRecord("c")], to: topic)
      try await BombWriter.write(to: topic, records: 1, on: kafka)
      try await kafka.publish([TestRecord("d")], to: topic)
      let all = try await read(topic, from: 0, kafka) { offsets, _ in offsets.last == 7 }
      #expect(all.offsets == [0, 1, 5, 7] && all.stretches == [2..<5, 6..<7])
      let rest = try await read(topic, from: 3, kafka) { offsets, _ in offsets.last == 7 }
      #expect(rest.offsets == [5, 7] && rest.stretches == [3..<5, 6..<7])
    }
  }

  @Test func `where nothing follows, what comes later is read`() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("bomb")
      try await BombWriter.write(to: topic, on: kafka)
      let lane = Lane(kafka.loop)
      try await lane.read(topic, from: 0, kafka)
      await eventually("the batch is passed over") { await !lane.found.stretches.isEmpty }
      try await kafka.publish([TestRecord("a")], to: topic)
      await eventually("the record is read") { await !lane.found.offsets.isEmpty }
      let found = await lane.found
      #expect(found.offsets == [3] && found.stretches == [0..<3])
      await lane.close()
    }
  }
}
