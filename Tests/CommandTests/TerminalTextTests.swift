import Testing

@testable import Command

/// What may stand in a line for a person.
@Suite struct TerminalTextTests {
  @Test func nothingThatComesFromOutsideMovesTheCursorOrTurnsTheTextRound() {
    let hostile: [ClosedRange<UInt32>] = [
      0x00...0x1F, 0x7F...0x9F, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x2069, 0x061C...0x061C, 0xFEFF...0xFEFF,
    ]
    for value in hostile.joined() {
      guard let scalar = Unicode.Scalar(value) else { continue }
      #expect(TerminalText.visible("a\(scalar)b") == "a\u{FFFD}b", "\(String(value, radix: 16))")
    }
    #expect(TerminalText.visible("Grüße, 東京 🎉 – “so”") == "Grüße, 東京 🎉 – “so”")
  }

  @Test func aDevicesTokenIsShownByItsEndsAndNeverAsItIs() {
    #expect(TerminalText.device(String(repeating: "a", count: 32) + String(repeating: "b", count: 32)) == "aaaaaaaa…bbbbbbbb")
    #expect(
      TerminalText.device("\u{1B}]0;stolen\u{7}0123456789\u{1B}[2J\u{202E}x").unicodeScalars.allSatisfy {
        $0.value >= 0x20 && $0.value != 0x202E
      })
    #expect(TerminalText.device("\u{1B}[2J") == "\u{FFFD}[2J")
    let marks = String(repeating: "e" + String(repeating: "\u{301}", count: 1_000), count: 40)
    #expect(TerminalText.device(marks).unicodeScalars.count == 17)
  }

  @Test func aShareIsToldOfAnyNumbers() {
    #expect(TerminalText.share(30, of: 100) == "30%" && TerminalText.share(1, of: 3) == "33%" && TerminalText.share(0, of: 1) == "0%")
    for used in [Int64.min, -1, 0, 1, .max] {
      for maximum in [Int64.min, -1, 0, 1, .max] { #expect(TerminalText.share(used, of: maximum).last == "%") }
    }
    #expect(TerminalText.share(.max, of: .max) == "100%")
  }
}
