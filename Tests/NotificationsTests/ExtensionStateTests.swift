import Notifications
import Testing

@Suite struct ExtensionStateTests {
  /// Stored records have the numbers.
  @Test func eachStateKeepsItsNumberAndItsWord() {
    let words = ExtensionState.allCases.map { "\($0.rawValue) \($0.word)" }
    #expect(words == ["1 modified", "2 unchanged", "3 best-attempt", "4 original", "5 timed-out", "6 failed", "7 overloaded"])
  }
}
