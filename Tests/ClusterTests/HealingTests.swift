import TestSupport
import Testing

extension ClusterTests {
  /// What Redis loses comes back out of Kafka, and a record that no worker survives goes to the dead letters.
  @Suite(.serialized, .inPython)
  struct HealingTests {
    private let healing = Script(
      "healing.py", short: ["lost", "older", "pill"], complete: ["midway", "late", "again", "judged", "forgotten", "backlog", "at_once"])
    /// Why the short form leaves out topics that were made again, and backlogs.
    private static let further: CompleteFormTrait = .onlyInAll("StoreTests and TransformTests show it as values")

    @Test func whatAnEmptyRedisHasLostIsRebuilt() async throws { try await healing.holds("lost") }

    @Test(.onRealKafka, further) func aTopicMadeAgainIsRebuiltAsTheSameIncarnation() async throws { try await healing.holds("again") }

    @Test(.onRealKafka, further) func aTopicMadeAgainAtOnceWithAsManyRecordsIsNoticed() async throws { try await healing.holds("at_once") }

    @Test(.onRealKafka, further) func whatAnotherOwnerHasFoundOfATopicIsNotFoundAgain() async throws { try await healing.holds("judged") }

    @Test(.onRealKafka, further) func eventsTellTheIncarnationThatTheGroupHasForgotten() async throws {
      try await healing.holds("forgotten")
    }

    @Test(.onRealKafka, further) func whatIsWrittenLateOfAFormerTopicCountsForNothing() async throws { try await healing.holds("late") }

    @Test func whatAnOlderRedisHasForgottenIsAppliedAgain() async throws { try await healing.holds("older") }

    @Test(.onRealKafka, further) func whatIsReadAheadHidesNothingThatIsAppliedAgain() async throws { try await healing.holds("midway") }

    @Test(.onRealKafka, further) func aBacklogDoesNotKeepTheRegistryFromBecomingWhole() async throws { try await healing.holds("backlog") }

    @Test func aRecordThatNoWorkerSurvivesIsSetAside() async throws { try await healing.holds("pill") }
  }
}
