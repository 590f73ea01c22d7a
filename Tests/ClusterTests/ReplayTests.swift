import TestSupport
import Testing

extension ClusterTests {
  /// `carillon replay` brings what was lost, and does no harm, however often it is interrupted.
  @Suite(.serialized, .inPython)
  struct ReplayTests {
    private let replay = Script(
      "replay.py", short: ["unfinished"], complete: ["interrupted", "gone"],
      ClusterFixture.kafkaFolder.map { ["--kafka-folder", $0] } ?? [])

    /// Why the short form leaves out replays that are interrupted.
    private static let further: CompleteFormTrait = .onlyInAll("OperationsTests show it as values")

    @Test func whatIsLostBelowTheMarkersIsBroughtOnce() async throws { try await replay.holds("unfinished") }

    @Test(.onRealKafka, further) func aReplayThatIsInterruptedAndKilledIsResumedExactly() async throws {
      try await replay.holds("interrupted")
    }

    @Test(.onRealKafka, .withOwnBrokers, further)
    func aReplayThatLosesItsOnlyBrokerSaysHowToGoOnAndIsResumedExactly() async throws { try await replay.holds("broker") }

    @Test(.onRealKafka, further) func whatIsGoneOrWasMadeAgainOrIsNotThereEndsWithTheWayOn() async throws { try await replay.holds("gone") }
  }
}
