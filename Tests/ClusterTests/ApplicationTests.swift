import EventLoop
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// Applications that are stopped and started again, with real processes that are really killed.
  @Suite(
    .serialized, .enabled(if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt"),
    .enabled(if: ClusterKafka.available.contains(.real), "CARILLON_TEST_KAFKA must name a real Kafka"))
  struct ApplicationTests {
    private func holds(_ part: String) async throws {
      try await ClusterFixture.with(.real) { cluster in
        let script = try await cluster.client(client("applications.py"), ["--binary", cluster.carillon(), "--part", part])
        let exit = try await script.exit(withinSeconds: 400)
        guard exit == .exited(0), script.lines.last?["result"]?.stringValue == "held" else {
          throw ClusterFailure("applications.py --part \(part) ended with \(exit): \(script.text)")
        }
      }
    }

    @Test func aStoppedApplicationShowsNothingUntilItIsStartedWhoeverIsKilled() async throws { try await holds("stopped") }

    @Test func whatWasFilteredStaysSoWhenRedisIsRebuilt() async throws { try await holds("rebuilt") }

    @Test func severalPeopleStopAnApplicationOnce() async throws { try await holds("together") }
  }
}
