import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// `carillon replay` brings what was lost, and does no harm, however often it is interrupted.
  @Suite(
    .serialized, .enabled(if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt"),
    .enabled(if: ClusterKafka.available.contains(.real), "CARILLON_TEST_KAFKA must name a real Kafka"))
  struct ReplayTests {
    private func holds(_ part: String) async throws {
      try await ClusterFixture.with(.real) { cluster in
        let script = try await cluster.client(client("replay.py"), ["--binary", cluster.carillon(), "--part", part])
        let exit = try await script.exit(withinSeconds: 180)
        guard exit == .exited(0), script.lines.last?["result"]?.stringValue == "held" else {
          throw ClusterFailure("replay.py --part \(part) ended with \(exit): \(script.text)")
        }
      }
    }

    @Test func whatIsLostBelowTheMarkersIsBroughtOnce() async throws { try await holds("unfinished") }

    @Test func aReplayThatIsInterruptedAndKilledIsResumedExactly() async throws { try await holds("interrupted") }
  }
}
