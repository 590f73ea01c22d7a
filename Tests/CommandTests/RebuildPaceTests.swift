import Testing

@testable import Command

/// What a rebuilding says of its speed.
@Suite struct RebuildPaceTests {
  @Test func `the speed counts records, and the end is estimated by offsets`() {
    let pace = RebuildPace(start: 1_000)
    #expect(pace.words("requests", 0, read: 0, of: 141_210, at: 1_000) == "")
    // Some offsets have no record.
    #expect(pace.words("requests", 12_516, read: 35_302, of: 141_210, at: 3_000) == ", 12516 records, 6258 a second, about 7 s left")
    #expect(pace.words("requests", 50_064, read: 141_210, of: 141_210, at: 9_000) == ", 50064 records, 6258 a second")
    #expect(pace.words("markers", 50_064, read: 141_210, of: 141_210, at: 9_000) == "", "a phase has its own speed")
    #expect(pace.milliseconds(at: 9_500) == 8_500)
  }

  @Test func `numbers that make no sense end nothing`() {
    let pace = RebuildPace(start: 0)
    _ = pace.words("requests", 1, read: 1, of: .max, at: 0)
    #expect(pace.words("requests", 1, read: 1, of: .max, at: 1_000).hasPrefix(", 1 record, 1 a second, about "))
  }
}
