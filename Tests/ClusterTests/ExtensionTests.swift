import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// Mutable notifications on their way through their application's service extensions, encrypted and read by clients in Python.
  @Suite(.serialized, .inPython)
  struct ExtensionTests {
    private let extensions = Script(
      "extensions.py", short: ["killed", "opened"], complete: ["unopened", "reloaded", "rebuilt"], ClusterTests.contract)
    private let webhook = Script("webhook.py", complete: ["asked", "interrupted", "rebuilt"])
    private let child = Script("child.py")
    private let media = Script("media.py", complete: ["attached", "kept"])
    /// Why the short form leaves out what is shown of the kinds of extensions.
    private static let kinds: CompleteFormTrait = .onlyInAll("the tests of Extensions and Transform show each kind of extension")

    @Test func whatOthersHaveEncryptedIsShownDecryptedAndItsPlaintextStandsNowhereElse() async throws {
      try await extensions.holds("opened")
    }

    @Test(.onRealKafka, kinds) func whatOnlyTheDeviceHasTheKeyForIsOpenedThere() async throws { try await extensions.holds("unopened") }

    @Test(.onRealKafka, kinds) func aSignalPutsAnotherFileInForceAndABrokenOneChangesNothing() async throws {
      try await extensions.holds("reloaded")
    }

    @Test func killedWorkersLoseAndRepeatNothingAndShowNothingUnchanged() async throws { try await extensions.holds("killed") }

    @Test(.onRealKafka, kinds) func whatATeamsOwnServiceAnswersIsShownAndWhateverElseItDoesLosesNothing() async throws {
      try await webhook.holds("asked")
    }

    @Test(.onRealKafka, kinds) func killedWorkersAskAgainWithTheSameKeyAndShowNothingTwice() async throws {
      try await webhook.holds("interrupted")
    }

    @Test(.onRealKafka, kinds) func whatIsRebuiltHasBeenAskedForHoweverLittleTheServiceTakesAtATime() async throws {
      try await webhook.holds("rebuilt")
    }

    @Test(.onRealKafka, kinds) func aProgramThatHangsFailsEndsAndFloodsLosesNothingAndOutlivesNoWorker() async throws {
      try await child.holds("rough")
    }

    @Test(.onRealKafka, kinds) func mediaAreAttachedAndServedAndWhateverTheirServerDoesLosesNothing() async throws {
      try await media.holds("attached")
    }

    @Test(.onRealKafka, kinds) func killedWorkersLoseNoAttachmentAndAFileIsKeptAsLongAsItsNotification() async throws {
      try await media.holds("kept")
    }

    @Test(.onRealKafka, kinds) func whatIsRebuiltHasPassedItsExtensions() async throws { try await extensions.holds("rebuilt") }
  }
}
