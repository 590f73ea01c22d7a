import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// What watches a cluster, with a real Prometheus.
  @Suite(
    .serialized,
    .inPython, .onlyInAll("a real Prometheus is asked for minutes"),
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/prometheus"), "Debian's package prometheus must be installed"))
  struct MonitoringTests {
    private let monitoring = Script("monitoring.py")

    @Test func everyQueryOfTheDashboardAndTheAlertsIsAnsweredByARealPrometheus() async throws {
      try await monitoring.holds("queries", on: .best)
    }

    @Test(.onRealKafka) func noAlertFiresWhileEveryWorkerIsReplacedUnderLoad() async throws {
      try await monitoring.holds("rolling", on: .real)
    }

    @Test(.onRealKafka) func whatTheAlertsAreForLetsThemFire() async throws { try await monitoring.holds("alerts", on: .real) }
  }
}
