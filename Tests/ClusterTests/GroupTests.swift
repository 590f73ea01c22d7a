import TestSupport
import Testing

extension ClusterTests {
  /// The workers' group in Kafka, where a member of it is none of ours.
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"),
    .enabled(if: ClusterKafka.available.contains(.real), "\(KafkaFixture.howToGetOne)"))
  struct GroupTests {
    @Test func aWorkerThatIsGivenNothingThoughPartitionsHaveNoOwnerJoinsAgain() async throws {
      try await Script("group.py", withinSeconds: 240).holds("unfair")
    }
  }
}
