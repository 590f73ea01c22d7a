import EventLoop
import Testing

/// Times and counts as a person reads them.
@Suite struct ReadableTextTests {
  @Test(
    arguments: [
      (0, "0 ms"), (999, "999 ms"), (1_000, "1 s"), (8_407, "8.4 s"), (59_999, "59.9 s"), (60_000, "1 min"), (200_000, "3 min 20 s"),
      (3_600_000, "1 h"), (7_500_000, "2 h 5 min"), (86_400_000, "1 d"), (356_400_000, "4 d 3 h"), (-8_407, "-8.4 s"),
      (.max, "106751991167 d 7 h"), (.min, "-106751991167 d 7 h"),
    ] as [(Int64, String)])
  func `a time has at most two units`(milliseconds: Int64, text: String) {
    #expect(ReadableText.duration(milliseconds: milliseconds) == text)
  }

  @Test func `one thing is singular, all else plural`() {
    #expect(
      ["mailbox", "entry", "key", "byte", "match"].map { ReadableText.count(1, $0) }.joined(separator: ", ")
        == "1 mailbox, 1 entry, 1 key, 1 byte, 1 match")
    #expect(
      ["mailbox", "entry", "key", "byte", "match"].map { ReadableText.count(0, $0) }.joined(separator: ", ")
        == "0 mailboxes, 0 entries, 0 keys, 0 bytes, 0 matches")
  }
}
