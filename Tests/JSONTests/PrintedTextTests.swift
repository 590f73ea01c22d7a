import JSON
import Testing

/// Text from outside in a line that somebody reads.
@Suite struct PrintedTextTests {
  private static let hostile: [ClosedRange<UInt32>] = [
    0x00...0x1F, 0x7F...0x9F, 0xAD...0xAD, 0x61C...0x61C, 0x180E...0x180E, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F,
    0xFEFF...0xFEFF, 0xFFF9...0xFFFB, 0xE0000...0xE007F,
  ]

  @Test func `nothing that a terminal obeys or nobody sees is left`() throws {
    for value in Self.hostile.joined() {
      let scalar = try #require(Unicode.Scalar(value))
      for text in [PrintedText.escaped("a\(scalar)b"), PrintedText.echo("a\(scalar)b")] {
        #expect(text.hasPrefix("a\\") && text.hasSuffix("b"))
        #expect(text.utf8.allSatisfy { (0x20...0x7E).contains($0) }, "\(String(value, radix: 16))")
      }
    }
    #expect(PrintedText.escaped("a\u{1B}[2J\r\n\tb") == #"a\u{1b}[2J\r\n\tb"#)
  }

  @Test func `what people write stays as it is`() {
    for text in ["", "Grüße, 東京 🎉 – “so”", #"C:\temp\x "quoted""#] {
      #expect(PrintedText.escaped(text) == text)
      #expect(PrintedText.echo(text) == text)
    }
  }

  @Test func `an echo has a bound, whatever is echoed`() {
    let bound = PrintedText.longestEcho
    #expect(PrintedText.echo(String(repeating: "a", count: bound)) == String(repeating: "a", count: bound))
    #expect(PrintedText.echo(String(repeating: "a", count: 1 << 20)) == String(repeating: "a", count: bound) + "…")
    // One Character of many scalars.
    let marks = "e" + String(repeating: "\u{301}", count: 10_000)
    #expect(PrintedText.echo(marks).unicodeScalars.count == bound + 1)
    #expect(PrintedText.echo(String(repeating: "\u{E0041}", count: 10_000)).utf8.count < 20 * bound)
  }
}
