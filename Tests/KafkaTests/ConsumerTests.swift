import EventLoop
import Kafka
import TestSupport
import Testing

@Suite struct ConsumerTests {
  @Test func aHeldBatchStaysReadable() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic()
      let values = (0..<500).map {
        TestRecord(key: "k\($0)", String(repeating: "v\($0) ", count: 20), headers: [.init("h", "\($0)")], partition: 0)
      }
      try await kafka.publish(values, to: topic)
      let lane = ConsumerLane()
      try await lane.open(kafka.configuration)
      await lane.holdBatches()
      _ = try await lane.assign([(TopicPartition(topic, 0), .earliest)])
      await eventually("500 records come") { await lane.count == 500 }
      try await kafka.publish(values, to: topic)
      await eventually("1000 records come") { await lane.count == 1_000 }
      #expect(await lane.closeConsumer(withinMilliseconds: 500) == false, "the consumer cannot be freed before the batches")
      let held = await lane.heldRecords
      #expect(held.map(\.value) == (values + values).map(\.value))
      #expect(held.map(\.headers) == (values + values).map(\.headers))
      await lane.releaseBatches()
      await lane.close()
    }
  }

  @Test func pausingLosesNothingAndRepeatsNothing() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 4)
      let lane = ConsumerLane()
      var options = Consumer.Options()
      // Few at a time, so that a pause finds fetched records that were not given yet.
      options.recordsPerTurn = 100
      try await lane.open(kafka.configuration, options)
      _ = try await lane.assign((0..<4).map { (TopicPartition(topic, $0), .earliest) })
      await lane.pauseOften()
      var published = 0
      while await lane.pauses < 30, published < 400_000 {
        try await kafka.publish((0..<2_000).map { TestRecord("\($0)", partition: Int32($0 % 4)) }, to: topic)
        published += 2_000
      }
      #expect(await lane.pauses >= 30, "pauses met records")
      await lane.stopPausing()
      await eventually("all records come") { await lane.count >= published }
      let records = await lane.records
      for partition in Int32(0)..<4 {
        let offsets = records.filter { $0.partition == partition }.compactMap(\.offset)
        let isExact = offsets == Array(0..<Int64(published / 4))
        #expect(isExact, "partition \(partition): \(offsets.count) records, \(Set(offsets).count) different ones, of \(published / 4)")
      }
      #expect(await lane.close())
    }
  }

  @Test func aPausedPartitionStandsStillAndTheOthersFlow() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 2)
      let lane = ConsumerLane()
      try await lane.open(kafka.configuration)
      let assigned = try await lane.assign([(TopicPartition(topic, 0), .earliest), (TopicPartition(topic, 1), .earliest)])
      await lane.pause(assigned[0].index)
      try await kafka.publish((0..<100).map { TestRecord("\($0)", partition: Int32($0 % 2)) }, to: topic)
      await eventually("the other partition flows") { await lane.count >= 50 }
      #expect(await lane.records.allSatisfy { $0.partition == 1 })
      await lane.resume(assigned[0].index)
      await eventually("the paused one goes on") { await lane.count == 100 }
      await lane.close()
    }
  }

  /// librdkafka stops reading a partition on a thread of its own, while it is begun again here.
  @Test func whatStartsAgainIsReadHoweverSoonItIsBegun() async throws {
    try await KafkaFixture.with { kafka in
      let (partitions, times) = (Int32(64), 50)
      let topic = try await kafka.topic(partitions: partitions)
      try await kafka.publish((0..<partitions).map { TestRecord("\($0)", partition: $0) }, to: topic)
      let lane = ConsumerLane()
      var options = Consumer.Options()
      options.offersPartitions = true
      try await lane.open(kafka.configuration, options)
      _ = try await lane.assign((0..<partitions).map { (TopicPartition(topic, $0), .earliest) })
      for time in 1...times {
        await eventually("each partition is read for the \(time). time") { await lane.count >= Int(partitions) * time }
        guard await lane.count == Int(partitions) * time else { break }
        await lane.startAllAgain()
      }
      #expect(await lane.count >= Int(partitions) * times)
      await lane.close()
    }
  }

  @Test func fromTheEndMeansFromAKnownOffset() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 2)
      try await kafka.publish((0..<10).map { TestRecord("old \($0)", partition: 0) }, to: topic)
      let lane = ConsumerLane()
      try await lane.open(kafka.configuration)
      let assigned = try await lane.assign([(TopicPartition(topic, 0), .latest), (TopicPartition(topic, 1), .offset(0))])
      #expect(assigned.map(\.startOffset) == [10, 0])
      try await kafka.publish((0..<10).map { TestRecord("new \($0)", partition: Int32($0 % 2)) }, to: topic)
      await eventually("the new records come") { await lane.count == 10 }
      #expect(await lane.records.allSatisfy { $0.text.hasPrefix("new") })
      #expect(await lane.close())
    }
  }

  @Test func theEndOfAPartitionIsTold() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic()
      try await kafka.publish([TestRecord("a"), TestRecord("b")], to: topic)
      let lane = ConsumerLane()
      var options = Consumer.Options()
      options.reportsPartitionEnd = true
      try await lane.open(kafka.configuration, options)
      _ = try await lane.assign([(TopicPartition(topic, 0), .earliest)])
      await eventually("the end is told") { await lane.ends == [2] }
      #expect(await lane.count == 2)
      await lane.close()
    }
  }

  @Test func anEndThatNobodyKnowsIsAnError() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic()
      try kafka.embedded?.takeDown()
      let lane = ConsumerLane()
      try await lane.open(kafka.configuration)
      let error = await #expect(throws: KafkaError.self) {
        _ = try await lane.assign([(TopicPartition(topic, 0), .latest)], timeoutMilliseconds: 500)
      }
      #expect(error?.isRetriable == true && error?.description.contains(topic) == true, "\(error.map(String.init(describing:)) ?? "")")
      #expect(await lane.close())
    }
  }

  @Test func closingDoesNotWaitForAnEndThatNobodyTells() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic()
      try kafka.embedded?.takeDown()
      let lane = ConsumerLane()
      try await lane.open(kafka.configuration)
      let asking = Task { try await lane.assign([(TopicPartition(topic, 0), .latest)], timeoutMilliseconds: 4 * Int32(hangMilliseconds)) }
      await eventually("it is asked") { await !lane.errors.isEmpty }
      try await endsByItself("the closing, and the question with it") {
        #expect(await lane.closeConsumer(withinMilliseconds: 4 * hangMilliseconds))
        await #expect(throws: KafkaError.self) { _ = try await asking.value }
      }
      await lane.close()
    }
  }

  @Test func aWrongPropertyIsNamed() async throws {
    let loop = EventLoop(name: "wrong")
    for (properties, named) in [
      (["fetch.wait.mx.ms": "10"], "fetch.wait.mx.ms"), (["fetch.wait.max.ms": "soon"], "fetch.wait.max.ms"),
      (["enable.idempotence": "true", "acks": "1"], "acks"),
    ] {
      let configuration = KafkaConfiguration(bootstrapServers: ["127.0.0.1:1"], properties: properties)
      let error = await #expect(throws: KafkaError.self) {
        try await loop.run { _ = try Producer(on: loop, configuration) }
      }
      #expect(
        error?.code == .invalidConfiguration && error?.description.contains(named) == true, "\(error.map(String.init(describing:)) ?? "")")
    }
    let secret = KafkaConfiguration(bootstrapServers: ["127.0.0.1:1"], properties: ["sasl.oauthbearer.method": "hush-hush"])
    let error = await #expect(throws: KafkaError.self) {
      try await loop.run { _ = try Producer(on: loop, secret) }
    }
    #expect(error.map { "\($0)".contains("sasl.oauthbearer.method") && !"\($0)".contains("hush") } == true)
    #expect(throws: KafkaError.self) { try Admin(KafkaConfiguration(bootstrapServers: [])) }
    await loop.close()
  }

  @Test func closingDoesNotHangWithUnreadRecords() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 2)
      try await kafka.publish((0..<20_000).map { TestRecord("\($0)", partition: Int32($0 % 2)) }, to: topic)
      let lane = ConsumerLane()
      var options = Consumer.Options(group: KafkaFixture.unique("group"))
      options.recordsPerTurn = 10
      try await lane.open(kafka.configuration, options, finishing: .never)
      try await lane.subscribe(topic)
      await eventually("records flow") { await lane.count > 100 }
      #expect(try await endsByItself("the closing") { await lane.close() })
    }
  }

  @Test func closingDoesNotHangWithoutABroker() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic()
      try await kafka.publish((0..<100).map { TestRecord("\($0)") }, to: topic)
      let lane = ConsumerLane()
      var options = Consumer.Options(group: KafkaFixture.unique("group"))
      options.revocationTimeoutMilliseconds = 500
      try await lane.open(kafka.configuration.merging(["session.timeout.ms": "6000"]), options)
      try await lane.subscribe(topic)
      await eventually("records flow") { await lane.count == 100 }
      try kafka.embedded?.takeDown()
      _ = try await endsByItself("the closing") { await lane.closeConsumer(withinMilliseconds: 3_000) }
      await lane.close()
    }
  }

  @Test func aHoldThrowsNothingAwayThatWasFetched() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 1)
      try await kafka.publish((0..<2_000).map { TestRecord(String(repeating: "x", count: 500) + "\($0)", partition: 0) }, to: topic)
      let lane = ConsumerLane("holding")
      try await lane.open(kafka.configuration.merging(["statistics.interval.ms": "100"]), .init())
      await lane.hold()
      _ = try await lane.assign([(TopicPartition(topic, 0), .earliest)])
      await eventually("all is fetched") { await lane.fetched == 2_000 }
      await lane.release()
      await eventually("all has come") { await lane.count == 2_000 }
      try await kafka.publish([TestRecord("the last", partition: 0)], to: topic)
      await eventually("the next has come") { await lane.count == 2_001 }
      await eventually("nothing but that was fetched") { await lane.fetched == 2_001 }
      await lane.close()
    }
  }
}
