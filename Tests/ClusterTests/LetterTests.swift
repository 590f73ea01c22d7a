import EventLoop
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// Dead letters, redriven when their cause is mended, with real processes that are really killed.
  @Suite(
    .serialized, .enabled(if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt"),
    .enabled(if: ClusterKafka.available.contains(.real), "CARILLON_TEST_KAFKA must name a real Kafka"))
  struct LetterTests {
    private func holds(_ part: String) async throws {
      try await ClusterFixture.with(.real) { cluster in
        let script = try await cluster.client(client("letters.py"), ["--binary", cluster.carillon(), "--part", part])
        let exit = try await script.exit(withinSeconds: 300)
        guard exit == .exited(0), script.lines.last?["result"]?.stringValue == "held" else {
          throw ClusterFailure("letters.py --part \(part) ended with \(exit): \(script.text)")
        }
      }
    }

    @Test func lettersOfEveryReasonArriveOnceWhenTheirCauseIsMended() async throws { try await holds("mended") }

    @Test func whatEndedWorkersIsRedrivenAloneAndOnlyWhenThatIsSaid() async throws { try await holds("deadly") }

    @Test func aRedrivingThatIsKilledGoesOnWhereItWasAndEachArrivesOnce() async throws { try await holds("killed") }
  }
}
