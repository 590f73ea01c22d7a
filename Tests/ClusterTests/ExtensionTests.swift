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
    private func holds(_ part: String, of name: String = "extensions.py", _ more: [String] = contract) async throws {
      try await ClusterFixture.with(.real) { cluster in
        let script = try await cluster.client(client(name), ["--binary", cluster.carillon(), "--part", part] + more)
        let exit = try await script.exit(withinSeconds: 300)
        guard exit == .exited(0), script.lines.last?["result"]?.stringValue == "held" else {
          throw ClusterFailure("\(name) --part \(part) ended with \(exit): \(script.text)")
        }
      }
    }

    private static let contract = [
      "--contract",
      URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../Sources/Notifications/Contract/asyncapi.json").path,
    ]

    @Test func whatOthersHaveEncryptedIsShownDecryptedAndItsPlaintextStandsNowhereElse() async throws { try await holds("opened") }

    @Test func whatOnlyTheDeviceHasTheKeyForIsOpenedThere() async throws { try await holds("unopened") }

    @Test func aSignalPutsAnotherFileInForceAndABrokenOneChangesNothing() async throws { try await holds("reloaded") }

    @Test func killedWorkersLoseAndRepeatNothingAndShowNothingUnchanged() async throws { try await holds("killed") }

    @Test func whatATeamsOwnServiceAnswersIsShownAndWhateverElseItDoesLosesNothing() async throws {
      try await holds("asked", of: "webhook.py", [])
    }

    @Test func killedWorkersAskAgainWithTheSameKeyAndShowNothingTwice() async throws {
      try await holds("interrupted", of: "webhook.py", [])
    }

    @Test func whatIsRebuiltHasBeenAskedForHoweverLittleTheServiceTakesAtATime() async throws {
      try await holds("rebuilt", of: "webhook.py", [])
    }

    @Test func aProgramThatHangsFailsEndsAndFloodsLosesNothingAndOutlivesNoWorker() async throws {
      try await holds("rough", of: "child.py", [])
    }

    @Test func mediaAreAttachedAndServedAndWhateverTheirServerDoesLosesNothing() async throws {
      try await holds("attached", of: "media.py", [])
    }

    @Test func killedWorkersLoseNoAttachmentAndAFileIsKeptAsLongAsItsNotification() async throws {
      try await holds("kept", of: "media.py", [])
    }

    @Test func whatIsRebuiltHasPassedItsExtensions() async throws { try await holds("rebuilt") }
  }
}
