import EventLoop
import TestSupport
import Testing

@testable import Kafka

@Suite struct GroupTests {
  /// A topic with ten records in its only partition, and the name of a group for it.
  private static func tenRecords(_ kafka: KafkaFixture) async throws -> (topic: String, partition: TopicPartition, group: String) {
    let topic = try await kafka.topic()
    try await kafka.publish((0..<10).map { TestRecord("\($0)", partition: 0) }, to: topic)
    return (topic, TopicPartition(topic, 0), KafkaFixture.unique("group"))
  }

  /// Longer than a machine stands still.
  private static let longSession = ["session.timeout.ms": "20000"]

  @Test func onlyThePrefixIsCommittedAndReadingGoesOnThere() async throws {
    try await KafkaFixture.with { kafka in
      let (topic, partition, group) = try await Self.tenRecords(kafka)
      // About so long the embedded broker has the second one wait.
      let session = ["session.timeout.ms": "12000"]
      let first = try await ConsumerLane.member("first", of: group, kafka, session, reading: topic, finishing: .never)
      await eventually("all records come") { await first.count == 10 }
      await first.finish(offsets: [0, 1, 2, 3, 5, 6, 9])
      await eventually("the prefix is committed") { try await kafka.admin.committed(group: group, of: [partition])[partition] == 4 }
      #expect(await first.inFlight == 3)
      #expect(await first.close())
      #expect(try await kafka.admin.committed(group: group, of: [partition])[partition] == 4)

      let second = try await ConsumerLane.member("second", of: group, kafka, session, reading: topic)
      await eventually("the rest comes again") { await second.count == 6 }
      #expect(await second.records.compactMap(\.offset) == Array(4..<10))
      await eventually("all is committed") { try await kafka.admin.committed(group: group, of: [partition])[partition] == 10 }
      #expect(await second.close())
    }
  }

  @Test func aPartitionHasLeftWhenWhatWasInFlightIsCommitted() async throws {
    try await KafkaFixture.with { kafka in
      let (topic, partition, group) = try await Self.tenRecords(kafka)
      let lane = ConsumerLane()
      var options = Consumer.Options(group: group)
      options.revocationTimeoutMilliseconds = 60_000
      try await lane.open(kafka.configuration.merging(["session.timeout.ms": "60000"]), options, finishing: .never)
      await lane.partWithin(milliseconds: 60_000)
      try await lane.subscribe(topic)
      await eventually("all records come") { await lane.count == 10 }
      async let closed = lane.closeConsumer(withinMilliseconds: 90_000)
      await eventually("it is given up") { await lane.owned.isEmpty }
      await lane.finish(offsets: Array(0..<9))
      #expect(await lane.left.isEmpty)
      await lane.finish(offsets: [9])
      #expect(await closed)
      #expect(await lane.left.map(\.topicPartition) == [partition])
      #expect(try await kafka.admin.committed(group: group, of: [partition])[partition] == 10)
      await lane.close()
    }
  }

  @Test func whatIsFinishedBeforeClosingIsCommitted() async throws {
    try await KafkaFixture.with { kafka in
      let (topic, partition, group) = try await Self.tenRecords(kafka)
      let lane = ConsumerLane()
      // Nothing is committed before closing.
      try await lane.open(
        kafka.configuration.merging(["session.timeout.ms": "60000"]), .init(group: group), commitMilliseconds: 3_600_000)
      try await lane.subscribe(topic)
      await eventually("all records come") { await lane.count == 10 }
      #expect(try await kafka.admin.committed(group: group, of: [partition])[partition] == nil)
      #expect(await lane.close())
      #expect(try await kafka.admin.committed(group: group, of: [partition])[partition] == 10)
    }
  }

  @Test func aFailedCommitIsTriedAgain() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic()
      let partition = TopicPartition(topic, 0)
      let group = KafkaFixture.unique("group")
      let lane = ConsumerLane()
      try await lane.open(kafka.configuration.merging(["session.timeout.ms": "60000"]), .init(group: group))
      try await lane.subscribe(topic)
      await eventually("the partition comes") { await lane.owned.count == 1 }
      try kafka.embedded?.failNext(.offsetCommit, with: Array(repeating: .init(rawValue: 7), count: 4))
      try await kafka.publish((0..<10).map { TestRecord("\($0)", partition: 0) }, to: topic)
      await eventually("the commit succeeds in the end") {
        try await kafka.admin.committed(group: group, of: [partition])[partition] == 10
      }
      await lane.close()
    }
  }

  @Test func aMemberThatWasLetInAndHasGotNothingYetEndsInOrder() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic()
      // The group forms again each time when the member asks what it has got.
      try kafka.embedded?.failNext(.syncGroup, with: Array(repeating: .init(rawValue: 27), count: 1_000))
      let lane = ConsumerLane()
      try await lane.open(kafka.configuration.merging(["debug": "cgrp"]), .init(group: KafkaFixture.unique("group")))
      try await lane.subscribe(topic)
      await eventually("the member asks what it has got") { await lane.lines.contains { $0.message.contains("SyncGroup error") } }
      #expect(await lane.owned.isEmpty)
      #expect(await lane.close())
    }
  }

  /// Members come and go while records flow: each partition moves and none of its records is missing.
  @Test func rebalancesMovePartitionsAndLoseNothing() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 4)
      let group = KafkaFixture.unique("group")
      let total = 30_000
      let first = try await ConsumerLane.member("first", of: group, kafka, reading: topic)
      await eventually("the first member has all partitions") { await first.owned.count == 4 }
      let publishing = Task {
        for round in 0..<60 {
          try await kafka.publish((0..<500).map { TestRecord("\(round * 500 + $0)", partition: Int32($0 % 4)) }, to: topic)
        }
      }
      let second = try await ConsumerLane.member("second", of: group, kafka, reading: topic)
      await eventually("the partitions are shared") {
        let (one, two) = (await first.owned.count, await second.owned.count)
        return one == 2 && two == 2
      }
      // A commit that crosses the new generation is refused, and takes the member's partitions from it; they are read again.
      let (owned, lost) = (await first.everOwned.count, await first.lost)
      #expect(owned == 4 || lost > 0, "a cooperative rebalance leaves alone what stays")
      #expect(await second.closeConsumer())
      let recordsOfSecond = await second.records
      await second.close()
      try await publishing.value
      await eventually("the first member has all partitions again") { await first.owned.count == 4 }
      await eventually("all is committed") {
        let committed = try await kafka.admin.committed(group: group, of: (0..<4).map { TopicPartition(topic, $0) })
        return committed.values.reduce(0, +) == Int64(total)
      }
      let records = await first.records + recordsOfSecond
      #expect(Set(records.map { "\($0.partition ?? -1)/\($0.offset ?? -1)" }).count == total)
      #expect(Set(records.map(\.text)).count == total)
      #expect(await first.close())
    }
  }

  @Test func aCommitAfterRevocationGoesNowhere() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 2)
      let group = KafkaFixture.unique("group")
      try await kafka.publish((0..<10).map { TestRecord("\($0)", partition: Int32($0 % 2)) }, to: topic)
      let first = ConsumerLane("first")
      var options = Consumer.Options(group: group)
      // Held until this test ends it, however long the machine stands still.
      options.revocationTimeoutMilliseconds = 60_000
      try await first.open(kafka.configuration.merging(Self.longSession), options, finishing: .never)
      await first.holdRevocations()
      try await first.subscribe(topic)
      await eventually("all records come") { await first.count == 10 }
      let before = await first.owned
      let second = try await ConsumerLane.member("second", of: group, kafka, Self.longSession, reading: topic, finishing: .never)
      await eventually("a partition is asked back") { await first.pendingRevocations == 1 }
      #expect(await second.owned.isEmpty, "a partition moves only with its owner's consent")
      let kept = await first.owned
      let revoked = try #require(before.first { !kept.contains($0) })
      await first.finishRevocations()
      await eventually("the second member has the partition") {
        await second.owned.map(\.topicPartition) == [revoked.topicPartition]
      }
      let refused = await first.commit(CommitOffset(partition: revoked.index, generation: revoked.generation, offset: 5))
      #expect(refused?.code == .notOwned)
      #expect(try await kafka.admin.committed(group: group, of: [revoked.topicPartition]).isEmpty)
      await eventually("its records come to the second member") { await second.count == 5 }
      await second.close()
      await first.close()
    }
  }

  @Test func whatComesBackIsNotPaused() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 2)
      let group = KafkaFixture.unique("group")
      let first = try await ConsumerLane.member("first", of: group, kafka, Self.longSession, reading: topic)
      await eventually("the first member has both partitions") { await first.owned.count == 2 }
      for partition in await first.owned { await first.pause(partition.index) }
      let second = try await ConsumerLane.member("second", of: group, kafka, Self.longSession, reading: topic)
      await eventually("the partitions are shared") { await second.owned.count >= 1 }
      let moved = try #require(await second.owned.first).topicPartition
      let kept = await first.owned
      try await kafka.publish((0..<10).map { TestRecord("\($0)", partition: Int32($0 % 2)) }, to: topic)
      await eventually("the second member reads its partition") { await second.count >= 5 }
      await second.close()
      await eventually("the first member has both again") { await first.owned.count == 2 }
      try await kafka.publish((10..<20).map { TestRecord("\($0)", partition: Int32($0 % 2)) }, to: topic)
      await eventually("what came back flows") { await first.count >= 5 }
      // On a machine that stands still the group may drop the first member meanwhile. Then nothing has stayed.
      if kept.count == 1, await first.owned.contains(where: { $0.index == kept[0].index && $0.generation == kept[0].generation }) {
        #expect(await first.records.allSatisfy { $0.partition == moved.partition }, "what stayed is paused as before")
      }
      await first.close()
    }
  }

  @Test func whoTakesNoRecordsHearsItsGroup() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 2)
      let group = KafkaFixture.unique("group")
      let first = try await ConsumerLane.member("first", of: group, kafka, Self.longSession, reading: topic)
      await eventually("the first member has both partitions") { await first.owned.count == 2 }
      await first.hold()
      try await kafka.publish((0..<10).map { TestRecord("\($0)", partition: Int32($0 % 2)) }, to: topic)
      let second = try await ConsumerLane.member("second", of: group, kafka, Self.longSession, reading: topic)
      await eventually("the partitions are shared") { await second.owned.count >= 1 }
      await eventually("the second member reads its partition") { await second.count >= 5 }
      await second.close()
      await eventually("the first member has both again") { await first.owned.count == 2 }
      #expect(await first.count == 0, "what is held stays so, whatever comes and goes")
      await first.release()
      await eventually("all that nobody has committed flows") { await Set(first.records.map(\.text)).count >= 5 }
      await first.close()
    }
  }

  @Test(.onlyInAll("it is about time: longer than a group waits for a poll")) func aConsumerThatGetsNothingStaysInItsGroup() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let topic = try await kafka.topic(partitions: 1)
      // librdkafka looks every half second whether the longest time without a poll has passed.
      let configuration = kafka.configuration.merging(["max.poll.interval.ms": "4000"])
      var hasStayed = false
      // A machine that stands still loses a member, too; one quiet time is enough.
      for _ in 0..<10 where !hasStayed {
        let lane = ConsumerLane("idle")
        try await lane.open(configuration, .init(group: KafkaFixture.unique("group")))
        try await lane.subscribe(topic)
        await eventually("it has its partition") { await lane.owned.count == 1 }
        await timePasses(.seconds(7))
        let (errors, owned) = (await lane.errors, await lane.everOwned)
        hasStayed = errors.isEmpty && owned.count == 1
        await lane.close()
      }
      #expect(hasStayed, "its partition was taken from it each time")
    }
  }
}
