import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// Dead letters, redriven when their cause is mended, with real processes that are really killed.
  @Suite(.serialized, .inPython)
  struct LetterTests {
    private let letters = Script(
      "letters.py", short: ["mended"], complete: ["reasons", "deadly", "killed"],
      ClusterTests.contract + (ClusterFixture.kafkaFolder.map { ["--kafka-folder", $0] } ?? []))

    /// Why the short form leaves out the other reasons, and killed tools.
    private static let further: CompleteFormTrait = .onlyInAll("OperationsTests and CommandTests show it as values")

    @Test(.onRealKafka, further) func lettersOfEveryReasonArriveOnceWhenTheirCauseIsMended() async throws {
      try await letters.holds("reasons")
    }

    @Test func whatIsMendedAndNeitherSupersededNorExpiredIsShownOnce() async throws { try await letters.holds("mended") }

    @Test(.onRealKafka, further) func whatEndedWorkersIsRedrivenAloneAndOnlyWhenThatIsSaid() async throws {
      try await letters.holds("deadly")
    }

    @Test(.onRealKafka, further) func aRedrivingThatIsKilledGoesOnWhereItWasAndEachArrivesOnce() async throws {
      try await letters.holds("killed")
    }

    @Test(.onRealKafka, .withOwnBrokers, further)
    func aRedrivingThatLosesItsOnlyBrokerGoesOnWhereItWasAndEachArrivesOnce() async throws { try await letters.holds("broker") }
  }
}
