import TestSupport
import Testing

extension ClusterTests {
  /// An application with a rate limit, with real processes that are really killed.
  @Suite(.serialized, .inPython)
  struct LimitTests {
    private let limits = Script("limits.py", short: ["few"], complete: ["flood", "untold", "behind"])

    /// Why the short form leaves out floods.
    private static let flood: CompleteFormTrait = .onlyInAll("it publishes floods, and is about time")

    @Test func `requests beyond a limit are rejected, and no others`() async throws { try await limits.holds("few") }

    @Test(.onRealKafka, flood) func `those beyond a limit are the same whoever is killed and whatever Redis loses`() async throws {
      try await limits.holds("flood")
    }

    @Test(.onRealKafka, flood) func `a notification behind another application's flood arrives, with a limit and without one`() async throws
    {
      try await limits.holds("behind")
    }

    @Test(.onRealKafka, flood) func `a rebuild without the journal brings back what was accepted`() async throws {
      try await limits.holds("untold")
    }
  }
}
