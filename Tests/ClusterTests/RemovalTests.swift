import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// Removals of delivered notifications, with real processes and devices in Python.
  @Suite(.serialized, .inPython)
  struct RemovalTests {
    private let removals = Script(
      "removals.py", short: ["all", "opened"], ClusterTests.contract)

    @Test(arguments: ClusterKafka.ofForm)
    func `a removal of all reaches each device of the person, and nothing older comes afterwards`(_ kafka: ClusterKafka) async throws {
      try await removals.holds("all", on: kafka)
    }

    @Test(.onlyInAll("StoreTests show what a rebuild makes of a removal"), arguments: ClusterKafka.ofForm)
    func `a removal of all survives a Redis that is emptied and rebuilt`(_ kafka: ClusterKafka) async throws {
      try await removals.holds("rebuilt", on: kafka)
    }

    @Test(arguments: ClusterKafka.ofForm)
    func `opening a notification on one device removes it from the others, and takes no update`(_ kafka: ClusterKafka) async throws {
      try await removals.holds("opened", on: kafka)
    }
  }
}
