import TestSupport
import Testing

@testable import Kafka

@Suite struct AdminTests {
  @Test func ensuringTopicsMakesWhatIsMissing() async throws {
    try await KafkaFixture.with { kafka in
      let (one, two) = (KafkaFixture.unique("one"), KafkaFixture.unique("two"))
      let made = try await kafka.admin.ensureTopics([TopicSpecification(one, partitions: 4), TopicSpecification(two, partitions: 4)])
      #expect(made[one]?.partitions.map(\.id) == [0, 1, 2, 3] && made[two]?.partitions.count == 4)
      let again = try await kafka.admin.ensureTopics([TopicSpecification(one, partitions: 7)])
      #expect(again[one]?.partitions.count == 4, "a topic that exists is left as it is")
      await #expect(throws: KafkaError.self) { try await kafka.admin.describe(topic: KafkaFixture.unique("none")) }
      #expect(try await kafka.admin.describe(topic: one).partitions.allSatisfy { $0.leader >= 0 })
      #expect(try await !kafka.admin.describeCluster().brokers.isEmpty)
    }
  }

  @Test func endsAreTold() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 2)
      try await kafka.publish((0..<3).map { TestRecord("\($0)", partition: 1) }, to: topic)
      let ends = try await kafka.admin.ends(of: [TopicPartition(topic, 0), TopicPartition(topic, 1)])
      #expect(ends == [TopicPartition(topic, 0): 0..<0, TopicPartition(topic, 1): 0..<3])
    }
  }

  @Test func whatBrokersThatAreGoneAreAskedEndsInItsTime() async throws {
    let broker = try EmbeddedBroker(topics: [("orders", 4)])
    let admin = try Admin(broker.configuration, timeoutMilliseconds: 2_000)
    let partitions = (0..<4).map { TopicPartition("orders", $0) }
    // The leaders are known from now on, so that nothing but the question itself waits.
    var ends: [TopicPartition: Range<Int64>]?
    await eventually("the leaders are known") {
      ends = try await admin.ends(of: partitions)
      return ends?.count == 4
    }
    try broker.takeDown()
    await #expect(throws: KafkaError.self) { try await admin.ends(of: partitions) }
    try await endsByItself("the closing") { await admin.close() }
    await broker.close()
  }

  @Test func aPartitionThatIsNotThereHasNoEnds() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 1)
      let missing = TopicPartition(topic, 1)
      let error = await #expect(throws: KafkaError.self) { try await kafka.admin.ends(of: [TopicPartition(topic, 0), missing]) }
      #expect(error?.code == .unknownTopicOrPartition || error?.code == .unknownPartition, "\(String(describing: error))")
    }
  }

  @Test func aClosedAdministrationRefuses() async throws {
    try await KafkaFixture.with { kafka in
      let admin = try Admin(kafka.configuration)
      _ = try await admin.describeCluster()
      await admin.close()
      let error = await #expect(throws: KafkaError.self) { try await admin.describeCluster() }
      #expect(error?.code == .closed)
    }
  }

  @Test func noBrokerIsARetriableError() async throws {
    let admin = try Admin(KafkaConfiguration(bootstrapServers: ["127.0.0.1:1"]), timeoutMilliseconds: 300)
    let error = await #expect(throws: KafkaError.self) { try await admin.describeCluster() }
    #expect(error?.isRetriable == true && error?.hint.contains("bootstrap") == true)
    await admin.close()
  }

  @Test(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
  func settingsTimesAndGroupsAreTold() async throws {
    try await KafkaFixture.with { kafka in
      let topic = try await kafka.topic(partitions: 2, settings: ["cleanup.policy": "compact"])
      #expect(try await kafka.admin.settings(ofTopic: topic)["cleanup.policy"] == "compact")

      let now = Int64(wallClock())
      try await kafka.publish((0..<10).map { TestRecord(key: "k", "\($0)", partition: 0, timestamp: now + Int64($0) * 1_000) }, to: topic)
      let offsets = try await kafka.admin.offsets(of: [TopicPartition(topic, 0), TopicPartition(topic, 1)], at: now + 3_500)
      #expect(offsets == [TopicPartition(topic, 0): 4, TopicPartition(topic, 1): 0])

      let group = KafkaFixture.unique("group")
      let lane = ConsumerLane()
      try await lane.open(kafka.configuration, .init(group: group))
      try await lane.subscribe(topic)
      await eventually("all is committed") { try await kafka.admin.committed(group: group)[TopicPartition(topic, 0)] == 10 }
      #expect(try await kafka.admin.groups().contains { $0.name == group && $0.state == "Stable" })
      await lane.close()
    }
  }

  @Test(.enabled(if: KafkaFixture.realServers != nil, "\(KafkaFixture.howToGetOne)"))
  func membersAreToldWithTheirPartitions() async throws {
    try await KafkaFixture.with { kafka in
      let (group, topic) = (KafkaFixture.unique("group"), try await kafka.topic(partitions: 3))
      #expect(try await kafka.admin.members(of: group) == GroupMembers(state: "Dead", members: []))
      let (one, two) = (
        try await ConsumerLane.member("one", of: group, kafka, reading: topic),
        try await ConsumerLane.member("two", of: group, kafka, reading: topic)
      )
      let all = (Int32(0)..<3).map { TopicPartition(topic, $0) }
      await eventually("both have partitions, and none has two owners") {
        let found = try await kafka.admin.members(of: group)
        return found.state == "Stable" && found.members.count == 2 && found.members.allSatisfy { !$0.partitions.isEmpty }
          && found.members.flatMap(\.partitions).sorted() == all
      }
      let member = try await kafka.admin.members(of: group).members.first
      #expect(member?.client == "carillon-test" && member?.host.isEmpty == false && member?.id.hasPrefix("carillon-test") == true)
      await one.close()
      await eventually("the other one has all") { try await kafka.admin.members(of: group).members.map { $0.partitions.count } == [3] }
      await two.close()
      await eventually("nobody is left") { try await kafka.admin.members(of: group) == GroupMembers(state: "Empty", members: []) }
    }
  }

  @Test func theGroupsCallsAreClosedWithTheAdministration() async throws {
    try await KafkaFixture.with { kafka in
      let admin = try Admin(kafka.configuration)
      await admin.close()
      let error = await #expect(throws: KafkaError.self) { try await admin.members(of: "none") }
      #expect(error?.code == .closed)
    }
  }
}
