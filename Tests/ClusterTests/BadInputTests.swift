import TestSupport
import Testing

extension ClusterTests {
  /// What no producer and no device should send.
  @Suite(.serialized, .inPython) struct BadInputTests {
    private let input = Script("bad_input.py", short: ["records", "frames", "table"])

    @Test(arguments: ClusterKafka.ofForm)
    func badRecordsAreAnsweredAndGoodOnesDelivered(_ kafka: ClusterKafka) async throws { try await input.holds("records", on: kafka) }

    @Test func badFramesCloseTheirOwnConnectionOnly() async throws { try await input.holds("frames") }

    @Test func closeCodesAreThoseOfTheTable() async throws { try await input.holds("table") }
  }
}
