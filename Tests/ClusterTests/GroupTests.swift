import TestSupport
import Testing

extension ClusterTests {
  /// The workers' group in Kafka, where a member of it is none of ours.
  @Suite(.serialized, .inPython, .onRealKafka, .onlyInAll("it waits until a worker suspects its group"))
  struct GroupTests {
    @Test func aWorkerThatIsGivenNothingThoughPartitionsHaveNoOwnerJoinsAgain() async throws {
      try await Script("group.py").holds("unfair")
    }
  }
}
