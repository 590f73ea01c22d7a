import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// Mutable notifications on their way through their application's service extensions, encrypted and read by clients in Python.
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"),
    .enabled(if: ClusterKafka.available.contains(.real), "\(KafkaFixture.howToGetOne)"))
  struct ExtensionTests {
    private let extensions = Script(
      "extensions.py", withinSeconds: 300,
      [
        "--contract",
        URL(fileURLWithPath: #filePath).deletingLastPathComponent()
          .appendingPathComponent("../../Sources/Notifications/Contract/asyncapi.json").path,
      ])
    private let webhook = Script("webhook.py", withinSeconds: 300)
    private let child = Script("child.py", withinSeconds: 300)
    private let media = Script("media.py", withinSeconds: 300)

    @Test func whatOthersHaveEncryptedIsShownDecryptedAndItsPlaintextStandsNowhereElse() async throws {
      try await extensions.holds("opened")
    }

    @Test func whatOnlyTheDeviceHasTheKeyForIsOpenedThere() async throws { try await extensions.holds("unopened") }

    @Test func aSignalPutsAnotherFileInForceAndABrokenOneChangesNothing() async throws { try await extensions.holds("reloaded") }

    @Test func killedWorkersLoseAndRepeatNothingAndShowNothingUnchanged() async throws { try await extensions.holds("killed") }

    @Test func whatATeamsOwnServiceAnswersIsShownAndWhateverElseItDoesLosesNothing() async throws {
      try await webhook.holds("asked")
    }

    @Test func killedWorkersAskAgainWithTheSameKeyAndShowNothingTwice() async throws {
      try await webhook.holds("interrupted")
    }

    @Test func whatIsRebuiltHasBeenAskedForHoweverLittleTheServiceTakesAtATime() async throws {
      try await webhook.holds("rebuilt")
    }

    @Test func aProgramThatHangsFailsEndsAndFloodsLosesNothingAndOutlivesNoWorker() async throws {
      try await child.holds("rough")
    }

    @Test func mediaAreAttachedAndServedAndWhateverTheirServerDoesLosesNothing() async throws {
      try await media.holds("attached")
    }

    @Test func killedWorkersLoseNoAttachmentAndAFileIsKeptAsLongAsItsNotification() async throws {
      try await media.holds("kept")
    }

    @Test func whatIsRebuiltHasPassedItsExtensions() async throws { try await extensions.holds("rebuilt") }
  }
}
