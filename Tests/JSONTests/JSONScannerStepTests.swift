import JSON
import TestSupport
import Testing

/// Runs `body` with a scanner over the text.
private func scan<Result>(_ text: String, _ body: (inout JSONScanner) throws -> Result) rethrows -> Result {
  var text = text
  return try text.withUTF8 { bytes in
    var scanner = JSONScanner(UnsafeRawBufferPointer(bytes))
    return try body(&scanner)
  }
}

@Suite struct JSONScannerSteps {
  @Test func membersThatAreNotTakenAreSkippedAndStillChecked() throws {
    let text = #" { "a" : {"x":[1,2,{"y":null}]}, "b" : 7 , "c":[true , false], "d":"é" } "#
    try scan(text) { scanner in
      var seen: [String] = []
      try scanner.openObject()
      while let key = try scanner.nextKey() {
        seen.append(scanner.text(key) ?? "")
        if scanner.matches(key, "b") { #expect(scanner.integer(try scanner.skip()) == 7) }
      }
      try scanner.finish()
      #expect(seen == ["a", "b", "c", "d"])
    }
    #expect(throws: JSONError(reason: .unexpectedByte, offset: 8)) {
      try scan(#"{"a":[1,],"b":2}"#) { scanner in
        try scanner.openObject()
        while try scanner.nextKey() != nil {}
      }
    }
  }

  @Test func aReaderMayLeaveContainersEarly() throws {
    try scan(#"{"a":{"x":1,"y":[1,2]},"b":[[1],[2],3],"c":4}"#) { scanner in
      try scanner.openObject()
      _ = try scanner.nextKey()
      try scanner.openObject()
      _ = try scanner.nextKey()
      while try scanner.nextKey() != nil {}
      let key = try #require(try scanner.nextKey())
      #expect(scanner.text(key) == "b")
      try scanner.openArray()
      #expect(try scanner.nextElement())
      try scanner.openArray()
      try scanner.finish()
    }
    #expect(throws: JSONError(reason: .truncated, offset: 13)) {
      try scan(#"{"a":{"x":[1,"#) { scanner in
        try scanner.openObject()
        _ = try scanner.nextKey()
        try scanner.finish()
      }
    }
  }

  @Test func arraysAreWalkedElementByElement() throws {
    try scan(" [ 1 , [ ] , {} , [2,3] , \"x\" ] ") { scanner in
      var kinds: [JSONKind?] = []
      try scanner.openArray()
      while try scanner.nextElement() { kinds.append(scanner.peekKind()) }
      try scanner.finish()
      #expect(kinds == [.number, .array, .object, .array, .string])
    }
  }

  @Test func spansCoverExactlyTheValue() throws {
    let text = #"{"s": "aé\n" ,"n":-1.5e3 ,"t":true,"f" :false , "z":null,"o": {"a":1} ,"l":[1, 2] }"#
    try scan(text) { scanner in
      var sources: [String] = []
      try scanner.openObject()
      while try scanner.nextKey() != nil {
        let span = try scanner.skip()
        sources.append(String(decoding: scanner.source(span), as: UTF8.self))
        #expect(span.count == scanner.source(span).count)
        #expect(span.escaped == (span.kind == .string))
        var inner = scanner.scanner(of: span)
        #expect(try inner.skip() == span)
        try inner.finish()
      }
      #expect(sources == [#""aé\n""#, "-1.5e3", "true", "false", "null", #"{"a":1}"#, "[1, 2]"])
    }
  }

  @Test func anotherKindOfValueIsReportedAndMayBeTakenOtherwise() throws {
    try scan(#"{"alert":"text"}"#) { scanner in
      try scanner.openObject()
      _ = try scanner.nextKey()
      #expect(throws: JSONError(reason: .notAnObject, offset: 9)) { try scanner.openObject() }
      #expect(throws: JSONError(reason: .notAnArray, offset: 9)) { try scanner.openArray() }
      #expect(scanner.text(try scanner.skip()) == "text")
      #expect(try scanner.nextKey() == nil)
      try scanner.finish()
    }
    #expect(throws: JSONError(reason: .unexpectedByte, offset: 0)) { try scan("?") { try $0.openObject() } }
    #expect(throws: JSONError(reason: .truncated, offset: 1)) { try scan(" ") { try $0.openArray() } }
  }

  @Test func stepsThatHaveNoPlaceAreRefusedWithoutHarm() throws {
    try scan("[1]") { scanner in
      try scanner.openArray()
      #expect(throws: JSONError(reason: .misplacedCall, offset: 1)) { try scanner.nextKey() }
      #expect(throws: JSONError(reason: .misplacedCall, offset: 1)) { try scanner.skip() }
      #expect(try scanner.nextElement())
      try scanner.finish()
      #expect(scanner.peekKind() == nil)
      #expect(throws: JSONError(reason: .misplacedCall, offset: 3)) { try scanner.skip() }
      #expect(throws: JSONError(reason: .misplacedCall, offset: 3)) { try scanner.nextKey() }
      #expect(throws: JSONError(reason: .misplacedCall, offset: 3)) { try scanner.nextElement() }
      #expect(throws: JSONError(reason: .misplacedCall, offset: 3)) { try scanner.openObject() }
    }
  }

  @Test func afterAnInvalidByteEveryStepGivesTheSameError() throws {
    try scan(#"{"a":[1,!],"b":2}"#) { scanner in
      let error = JSONError(reason: .unexpectedByte, offset: 8)
      try scanner.openObject()
      _ = try scanner.nextKey()
      #expect(throws: error) { try scanner.skip() }
      #expect(throws: error) { try scanner.skip() }
      #expect(throws: error) { try scanner.nextKey() }
      #expect(throws: error) { try scanner.nextElement() }
      #expect(throws: error) { try scanner.openObject() }
      #expect(throws: error) { try scanner.openArray() }
      #expect(throws: error) { try scanner.finish() }
      #expect(scanner.peekKind() == nil)
    }
  }

  /// Any sequence of steps on any bytes: no trap, no read outside (debug builds check bounds), and no acceptance of invalid text.
  @Test func randomStepsOnRandomBytesNeverTrapNorAcceptInvalidText() {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = RandomJSON(seed: seed)
    for _ in 0..<20_000 {
      let text = Array(random.text(of: random.tree()).utf8)
      let bytes = Bool.random(using: &random.generator) ? text : random.spoiled(text)
      bytes.withUnsafeBytes { bytes in
        var whole = JSONScanner(bytes)
        let isValid = (try? whole.finish()) != nil
        var scanner = JSONScanner(bytes)
        var span: JSONSpan?
        for _ in 0..<Int.random(in: 0..<40, using: &random.generator) {
          switch Int.random(in: 0..<8, using: &random.generator) {
          case 0, 1: try? scanner.openObject()
          case 2, 3: try? scanner.openArray()
          case 4, 5: span = (try? scanner.nextKey()) ?? span
          case 6: _ = try? scanner.nextElement()
          default: span = (try? scanner.skip()) ?? span
          }
          if let span {
            _ = (scanner.text(span), scanner.integer(span), scanner.double(span), scanner.bool(span), scanner.matches(span, "aps"))
          }
        }
        let isAccepted = (try? scanner.finish()) != nil
        if isAccepted != isValid { Issue.record("seed \(seed): accepted \(isAccepted), valid \(isValid): \(Array(bytes))") }
      }
    }
  }
}

@Suite struct JSONScannerValues {
  private func value<Result>(_ text: String, _ body: (JSONScanner, JSONSpan) -> Result) throws -> Result {
    try scan(text) { scanner in
      let span = try scanner.skip()
      try scanner.finish()
      return body(scanner, span)
    }
  }

  @Test(
    arguments: [
      ("0", 0), ("-0", 0), ("1", 1), ("-1", -1), ("9223372036854775807", .max), ("-9223372036854775808", .min),
      ("9223372036854775808", nil),
      ("-9223372036854775809", nil), ("99999999999999999999999", nil), ("1.0", 1), ("1.5", nil), ("-1.50e1", -15), ("1e3", 1000),
      ("1E+3", 1000), ("1000e-3", 1), ("1e-1", nil), ("0e999999999999999999999", 0), ("0.0e-5", 0), ("1e15", 1_000_000_000_000_000),
      ("1e18", nil), ("9.223372036854775807e18", nil), ("9007199254740993.0", nil), ("0.99999999999999999999", nil), ("1e-400", nil),
      ("1e99999999999999999999999", nil), ("1e-99999999999999999999999", nil), ("0.001e3", 1), ("0.0010e3", 1), ("100.00", 100),
      ("100000000000000e-14", 1), ("99999999999999.9", nil), ("12300e-2", 123), ("12300e-3", nil), ("1050.0", 1050), ("\"1\"", nil),
      ("true", nil),
    ] as [(String, Int64?)])
  func integersAreExactOrRefused(_ text: String, _ expected: Int64?) throws {
    #expect(try value(text) { $0.integer($1) } == expected)
  }

  @Test func doublesAreTheNearestAndFinite() throws {
    #expect(try value("0.1") { $0.double($1) } == 0.1)
    #expect(try value("-1.5e3") { $0.double($1) } == -1500)
    #expect(try value("873.5062425066196E92") { $0.double($1) } == 8.735062425066196e94)
    #expect(try value("5e-324") { $0.double($1) } == .leastNonzeroMagnitude)
    #expect(try value("1.7976931348623157e308") { $0.double($1) } == .greatestFiniteMagnitude)
    #expect(try value("1e309") { $0.double($1) } == nil)
    #expect(try value("1e-400") { $0.double($1) } == 0)
    #expect(try value("\"1\"") { $0.double($1) } == nil)
  }

  @Test func textResolvesEscapes() throws {
    #expect(try value(#""\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\uD83D\ude00z\u0000""#) { $0.text($1) } == "\"\\/\u{8}\u{C}\n\r\tAé€😀z\0")
    #expect(try value(#""plain é""#) { $0.text($1) } == "plain é")
    #expect(try value(#""""#) { $0.text($1) } == "")
    #expect(try value("1") { $0.text($1) } == nil)
    #expect(try value("null") { $0.text($1) } == nil)
  }

  @Test func onlyTheTwoWordsAreBooleans() throws {
    #expect(try value("true") { $0.bool($1) } == true)
    #expect(try value("false") { $0.bool($1) } == false)
    for other in ["null", "1", "0", #""true""#, "[true]"] { #expect(try value(other) { $0.bool($1) } == nil) }
  }

  @Test func bytesComeWithoutCopyUnlessEscaped() throws {
    #expect(try value(#""aé""#) { $0.unescapedBytes($1).map(Array.init) } == Array("aé".utf8))
    #expect(try value(#""""#) { $0.unescapedBytes($1).map(Array.init) } == [])
    #expect(try value(#""a\n""#) { $0.unescapedBytes($1).map(Array.init) } == nil)
    #expect(try value("1") { $0.unescapedBytes($1).map(Array.init) } == nil)
  }

  @Test func namesAreComparedByCharactersNotBySpelling() throws {
    #expect(try value(#""aps""#) { $0.matches($1, "aps") })
    #expect(try value(#""\u0061p\u0073""#) { $0.matches($1, "aps") })
    #expect(try value(#""\u0061ps""#) { $0.matches($1, text: "aps") })
    #expect(try value(#""aps""#) { $0.matches($1, text: "aps") })
    #expect(try value(#""""#) { $0.matches($1, "") })
    for other in [#""apS""#, #""bps""#, #""ap""#, #""apss""#, #""\u0061p""#, "123", #"["a"]"#] {
      #expect(try !value(other) { $0.matches($1, "aps") })
      #expect(try !value(other) { $0.matches($1, text: "aps") })
    }
  }

  @Test func aForeignSpanReadsNothingOutside() throws {
    let foreign = try value(#""a string that is longer than the other text, with \n in it""#) { $1 }
    try scan("[]") { scanner in
      #expect(scanner.source(foreign).isEmpty)
      #expect(scanner.text(foreign) == "")
      #expect(scanner.unescapedBytes(foreign) == nil)
      #expect(!scanner.matches(foreign, "a"))
      var inner = scanner.scanner(of: foreign)
      #expect(throws: JSONError(reason: .truncated, offset: 0)) { try inner.skip() }
      try scanner.finish()
    }
  }

  @Test func errorsSayWhereAndWhatToDoButNeverTheContent() {
    let error = #expect(throws: JSONError.self) { try scan(#"{"token":"secret}"#) { try $0.finish() } }
    #expect(error?.description == "JSON, byte 17: the text ends too early; send it whole")
  }
}
