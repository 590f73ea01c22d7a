import TestSupport
import Testing

extension ClusterTests {
  /// Applications that are stopped and started again, with real processes that are really killed.
  @Suite(.serialized, .inPython)
  struct ApplicationTests {
    private let applications = Script("applications.py", short: ["rebuilt", "together"], complete: ["stopped"])

    @Test(.onRealKafka, .onlyInAll("it publishes under load for half a minute"))
    func aStoppedApplicationShowsNothingUntilItIsStartedWhoeverIsKilled() async throws { try await applications.holds("stopped") }

    @Test func whatWasFilteredStaysSoWhenRedisIsRebuilt() async throws { try await applications.holds("rebuilt") }

    @Test func severalPeopleStopAnApplicationOnce() async throws { try await applications.holds("together") }
  }
}
