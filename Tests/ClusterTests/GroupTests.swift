import TestSupport
import Testing

extension ClusterTests {
  /// The workers' group in Kafka, where a member of it is none of ours.
  @Suite(
    .serialized, .enabled(if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt"),
    .enabled(if: ClusterKafka.available.contains(.real), "CARILLON_TEST_KAFKA must name a real Kafka"))
  struct GroupTests {
    @Test func aWorkerThatIsGivenNothingThoughPartitionsHaveNoOwnerJoinsAgain() async throws {
      try await Script("group.py", withinSeconds: 240).holds("unfair")
    }
  }
}
