import Testing

@testable import Command

/// Columns that stand under their headings.
@Suite struct TerminalTableTests {
  private static let rows = [["BadTopic", "com.example.shop", "12", "3m 20s"], ["Poison", "-", "7", "4.2s"]]

  @Test func wordsStandToTheLeftNumbersToTheRightAndTheLastColumnAsItIs() {
    #expect(
      TerminalTable(heading: ["REASON", "APPLICATION", "LETTERS", "AGE"], words: [1]).lines(Self.rows, width: nil) == [
        "REASON    APPLICATION       LETTERS  AGE",
        "BadTopic  com.example.shop       12  3m 20s",
        "Poison    -                       7  4.2s",
      ])
  }

  @Test func aLastColumnOfNumbersStandsToTheRight() {
    #expect(
      TerminalTable(heading: ["REASON", "APPLICATION", "LETTERS", "AGE"], words: [1], alignsLast: true).lines(Self.rows, width: nil) == [
        "REASON    APPLICATION       LETTERS     AGE",
        "BadTopic  com.example.shop       12  3m 20s",
        "Poison    -                       7    4.2s",
      ])
  }
}
