import JSON
import TestSupport
import Testing

@Suite struct JSONWriterTests {
  @Test func commasComeByThemselves() {
    var writer = JSONWriter()
    writer.openObject()
    writer.member("type", word: "notify")
    writer.member("delivery", 7)
    writer.key("empty")
    writer.openObject()
    writer.closeObject()
    writer.key(text: "list")
    writer.openArray()
    writer.integer(-1 as Int64)
    writer.openArray()
    writer.closeArray()
    writer.null()
    writer.bool(false)
    Array(#"{"a" : 1}"#.utf8).withUnsafeBytes { writer.raw($0) }
    writer.double(0.5)
    writer.closeArray()
    writer.member("last", "é")
    writer.closeObject()
    #expect(writer.text == #"{"type":"notify","delivery":7,"empty":{},"list":[-1,[],null,false,{"a" : 1},0.5],"last":"é"}"#)
    #expect(writer.count == writer.text.utf8.count)
    writer.reset()
    #expect(writer.count == 0)
    writer.bool(true)
    #expect(writer.text == "true")
  }

  @Test func whatMustBeEscapedIsEscapedAndNothingElse() throws {
    let all = String(String.UnicodeScalarView((0..<0x80).compactMap { Unicode.Scalar($0 as UInt32) })) + "é€😀\u{2028}\u{FEFF}"
    for padding in 0..<10 {
      var writer = JSONWriter()
      writer.string(String(repeating: "x", count: padding) + all)
      #expect(try JSONValue(parsing: writer.text) == .string(String(repeating: "x", count: padding) + all))
    }
    var writer = JSONWriter()
    writer.string("\0\u{1}\u{8}\t\n\u{B}\u{C}\r\u{1F}\" \\ / \u{7F}é")
    #expect(writer.text == #""\u0000\u0001\b\t\n\u000b\f\r\u001f\" \\ / "# + "\u{7F}é\"")
  }

  @Test func integersAreWrittenWhole() {
    for value in [0, 1, 9, 10, -10, 99, 100, 12_345_678_901, Int64.max, Int64.min] as [Int64] {
      var writer = JSONWriter()
      writer.integer(value)
      #expect(writer.text == String(value))
    }
    var writer = JSONWriter()
    writer.integer(UInt64.max)
    #expect(writer.text == String(UInt64.max))
  }

  @Test func doublesReadBackTheSameAndAreNeverInvalid() throws {
    for value in [0, -0.0, 0.1, 1e300, 1e16, -.leastNonzeroMagnitude, 1.5, .greatestFiniteMagnitude, 123456789.125, 1e-7] as [Double] {
      var writer = JSONWriter()
      writer.double(value)
      #expect(try JSONValue(parsing: writer.text).doubleValue == value)
    }
    var writer = JSONWriter()
    writer.openArray()
    for value in [Double.nan, .infinity, -.infinity] { writer.double(value) }
    writer.closeArray()
    #expect(writer.text == "[null,null,null]")
  }

  @Test func bytesThatAreNotUTF8ComeOutAsReplacementCharacters() throws {
    let cases: [([UInt8], String)] = [
      ([0x61, 0xFF, 0x62], "a\u{FFFD}b"), ([0xC3], "\u{FFFD}"), ([0xC3, 0xA9], "é"), ([0xED, 0xA0, 0x80], "\u{FFFD}\u{FFFD}\u{FFFD}"),
      (Array("0123456789".utf8) + [0x80], "0123456789\u{FFFD}"), ([0xF0, 0x9F, 0x98], "\u{FFFD}\u{FFFD}\u{FFFD}"), ([], ""),
    ]
    for (bytes, expected) in cases {
      var writer = JSONWriter()
      writer.openObject()
      writer.key("text")
      bytes.withUnsafeBytes { writer.string(utf8: $0) }
      writer.closeObject()
      #expect(try JSONValue(parsing: writer.text) == .object([.init(key: "text", value: .string(expected))]))
    }
  }

  @Test func textOfAnyLengthFitsHoweverSmallTheWriterBegan() throws {
    for count in [0, 1, 60, 61, 62, 63, 64, 65, 127, 128, 1000, 100_000] {
      for character in ["a", "\u{1}", "\"", "é"] {
        var writer = JSONWriter(capacity: 0)
        let value = String(repeating: character, count: count)
        writer.openArray()
        writer.string(value)
        writer.integer(Int64.min)
        writer.closeArray()
        #expect(try JSONValue(parsing: writer.text) == [.string(value), .integer(.min)])
      }
    }
  }

  @Test func whateverIsWrittenReadsBackEqual() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = RandomJSON(seed: seed)
    var writer = JSONWriter()
    for _ in 0..<10_000 {
      let tree = random.tree()
      writer.reset()
      tree.write(to: &writer)
      #expect(try JSONValue(parsing: writer.text) == tree, "seed \(seed)")
      #expect(try JSONValue(parsing: random.text(of: tree)) == tree, "seed \(seed)")
    }
  }
}
