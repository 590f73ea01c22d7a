import TestSupport
import Testing

extension ClusterTests {
  /// Applications that are stopped and started again, with real processes that are really killed.
  @Suite(
    .serialized,
    .enabled(
      if: ClusterFixture.python != nil, "CARILLON_TEST_PYTHON must name a Python with test-requirements.txt, as Deploy/test makes it"),
    .enabled(if: ClusterKafka.available.contains(.real), "\(KafkaFixture.howToGetOne)"))
  struct ApplicationTests {
    private let applications = Script("applications.py", withinSeconds: 400)

    @Test func aStoppedApplicationShowsNothingUntilItIsStartedWhoeverIsKilled() async throws { try await applications.holds("stopped") }

    @Test func whatWasFilteredStaysSoWhenRedisIsRebuilt() async throws { try await applications.holds("rebuilt") }

    @Test func severalPeopleStopAnApplicationOnce() async throws { try await applications.holds("together") }
  }
}
