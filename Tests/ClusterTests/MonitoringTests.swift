import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// What watches a cluster, with a real Prometheus.
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"),
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/prometheus"), "Debian's package prometheus must be installed"))
  struct MonitoringTests {
    private let monitoring = Script("monitoring.py", withinSeconds: 300)

    @Test func everyQueryOfTheDashboardAndTheAlertsIsAnsweredByARealPrometheus() async throws {
      try await monitoring.holds("queries", on: ClusterKafka.available.last ?? .embedded)
    }

    private static let isLong = ProcessInfo.processInfo.environment["CARILLON_TEST_ALERTS"] != nil

    @Test(
      .enabled(if: ClusterKafka.available.contains(.real), "\(KafkaFixture.howToGetOne)"),
      .enabled(if: isLong, "it takes three minutes: CARILLON_TEST_ALERTS=1"))
    func noAlertFiresWhileEveryWorkerIsReplacedUnderLoad() async throws { try await monitoring.holds("rolling", on: .real) }

    @Test(
      .enabled(if: ClusterKafka.available.contains(.real), "\(KafkaFixture.howToGetOne)"),
      .enabled(if: isLong, "it takes two minutes: CARILLON_TEST_ALERTS=1"))
    func whatTheAlertsAreForLetsThemFire() async throws { try await monitoring.holds("alerts", on: .real) }
  }
}
