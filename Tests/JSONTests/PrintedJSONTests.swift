import JSON
import Testing

/// JSON where a person may look at it.
@Suite struct PrintedJSONTests {
  @Test func aLineOfJSONHasNoControlsAndMeansTheSame() throws {
    let ofDirection: [UInt32] = [0xAD, 0x061C, 0x200B, 0x200F, 0x2028, 0x202A, 0x202E, 0x2066, 0x2069, 0xFEFF, 0xE0041]
    for value in Array(0x00...0xA0 as ClosedRange<UInt32>) + ofDirection {
      let text = try "a\(#require(Unicode.Scalar(value)))\"\\é東🎉b"
      let object = JSONValue.object([.init(key: text, value: .string(text))])
      let line = PrintedJSON.text(object.text)
      #expect(line.unicodeScalars.allSatisfy(PrintedText.isVisible), "\(String(value, radix: 16))")
      #expect(try JSONValue(parsing: line) == object)
      // Whoever reads what the other lines say need not know of this one.
      if !(0x7F...0x9F).contains(value), !ofDirection.contains(value) { #expect(line == object.text) }
    }
  }
}
