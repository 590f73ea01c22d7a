import EventLoop
import Kafka
import TestSupport
import Testing

@testable import Operations
import Worker

@Suite struct TopicReaderTests {
  private actor Lane: LoopActor {
    nonisolated let loop: EventLoop
    init(_ loop: EventLoop) { self.loop = loop }

    func read(_ stretches: [TopicStretch], _ kafka: KafkaFixture) async throws -> [TestRecord] {
      let (reader, all) = (TopicReader(on: loop, kafka.configuration), Records())
      try await reader.read(stretches, "records") { all.records.append(TestRecord($0)) }
      return all.records
    }

    func readWhatMustBeThere(
      _ stretches: [TopicStretch], _ kafka: KafkaFixture
    ) async throws -> (offsets: [Int64], unreadable: [Range<Int64>]) {
      let (reader, all) = (TopicReader(on: loop, kafka.configuration), Records())
      reader.onUnreadable = { all.unreadable.append($0.offsets) }
      try await reader.read(stretches, "records", in: nil, mustBeThere: true) { all.records.append(TestRecord($0)) }
      return (all.records.compactMap(\.offset), all.unreadable)
    }

    func read(at places: [(partition: TopicPartition, offset: Int64)], _ kafka: KafkaFixture) async throws -> [TestRecord] {
      let (reader, all) = (TopicReader(on: loop, kafka.configuration), Records())
      try await reader.read(at: places, "records") { all.records.append(TestRecord($0)) }
      return all.records
    }

    /// Reads while the second partition waits for the end of the first: how many records it gave in all, and how many of them before.
    func readInOrder(_ stretches: [TopicStretch], _ kafka: KafkaFixture) async throws -> (count: Int, early: Int) {
      let order = Order()
      try await TopicReader(on: loop, kafka.configuration).read(stretches, "records", in: order) { order.take($0) }
      return (order.count, order.early)
    }

    func readUntil(_ count: Int, of stretches: [TopicStretch], _ kafka: KafkaFixture) async throws -> Int {
      let all = Records()
      try await TopicReader(on: loop, kafka.configuration).read(stretches, "records", in: nil, until: { all.records.count >= count }) {
        all.records.append(TestRecord($0))
      }
      return all.records.count
    }

    /// Reads until the reader fails: what it said of its client before, and why it failed.
    func fail(_ stretches: [TopicStretch], _ kafka: KafkaConfiguration) async -> (told: [KafkaError], failure: KafkaError?) {
      let (reader, all) = (TopicReader(on: loop, kafka, silenceMilliseconds: 2_000), Records())
      reader.onClientError = { all.errors.append($0) }
      do throws(KafkaError) { try await reader.read(stretches, "records") { _ in } } catch { return (all.errors, error) }
      return (all.errors, nil)
    }
  }

  private final class Records {
    var records: [TestRecord] = []
    var unreadable: [Range<Int64>] = []
    var errors: [KafkaError] = []
  }

  private final class Order: ReadingPace {
    private var hasEnded = false
    private(set) var (count, early) = (0, 0)

    func take(_ record: RecordView) {
      count += 1
      if record.partition == 1, !hasEnded { early += 1 }
    }

    func ended(_ partition: TopicPartition) { if partition.partition == 0 { hasEnded = true } }
    func waits(_ partition: TopicPartition) -> Bool { partition.partition == 1 && !hasEnded }
  }

  private func records(_ count: Int, partitions: Int32) -> [TestRecord] {
    (0..<count).map { TestRecord(key: nil, "\($0)", partition: Int32($0) % partitions) }
  }

  @Test(.enabled(if: TransactionalWriter.isPossible, "\(KafkaFixture.howToGetOne)"))
  func `reading ends behind the last transaction that has ended`() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("stretches", partitions: 1)
      try await TransactionalWriter.write(records(3, partitions: 1), to: topic, on: kafka)
      try await TransactionalWriter.write(records(2, partitions: 1), to: topic, on: kafka, .aborted)
      try await TransactionalWriter.write(records(2, partitions: 1), to: topic, on: kafka, .open)
      let stretches = try await kafka.admin.stretches(of: topic)
      #expect(stretches.map(\.offsets) == [0..<7])
      #expect(try await Lane(kafka.loop).read(stretches, kafka).map(\.offset) == [0, 1, 2])
      #expect(try await Lane(kafka.loop).read([TopicStretch(TopicPartition(topic, 0), 3, 7)], kafka).isEmpty)
    }
  }

  @Test(.enabled(if: BombWriter.isPossible, "\(KafkaFixture.howToGetOne)"))
  func `what cannot be read is told and passed over, also of records that must be there`() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("stretches", partitions: 1)
      try await kafka.publish(records(5, partitions: 1), to: topic)
      for _ in 0..<3 { try await BombWriter.write(to: topic, records: 2, on: kafka) }
      let found = try await Lane(kafka.loop).readWhatMustBeThere(try await kafka.admin.stretches(of: topic), kafka)
      #expect(found.offsets == [0, 1, 2, 3, 4] && found.unreadable == [5..<7, 7..<9, 9..<11])
    }
  }

  @Test func whatIsThereAtTheStartIsReadAndNothingElse() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("stretches", partitions: 3)
      try await kafka.publish(records(300, partitions: 3), to: topic)
      let stretches = try await kafka.admin.stretches(of: topic)
      #expect(stretches.map(\.offsets) == [0..<100, 0..<100, 0..<100])
      try await kafka.publish(records(30, partitions: 3), to: topic)
      let lane = Lane(kafka.loop)
      let all = try await lane.read(stretches, kafka)
      #expect(all.count == 300)
      for partition in 0..<3 as Range<Int32> {
        // Each partition in its own order.
        #expect(all.filter { $0.partition == partition }.map(\.offset) == (0..<100).map { Int64($0) })
      }
      let some = try await lane.read([TopicStretch(TopicPartition(topic, 1), 40, 43), TopicStretch(TopicPartition(topic, 2), 7, 7)], kafka)
      #expect(some.map(\.offset) == [40, 41, 42])
      #expect(try await lane.read([], kafka).isEmpty)
    }
  }

  @Test func recordsAreFoundWhereTheyLie() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("places", partitions: 2)
      try await kafka.publish(records(6_000, partitions: 2), to: topic)
      let places = [(0, 5), (0, 2_999), (1, 0), (1, 2_500), (0, 5), (1, 99_999)].map {
        (partition: TopicPartition(topic, Int32($0.0)), offset: Int64($0.1))
      }
      let found = try await Lane(kafka.loop).read(at: places.dropLast(), kafka)
      #expect(Set(found.map(\.text)) == ["10", "5998", "1", "5001"])
      #expect(found.count == 4)
    }
  }

  @Test func recordsOfATimeAreFound() async throws {
    try await KafkaFixture.with { kafka in
      // The embedded broker finds nothing by time: it gives all, and the reader judges by the records' own times.
      guard kafka.embedded == nil else { return }
      let topic = try await kafka.topic("times")
      let base: Int64 = 1_700_000_000_000
      try await kafka.publish((0..<100).map { TestRecord("\($0)", partition: 0, timestamp: base + Int64($0) * 1_000) }, to: topic)
      let stretches = try await kafka.admin.stretches(of: topic, TimeRange(from: base + 20_000, to: base + 30_000))
      #expect(stretches.map(\.offsets) == [20..<30])
      #expect(try await kafka.admin.stretches(of: topic, TimeRange(from: base + 999_000)).map(\.offsets) == [100..<100])
    }
  }

  @Test func aPartitionThatRunsAheadWaitsForAnother() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("steps", partitions: 2)
      try await kafka.publish(records(12_000, partitions: 2), to: topic)
      let read = try await Lane(kafka.loop).readInOrder(try await kafka.admin.stretches(of: topic), kafka)
      #expect(read.count == 12_000)
      // The first turn of the loop may bring a thousand before it can wait.
      #expect(read.early <= 1_000)
    }
  }

  @Test func readingEndsWhenItIsEnough() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("enough", partitions: 2)
      try await kafka.publish(records(20_000, partitions: 2), to: topic)
      let count = try await Lane(kafka.loop).readUntil(10, of: try await kafka.admin.stretches(of: topic), kafka)
      #expect(count >= 10 && count < 20_000)
    }
  }

  @Test func `silence is an error, and the errors of the client are told before`() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic("silence")
      try await kafka.publish(records(10, partitions: 1), to: topic)
      let stretches = try await kafka.admin.stretches(of: topic)
      try kafka.embedded?.takeDown()
      let (told, failure) = await Lane(kafka.loop).fail(stretches, kafka.configuration)
      #expect(failure != nil && !told.isEmpty)
    }
  }
}
