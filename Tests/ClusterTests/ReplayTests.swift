import TestSupport
import Testing

extension ClusterTests {
  /// `carillon replay` brings what was lost, and does no harm, however often it is interrupted.
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"),
    .enabled(if: ClusterKafka.available.contains(.real), "\(KafkaFixture.howToGetOne)"))
  struct ReplayTests {
    private let replay = Script("replay.py", withinSeconds: 300, ClusterFixture.kafkaFolder.map { ["--kafka-folder", $0] } ?? [])

    @Test func whatIsLostBelowTheMarkersIsBroughtOnce() async throws { try await replay.holds("unfinished") }

    @Test func aReplayThatIsInterruptedAndKilledIsResumedExactly() async throws { try await replay.holds("interrupted") }

    @Test(
      .enabled(
        if: ClusterFixture.kafkaFolder != nil, "\(KafkaFixture.howToGetOne)"))
    func aReplayThatLosesItsOnlyBrokerSaysHowToGoOnAndIsResumedExactly() async throws { try await replay.holds("broker") }

    @Test func whatIsGoneOrWasMadeAgainOrIsNotThereEndsWithTheWayOn() async throws { try await replay.holds("gone") }
  }
}
