import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// Removals of delivered notifications, with real processes and devices in Python.
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"))
  struct RemovalTests {
    private let removals = Script(
      "removals.py", withinSeconds: 300,
      [
        "--contract",
        URL(fileURLWithPath: #filePath).deletingLastPathComponent()
          .appendingPathComponent("../../Sources/Notifications/Contract/asyncapi.json").path,
      ])

    @Test(arguments: ClusterKafka.available)
    func `a removal of all reaches each device of the person, and nothing older comes afterwards`(_ kafka: ClusterKafka) async throws {
      try await removals.holds("all", on: kafka)
    }

    @Test(arguments: ClusterKafka.available)
    func `a removal of all survives a Redis that is emptied and rebuilt`(_ kafka: ClusterKafka) async throws {
      try await removals.holds("rebuilt", on: kafka)
    }

    @Test(arguments: ClusterKafka.available)
    func `opening a notification on one device removes it from the others, and takes no update`(_ kafka: ClusterKafka) async throws {
      try await removals.holds("opened", on: kafka)
    }
  }
}
