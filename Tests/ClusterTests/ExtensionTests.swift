import EventLoop
import Foundation
import JSON
import TestSupport
import Testing

extension ClusterTests {
  /// Mutable notifications on their way through their application's service extensions, encrypted and read by clients in Python.
  @Suite(
    .serialized, .enabled(if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt"),
    .enabled(if: ClusterKafka.available.contains(.real), "CARILLON_TEST_KAFKA must name a real Kafka"))
  struct ExtensionTests {
    private func holds(_ part: String) async throws {
      let contract = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Sources/Notifications/Contract/asyncapi.json").path
      try await ClusterFixture.with(.real) { cluster in
        let script = try await cluster.client(
          client("extensions.py"), ["--binary", cluster.carillon(), "--contract", contract, "--part", part])
        let exit = try await script.exit(withinSeconds: 300)
        guard exit == .exited(0), script.lines.last?["result"]?.stringValue == "held" else {
          throw ClusterFailure("extensions.py --part \(part) ended with \(exit): \(script.text)")
        }
      }
    }

    @Test func whatOthersHaveEncryptedIsShownDecryptedAndItsPlaintextStandsNowhereElse() async throws { try await holds("opened") }

    @Test func aSignalPutsAnotherFileInForceAndABrokenOneChangesNothing() async throws { try await holds("reloaded") }

    @Test func killedWorkersLoseAndRepeatNothingAndShowNothingUnchanged() async throws { try await holds("killed") }

    @Test func whatIsRebuiltHasPassedItsExtensions() async throws { try await holds("rebuilt") }
  }
}
