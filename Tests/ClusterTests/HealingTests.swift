import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// What Redis loses comes back out of Kafka, and a record that no worker survives goes to the dead letters.
  @Suite(
    .serialized, .enabled(if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt"),
    .enabled(if: ClusterKafka.available.contains(.real), "CARILLON_TEST_KAFKA must name a real Kafka"))
  struct HealingTests {
    private func holds(_ part: String) async throws {
      try await ClusterFixture.with(.real) { cluster in
        let script = try await cluster.client(client("healing.py"), ["--binary", cluster.carillon(), "--part", part])
        let exit = try await script.exit(withinSeconds: 180)
        guard exit == .exited(0), script.lines.last?["result"]?.stringValue == "held" else {
          throw ClusterFailure("healing.py --part \(part) ended with \(exit): \(script.text)")
        }
      }
    }

    @Test func whatAnEmptyRedisHasLostIsRebuilt() async throws { try await holds("lost") }

    @Test func aTopicMadeAgainIsRebuiltAsTheSameIncarnation() async throws { try await holds("again") }

    @Test func aTopicMadeAgainAtOnceWithAsManyRecordsIsNoticed() async throws { try await holds("at_once") }

    @Test func whatAnotherOwnerHasFoundOfATopicIsNotFoundAgain() async throws { try await holds("judged") }

    @Test func eventsTellTheIncarnationThatTheGroupHasForgotten() async throws { try await holds("forgotten") }

    @Test func whatIsWrittenLateOfAFormerTopicCountsForNothing() async throws { try await holds("late") }

    @Test func whatAnOlderRedisHasForgottenIsAppliedAgain() async throws { try await holds("older") }

    @Test func whatIsReadAheadHidesNothingThatIsAppliedAgain() async throws { try await holds("midway") }

    @Test func aBacklogDoesNotKeepTheRegistryFromBecomingWhole() async throws { try await holds("backlog") }

    @Test func aRecordThatNoWorkerSurvivesIsSetAside() async throws { try await holds("pill") }
  }
}
