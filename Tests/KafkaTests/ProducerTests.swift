import EventLoop
import Glibc
import Kafka
import TestSupport
import Testing

@Suite struct ProducerTests {
  @Test func recordsComeBackAsTheyWere() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic()
      let published = [
        TestRecord(
          key: "k", "value", headers: [.init("a", "1"), .init("empty", ""), .init("none", nil), .init("a", "2"), .init("ü", "ö")],
          partition: 0, timestamp: 1_700_000_000_123),
        TestRecord(key: nil, "no key", partition: 0),
        TestRecord(key: "", "", partition: 0),
        TestRecord(key: "gone", nil, partition: 0),
      ]
      let before = Int64(wallClock())
      try await kafka.publish(published, to: topic)
      let after = Int64(wallClock())
      let read = try await kafka.records(of: topic, count: 4)
      #expect(read.map(\.key) == published.map(\.key))
      #expect(read.map(\.value) == published.map(\.value))
      #expect(read.map(\.headers) == published.map(\.headers))
      #expect(read.map(\.offset) == [0, 1, 2, 3])
      #expect(read[0].timestamp == 1_700_000_000_123)
      #expect((before - 1...after + 1).contains(read[1].timestamp ?? 0))
    }
  }

  @Test func headersAreCopiedFromARecordAndUsedAgain() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic("source")
      let copy = try await kafka.topic("copy")
      try await kafka.publish([TestRecord("a", headers: [.init("x", "1"), .init("y", nil)]), TestRecord("b")], to: topic)
      let copier = Copier()
      try await copier.run(kafka.configuration, from: TopicPartition(topic, 0), to: copy, count: 2)
      await copier.loop.close()
      let read = try await kafka.records(of: copy, count: 2)
      #expect(read.map(\.headers) == [[.init("x", "1"), .init("y", nil), .init("by", "copier")], [.init("by", "copier")]])
    }
  }

  @Test func keysLandWhereJavaClientsPutThem() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 10)
      // Java's `Utils.toPositive(Utils.murmur2(key)) % 10`, by Kafka's own vectors of murmur2.
      let vectors: [(String, Int32)] = [("21", -973_932_308), ("foobar", -790_332_482), ("a-little-bit-long-string", -985_981_536)]
      try await kafka.publish(vectors.map { TestRecord(key: $0.0, "x") }, to: topic)
      let read = try await kafka.records(of: topic, count: vectors.count)
      for (key, hash) in vectors {
        #expect(read.first { $0.key == Array(key.utf8) }?.partition == (hash & 0x7fff_ffff) % 10, "\(key)")
      }
    }
  }

  @Test func fullUntilThereIsRoomAgain() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic()
      let lane = ProducerLane()
      var options = Producer.Options.patient
      options.maximumRecords = 10
      options.lingerMilliseconds = 50
      try await lane.open(kafka.configuration, options)
      let outcomes = try await lane.produce(topic, opaques: 0..<12)
      #expect(outcomes == Array(repeating: true, count: 10) + [false, false])
      await eventually("the producer says that it has room again") { await lane.rooms == 1 }
      guard case .taken = try await lane.produce(topic, "x", opaque: 12) else { throw Unexpected("still full") }
      #expect(await lane.flush())
      #expect(await lane.reports.map(\.opaque).sorted() == Array(0..<10) + [12])
      #expect(await lane.reports.allSatisfy { $0.failure == nil && $0.offset >= 0 })
      #expect(await lane.close())
      await lane.end()
    }
  }

  @Test func anUndeliverableRecordIsReported() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic()
      let lane = ProducerLane()
      var options = Producer.Options.patient
      options.messageTimeoutMilliseconds = 1_000
      try await lane.open(kafka.configuration, options)
      // The first ones wait for the connection, which may take as long as they have.
      var arrived = false
      for _ in 0..<20 where !arrived { arrived = (try? await lane.send(topic, key: nil, "arrives")) != nil }
      try #require(arrived)
      try kafka.embedded?.takeDown()
      let error = await #expect(throws: KafkaError.self) { try await lane.send(topic, key: nil, "does not") }
      #expect(error?.code == .messageTimedOut && error?.isRetriable == true)
      _ = try await lane.produce(topic, "neither", opaque: 7)
      await eventually("the report of a record that could not be delivered") { await lane.reports.count == 1 }
      #expect(await lane.reports.first?.opaque == 7)
      #expect(await lane.reports.first?.failure == .messageTimedOut)
      await lane.end()
    }
  }

  @Test func aRetriedRecordIsThereOnceAndInItsPlace() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic()
      let lane = ProducerLane()
      try await lane.open(
        kafka.configuration.merging(["retry.backoff.ms": "20", "max.in.flight.requests.per.connection": "1"]))
      _ = try await lane.send(topic, key: nil, "0")
      try kafka.embedded?.failNext(.produce, with: [.init(rawValue: 7), .transport, .init(rawValue: 7)])
      for number in 1...20 { _ = try await lane.produce(topic, "\(number)", opaque: UInt64(number)) }
      #expect(await lane.flush())
      #expect(await lane.reports.count { $0.failure == nil } == 20)
      await lane.end()
      #expect(try await kafka.records(of: topic, count: 21).map(\.text) == (0...20).map(String.init))
    }
  }

  /// A producer whose first record is refused while others are on the way, and taken: Kafka takes any first batch of a producer that it does
  /// not know in a partition, and the embedded broker any at any time.
  ///
  /// The others have to be on their way before the broker answers. A machine that stands still may be too late for that, so the broker takes
  /// longer for its answer until they were. `body` returns whether they were.
  private func withFirstRecordRefused(
    givingAgain: Bool = false, _ body: @Sendable (_ kafka: KafkaFixture, _ lane: ProducerLane, _ topic: String) async throws -> Bool
  ) async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      var options = Producer.Options.patient
      options.givesAgain = givingAgain
      for milliseconds in [200, 1_000, 5_000, 15_000] as [Int32] {
        let topic = try await kafka.topic("\(milliseconds)")
        let lane = ProducerLane()
        try await lane.open(kafka.configuration.merging(["retry.backoff.ms": "200", "batch.num.messages": "1", "linger.ms": "0"]), options)
        try kafka.embedded?.setRoundTrip(milliseconds: milliseconds)
        try kafka.embedded?.failNext(.produce, with: [.init(rawValue: 7)])
        do {
          let wasTaken = try await body(kafka, lane, topic)
          await lane.end()
          if wasTaken { return }
        } catch {
          await lane.end()
          throw error
        }
      }
      Issue.record("the broker has answered before the other records were on their way")
    }
  }

  @Test func aRecordIsInItsTopicWhenItsReportSaysSoThoughALaterOneWasTakenFirst() async throws {
    try await withFirstRecordRefused { kafka, lane, topic in
      for number in 0..<5 { _ = try await lane.produce(topic, "\(number)", opaque: UInt64(number)) }
      #expect(await lane.flush())
      let reports = await lane.reports
      #expect(reports.map(\.opaque).sorted() == Array(0..<5))
      let delivered = reports.filter { $0.failure == nil }
      #expect(delivered.allSatisfy { $0.offset >= 0 })
      let records = try await kafka.records(of: topic, count: delivered.count)
      #expect(Set(records.map(\.text)).isSuperset(of: delivered.map { "\($0.opaque)" }))
      return !delivered.isEmpty && reports.contains { $0.failure == .unconfirmed }
    }
  }

  @Test func whatMayBeGivenAgainIsAllInItsTopicThoughALaterOneWasTakenFirst() async throws {
    try await withFirstRecordRefused(givingAgain: true) { kafka, lane, topic in
      for number in 0..<5 { _ = try await lane.produce(topic, "\(number)", opaque: UInt64(number)) }
      #expect(await lane.flush())
      let reports = await lane.reports
      #expect(reports.map(\.opaque).sorted() == Array(0..<5))
      #expect(reports.allSatisfy { $0.failure == nil && $0.offset >= 0 })
      let texts = try await kafka.records(of: topic, count: 5).map(\.text)
      #expect(Set(texts) == Set((0..<5).map(String.init)))
      return texts.first != "0"
    }
  }

  @Test func whatIsWaitedForFailsRatherThanToComeAfterALaterOneThatWasTakenFirst() async throws {
    try await withFirstRecordRefused(givingAgain: true) { kafka, lane, topic in
      let sent = Task { try await lane.send(topic, key: nil, "waited for") }
      await eventually("it is on its way") { await lane.inFlight == 1 }
      for number in 0..<4 { _ = try await lane.produce(topic, "\(number)", opaque: UInt64(number)) }
      do {
        _ = try await sent.value
        #expect(await lane.flush())
        let records = try await kafka.records(of: topic, count: 5)
        #expect(records.first?.text == "waited for")
        return false
      } catch let error as KafkaError {
        #expect(error.code == .unconfirmed)
        #expect(await lane.flush())
        let records = try await kafka.records(of: topic, count: 4)
        #expect(Set(records.map(\.text)) == Set((0..<4).map(String.init)))
        return true
      }
    }
  }

  @Test func aProducerThatHasFailedForGoodReportsAllThatItHasAtOnce() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let (topic, other) = (try await kafka.topic(), try await kafka.topic("leaderless"))
      let lane = ProducerLane()
      try await lane.open(kafka.configuration)
      _ = try await lane.send(topic, key: nil, "first")
      try kafka.embedded?.setLeader(of: TopicPartition(other, 0), to: -1)
      for opaque in 0..<10 { _ = try await lane.produce(other, "stuck", opaque: UInt64(opaque)) }
      let outOfOrder = KafkaError.Code(rawValue: 45)
      try kafka.embedded?.failNext(.produce, with: [outOfOrder])
      _ = await #expect(throws: KafkaError.self) { try await lane.send(topic, key: nil, "second") }
      #expect(await lane.flush(), "records without a leader have a minute otherwise")
      #expect(await lane.reports.map(\.opaque) == Array(0..<10))
      #expect(await lane.reports.allSatisfy { $0.failure != nil })
      await lane.end()
    }
  }

  @Test(.onlyInAll("it is about time: how many round trips there are at once"))
  func manyRequestsWaitForADistantBrokerWhenRecordsMayComeTwice() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let partitions: Range<Int32> = 0..<40
      let topic = try await kafka.topic(partitions: partitions.upperBound)
      let lane = ProducerLane()
      var options = Producer.Options.patient
      options.isIdempotent = false
      try await lane.open(kafka.configuration, options)
      for partition in partitions { _ = try await lane.send(topic, key: nil, "near", partition: partition) }
      try kafka.embedded?.setRoundTrip(milliseconds: 1_000)
      // A machine that stands still makes some rounds longer.
      var isFast = false
      for _ in 0..<4 where !isFast {
        let start = Moment()
        try await withThrowingTaskGroup { group in
          for partition in partitions { group.addTask { _ = try await lane.send(topic, key: nil, "far", partition: partition) } }
          try await group.waitForAll()
        }
        isFast = start.isWithin(.seconds(5))
      }
      #expect(isFast, "five at a time, of one partition each, take eight seconds")
      await lane.end()
    }
  }

  /// A topic whose limit many companies set, and a producer that knows it, or takes it for the default.
  private func withSmallLimit(
    known: Bool, givingAgain: Bool, _ body: @Sendable (_ kafka: KafkaFixture, _ lane: ProducerLane, _ topic: String) async throws -> Void
  ) async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(settings: ["max.message.bytes": "65536"])
      let limits = try await kafka.admin.writeLimits(of: [topic])
      try #require(limits.batchBytes == [topic: 65_536])
      let lane = ProducerLane()
      var options = Producer.Options.patient
      options.lingerMilliseconds = 200
      options.givesAgain = givingAgain
      if known { options.batchBytes = limits.batchBytes(ofEach: [topic]) }
      try await lane.open(kafka.configuration, options)
      do { try await body(kafka, lane, topic) } catch {
        await lane.end()
        throw error
      }
      await lane.end()
    }
  }

  private static let sound = String(repeating: "x", count: 300)

  @Test(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
  func `no batch of sound records is larger than its topic takes`() async throws {
    try await withSmallLimit(known: true, givingAgain: false) { _, lane, topic in
      for number in 0..<4_000 { _ = try await lane.produce(topic, Self.sound, opaque: UInt64(number)) }
      #expect(await lane.flush())
      #expect(await lane.reports.count { $0.failure == nil && $0.offset >= 0 } == 4_000)
    }
  }

  @Test(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
  func `a refused batch blames only the record that is refused alone`() async throws {
    try await withSmallLimit(known: false, givingAgain: true) { kafka, lane, topic in
      for number in 0..<1_000 {
        let text = number == 500 ? String(repeating: "x", count: 100_000) : "\(number) \(Self.sound)"
        _ = try await lane.produce(topic, text, opaque: UInt64(number))
      }
      #expect(await lane.flush())
      let reports = await lane.reports
      #expect(reports.map(\.opaque).sorted() == Array(0..<1_000), "each record has one report")
      #expect(reports.filter { $0.failure != nil }.map { "\($0.opaque) \($0.failure?.rawValue ?? 0)" } == ["500 10"])
      let records = try await kafka.records(of: topic, count: 999)
      #expect(records.compactMap { $0.text.split(separator: " ").first.flatMap { Int($0) } }.sorted() == (0..<1_000).filter { $0 != 500 })
      #expect(records.allSatisfy { $0.timestamp ?? -1 > 0 }, "what is sent alone has a time, by which it is found and kept")
      #expect(await lane.inFlight == 0)
      #expect(await lane.close())
    }
  }

  @Test func `an awaited record that its batch was refused for goes alone only where its sender allows that`() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic()
      let lane = ProducerLane()
      try await lane.open(kafka.configuration)
      try kafka.embedded?.failNext(.produce, with: [.messageTooLarge])
      let error = await #expect(throws: KafkaError.self) { try await lane.send(topic, key: nil, "stays behind") }
      #expect(error?.code == .messageTooLarge)
      try kafka.embedded?.failNext(.produce, with: [.messageTooLarge])
      #expect(try await lane.send(topic, key: nil, "goes alone", mayGoAlone: true) != nil)
      try kafka.embedded?.failNext(.produce, with: [.messageTooLarge, .messageTooLarge])
      let blame = await #expect(throws: KafkaError.self) { try await lane.send(topic, key: nil, "is too large", mayGoAlone: true) }
      #expect(blame?.code == .messageTooLarge)
      await lane.end()
      #expect(try await kafka.records(of: topic, count: 1).map(\.text) == ["goes alone"])
    }
  }

  @Test func closingDoesNotHangWithRecordsInFlight() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic()
      let lane = ProducerLane()
      try await lane.open(kafka.configuration)
      _ = try await lane.send(topic, key: nil, "first")
      try kafka.embedded?.takeDown()
      for opaque in 0..<1_000 { _ = try await lane.produce(topic, "stuck", opaque: UInt64(opaque)) }
      #expect(try await endsByItself("the closing") { await lane.close(withinMilliseconds: 300) } == false)
      #expect(await lane.reports.count == 1_000, "each record that was taken gets a report")
      #expect(await lane.reports.allSatisfy { $0.failure == .purged || $0.failure == .purgedInFlight })
      await lane.end()
    }
  }

  @Test(.timeLimit(.minutes(10))) func eachAwaitedRecordIsToldOfHoweverSoonItsReportComes() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 1)
      let lane = ProducerLane()
      var options = Producer.Options.patient
      options.lingerMilliseconds = 0
      try await lane.open(kafka.configuration, options)
      let offsets = try await withThrowingTaskGroup { group in
        for sender in 0..<20 {
          group.addTask {
            var offsets: [Int64] = []
            for number in 0..<100 { offsets += try await lane.send(topic, key: nil, "\(sender) \(number)").map { [$0.offset] } ?? [] }
            return offsets
          }
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      #expect(offsets.sorted() == Array(0..<2000))
      await lane.close()
      await lane.end()
    }
  }

  @Test func awaitingARecordTellsWhereItIs() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 3)
      let lane = ProducerLane()
      try await lane.open(kafka.configuration)
      let first = try await lane.send(topic, key: "k", "a", partition: 2)
      let second = try await lane.send(topic, key: nil, nil, partition: 2)
      #expect(first?.partition == 2 && first?.offset == 0 && second?.offset == 1)
      #expect(await lane.reports.isEmpty, "an awaited record is not reported to the handler")
      await lane.close()
      await #expect(throws: KafkaError.self) { try await lane.send(topic, key: nil, "late") }
      await lane.end()
    }
  }
}

struct Unexpected: Error {
  var what: String
  init(_ what: String) { self.what = what }
}

func wallClock() -> Int {
  var time = timespec()
  clock_gettime(CLOCK_REALTIME, &time)
  return time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
}

/// Copies records with their headers and one more.
private actor Copier: LoopActor {
  private final class Core: ConsumerHandler, ProducerHandler {
    var producer: Producer?
    var topic: ProducerTopic?
    let headers = RecordHeaders()
    var copied = 0
    func consumerReceived(_ batch: RecordBatch) {
      for place in batch.indices {
        guard let producer, let topic else { return }
        headers.copy(from: batch[place])
        headers.append("by", "copier")
        if case .taken = producer.produce(
          topic, partition: 0, key: batch[place].key, value: batch[place].value, headers: headers, opaque: 0)
        {
          #expect(headers.count == 0)
          copied += 1
        }
      }
    }
    func consumerAssigned(_ partitions: [AssignedPartition]) {}
    func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }
    func consumerFailed(_ error: KafkaError) {}
    func producerDelivered(_ reports: [DeliveryReport]) {}
    func producerHasRoom() {}
    func producerFailed(_ error: KafkaError) {}
  }

  nonisolated let loop = EventLoop(name: "copier")

  func run(_ configuration: KafkaConfiguration, from source: TopicPartition, to target: String, count: Int) async throws {
    let core = Core()
    let producer = try Producer(on: loop, configuration, handler: core)
    core.producer = producer
    core.topic = try producer.topic(target)
    let consumer = try Consumer(on: loop, configuration, .init(), handler: core)
    try await consumer.assign([(source, .earliest)])
    await eventually("records are copied") { core.copied == count }
    await consumer.close()
    await producer.close()
  }
}
