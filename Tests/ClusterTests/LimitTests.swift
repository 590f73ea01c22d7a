import TestSupport
import Testing

extension ClusterTests {
  /// An application with a rate limit, with real processes that are really killed.
  @Suite(.serialized, .inPython, .onRealKafka, .onlyInAll("it is about time: a limit counts in windows"))
  struct LimitTests {
    private let limits = Script("limits.py", complete: ["flood", "untold", "behind"])

    @Test func `those beyond a limit are the same whoever is killed and whatever Redis loses`() async throws {
      try await limits.holds("flood")
    }

    @Test func `a notification behind another application's flood arrives, with a limit and without one`() async throws {
      try await limits.holds("behind")
    }

    @Test func `a rebuild without the journal brings back what was accepted`() async throws { try await limits.holds("untold") }
  }
}
