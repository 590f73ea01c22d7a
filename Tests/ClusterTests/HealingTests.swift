import TestSupport
import Testing

extension ClusterTests {
  /// What Redis loses comes back out of Kafka, and a record that no worker survives goes to the dead letters.
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"),
    .enabled(if: ClusterKafka.available.contains(.real), "\(KafkaFixture.howToGetOne)"))
  struct HealingTests {
    private let healing = Script("healing.py", withinSeconds: 300)

    @Test func whatAnEmptyRedisHasLostIsRebuilt() async throws { try await healing.holds("lost") }

    @Test func aTopicMadeAgainIsRebuiltAsTheSameIncarnation() async throws { try await healing.holds("again") }

    @Test func aTopicMadeAgainAtOnceWithAsManyRecordsIsNoticed() async throws { try await healing.holds("at_once") }

    @Test func whatAnotherOwnerHasFoundOfATopicIsNotFoundAgain() async throws { try await healing.holds("judged") }

    @Test func eventsTellTheIncarnationThatTheGroupHasForgotten() async throws { try await healing.holds("forgotten") }

    @Test func whatIsWrittenLateOfAFormerTopicCountsForNothing() async throws { try await healing.holds("late") }

    @Test func whatAnOlderRedisHasForgottenIsAppliedAgain() async throws { try await healing.holds("older") }

    @Test func whatIsReadAheadHidesNothingThatIsAppliedAgain() async throws { try await healing.holds("midway") }

    @Test func aBacklogDoesNotKeepTheRegistryFromBecomingWhole() async throws { try await healing.holds("backlog") }

    @Test func aRecordThatNoWorkerSurvivesIsSetAside() async throws { try await healing.holds("pill") }
  }
}
