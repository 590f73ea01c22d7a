import Foundation
import TestSupport
import Testing

extension ClusterTests {
  /// Dead letters, redriven when their cause is mended, with real processes that are really killed.
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"),
    .enabled(if: ClusterKafka.available.contains(.real), "\(KafkaFixture.howToGetOne)"))
  struct LetterTests {
    private let letters = Script(
      "letters.py", withinSeconds: 300,
      [
        "--contract",
        URL(fileURLWithPath: #filePath).deletingLastPathComponent()
          .appendingPathComponent("../../Sources/Notifications/Contract/asyncapi.json").path,
      ] + (ClusterFixture.kafkaFolder.map { ["--kafka-folder", $0] } ?? []))

    @Test func lettersOfEveryReasonArriveOnceWhenTheirCauseIsMended() async throws { try await letters.holds("reasons") }

    @Test func whatIsMendedAndNeitherSupersededNorExpiredIsShownOnce() async throws { try await letters.holds("mended") }

    @Test func whatEndedWorkersIsRedrivenAloneAndOnlyWhenThatIsSaid() async throws { try await letters.holds("deadly") }

    @Test func aRedrivingThatIsKilledGoesOnWhereItWasAndEachArrivesOnce() async throws { try await letters.holds("killed") }

    @Test(
      .enabled(
        if: ClusterFixture.kafkaFolder != nil, "\(KafkaFixture.howToGetOne)"))
    func aRedrivingThatLosesItsOnlyBrokerGoesOnWhereItWasAndEachArrivesOnce() async throws { try await letters.holds("broker") }
  }
}
