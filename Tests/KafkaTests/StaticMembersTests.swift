import EventLoop
import TestSupport
import Testing

@testable import Kafka

/// Static members of a group, on a real Kafka: the embedded broker has none.
@Suite(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
struct StaticMembersTests {
  /// Longer than a test waits: no session ends by itself.
  private static let session = 600_000

  private func member(
    _ name: String, of group: String, _ kafka: KafkaFixture, reading topic: String, isStatic: Bool = true
  ) async throws -> ConsumerLane {
    let lane = ConsumerLane(name)
    var options = Consumer.Options(group: group)
    options.instanceID = isStatic ? name : nil
    options.sessionTimeoutMilliseconds = Self.session
    // Revocations that a test holds last until it finishes them.
    options.revocationTimeoutMilliseconds = hangMilliseconds
    try await lane.open(kafka.configuration.merging(["max.poll.interval.ms": "\(Self.session)"]), options)
    try await lane.subscribe(topic)
    return lane
  }

  @Test func whoeverIsClosedLeavesAtOnce() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 4)
      let group = KafkaFixture.unique("group")
      let first = try await member("first", of: group, kafka, reading: topic)
      await eventually("the first member has all partitions") { await first.owned.count == 4 }
      let second = try await member("second", of: group, kafka, reading: topic)
      await eventually("each has its share") {
        let (one, other) = await (first.owned.count, second.owned.count)
        return one == 2 && other == 2
      }
      #expect(await first.close())
      await eventually("the second has all") { await second.owned.count == 4 }
      #expect(await second.close())
      #expect(try await kafka.admin.members(of: group).members.isEmpty)
    }
  }

  /// A request of the group that comes while the consumer closes is answered, too. Until then librdkafka does not let a member leave.
  @Test(arguments: [false, true], [false, true])
  func whoeverIsClosedWhileItsGroupFormsLeavesAtOnce(isAskedBefore: Bool, isStatic: Bool) async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 4)
      let group = KafkaFixture.unique("group")
      let first = try await member("first", of: group, kafka, reading: topic, isStatic: isStatic)
      await eventually("the first member has all partitions") { await first.owned.count == 4 }
      await first.holdRevocations()
      func close() async -> Bool { await first.closeConsumer(withinMilliseconds: hangMilliseconds) }
      let second: ConsumerLane
      if isAskedBefore {
        second = try await member("second", of: group, kafka, reading: topic)
        await eventually("the group takes the second one's share") { await first.pendingRevocations == 1 }
      } else {
        second = ConsumerLane("none")
      }
      async let isClosed = close()
      // A consumer that is open when it has given up its partitions takes what the group answers.
      await eventually("it closes") { await first.isClosing }
      if isAskedBefore {
        // What follows is an assignment of nothing, while the consumer gives up the rest by itself.
        await first.finishRevocations()
        await eventually("the group asks again") { await first.isAsked }
      } else {
        await eventually("it gives up its partitions") { await first.pendingRevocations == 1 }
      }
      let third = try await member("third", of: group, kafka, reading: topic)
      await eventually("the group asks") { await first.isAsked }
      await first.finishRevocations()
      #expect(await isClosed)
      await first.close()
      await eventually("the others have all") { await second.owned.count + third.owned.count == 4 }
      await second.close()
      await third.close()
      #expect(try await kafka.admin.members(of: group).members.isEmpty)
    }
  }

  @Test func aRemovedMemberLosesItsPartitionsCommitsNothingAndJoinsAgain() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 4)
      let group = KafkaFixture.unique("group")
      let removed = try await member("removed", of: group, kafka, reading: topic)
      await eventually("it has all partitions") { await removed.owned.count == 4 }
      let other = try await member("other", of: group, kafka, reading: topic)
      await eventually("each has its share") {
        let (one, other) = await (removed.owned.count, other.owned.count)
        return one == 2 && other == 2
      }
      let owned = await removed.owned
      let gone = try await StaticMembers.remove(
        ["removed"], from: group, reading: topic, sessionTimeoutMilliseconds: Self.session,
        withinMilliseconds: Int64(hangMilliseconds), kafka.configuration.merging(["max.poll.interval.ms": "\(Self.session)"]))
      #expect(gone == ["removed"])
      // A member that hears of it between the two steps of the removal needs a new client; else librdkafka joins again.
      await eventually("it has lost them, or has failed") {
        let (lost, errors) = await (removed.lost, removed.errors)
        return lost >= 2 || errors.contains(where: \.isFatal)
      }
      let late = await removed.commit(CommitOffset(partition: owned[0].index, generation: owned[0].generation, offset: 1))
      #expect(late != nil, "what it had of its former assignment is not committed")
      if await removed.errors.contains(where: \.isFatal) {
        #expect(await removed.errors.contains { $0.message.contains("fenced") })
        #expect(await removed.close())
        let again = try await member("removed", of: group, kafka, reading: topic)
        await eventually("it has its share again") { await again.owned.count == 2 }
        #expect(await again.close())
      } else {
        await eventually("it has its share again") { await removed.owned.count == 2 }
        #expect(await removed.close())
      }
      await eventually("the other has all partitions") { await other.owned.count == 4 }
      #expect(await other.close())
      #expect(try await kafka.admin.members(of: group).members.isEmpty)
    }
  }

  @Test func whoeverComesWithTheNameOfAMemberTakesItsPlace() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 4)
      let group = KafkaFixture.unique("group")
      let former = try await member("a", of: group, kafka, reading: topic)
      await eventually("it has all partitions") { await former.owned.count == 4 }
      let next = try await member("a", of: group, kafka, reading: topic)
      await eventually("the next one has all partitions") { await next.owned.count == 4 }
      await eventually("the former one is told to end") { await former.errors.contains { $0.isFatal && $0.message.contains("fenced") } }
      let owned = try #require(await former.owned.first)
      #expect(await former.commit(CommitOffset(partition: owned.index, generation: owned.generation, offset: 1)) != nil)
      #expect(await former.close())
      #expect(await next.owned.count == 4, "the former one's end changes nothing")
      #expect(await next.close())
    }
  }

  @Test func severalAreRemovedTogetherAndWhoIsUnknownLeavesNothing() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 4)
      let group = KafkaFixture.unique("group")
      let stays = try await member("stays", of: group, kafka, reading: topic)
      await eventually("it has all partitions") { await stays.owned.count == 4 }
      let gone = try await StaticMembers.remove(
        ["a", "b", "c"], from: group, reading: topic, sessionTimeoutMilliseconds: Self.session,
        withinMilliseconds: Int64(hangMilliseconds), kafka.configuration.merging(["max.poll.interval.ms": "\(Self.session)"]))
      #expect(gone.sorted() == ["a", "b", "c"])
      await eventually("it has all partitions") { await stays.owned.count == 4 }
      let members = try await kafka.admin.members(of: group).members
      #expect(members.count == 1)
      #expect(await stays.close())
    }
  }
}
