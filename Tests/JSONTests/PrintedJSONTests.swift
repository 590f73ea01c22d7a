import JSON
import Testing

/// JSON where a person may look at it.
@Suite struct PrintedJSONTests {
  @Test func aLineOfJSONHasNoControlsAndMeansTheSame() throws {
    for value in 0x00...0xA0 as ClosedRange<UInt32> {
      let text = try "a\(#require(Unicode.Scalar(value)))\"\\é東🎉b"
      let object = JSONValue.object([.init(key: text, value: .string(text))])
      let line = PrintedJSON.text(object.text)
      #expect(line.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }, "\(String(value, radix: 16))")
      #expect(try JSONValue(parsing: line) == object)
      // Whoever reads what the other lines say need not know of this one.
      if !(0x7F...0x9F).contains(value) { #expect(line == object.text) }
    }
  }
}
