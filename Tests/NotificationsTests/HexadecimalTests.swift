import Testing

@testable import Notifications

@Suite struct HexadecimalTests {
  @Test func `every byte has two lower-case digits`() {
    let text = Hexadecimal.text(Array(UInt8.min ... .max))
    #expect(text.count == 512 && text.hasPrefix("000102") && text.hasSuffix("fdfeff") && text == text.lowercased())
    #expect(Hexadecimal.text([]) == "")
  }

  @Test func `digits of either case have their values and other bytes have none`() {
    for byte in UInt8.min ... .max {
      let value = UInt8(exactly: Character(UnicodeScalar(byte)).hexDigitValue ?? -1)
      #expect(Hexadecimal.value(byte) == value)
      if let value { #expect(Hexadecimal.validValue(byte) == value) }
    }
  }
}
