import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// What watches a cluster, with a real Prometheus.
  @Suite(
    .serialized, .enabled(if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt"),
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/prometheus"), "Debian's package prometheus must be installed"))
  struct MonitoringTests {
    private func holds(_ part: String, on kafka: ClusterKafka) async throws {
      try await ClusterFixture.with(kafka) { cluster in
        let script = try await cluster.client(client("monitoring.py"), ["--binary", cluster.carillon(), "--part", part])
        let exit = try await script.exit(withinSeconds: 300)
        guard exit == .exited(0), script.lines.last?["result"]?.stringValue == "held" else {
          throw ClusterFailure("monitoring.py --part \(part) ended with \(exit): \(script.text)")
        }
      }
    }

    @Test func everyQueryOfTheDashboardAndTheAlertsIsAnsweredByARealPrometheus() async throws {
      try await holds("queries", on: ClusterKafka.available.last ?? .embedded)
    }

    @Test(
      .enabled(if: ClusterKafka.available.contains(.real), "CARILLON_TEST_KAFKA must name a real Kafka"),
      .enabled(if: ProcessInfo.processInfo.environment["CARILLON_TEST_ALERTS"] != nil, "it takes two minutes: CARILLON_TEST_ALERTS=1"))
    func whatTheAlertsAreForLetsThemFire() async throws { try await holds("alerts", on: .real) }
  }
}
