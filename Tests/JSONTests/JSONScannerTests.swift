import JSON
import Testing

/// What the scanner says of a text as a whole.
private func verdict(_ bytes: [UInt8], depthLimit: Int = 64) -> JSONError? {
  bytes.withUnsafeBytes { bytes -> JSONError? in
    var scanner = JSONScanner(bytes, depthLimit: depthLimit)
    do throws(JSONError) {
      try scanner.finish()
      return nil
    } catch { return error }
  }
}

private func verdict(_ text: String) -> JSONError? { verdict(Array(text.utf8)) }

@Suite struct JSONScannerGrammar {
  @Test(arguments: [
    "null", "true", "false", "0", "-0", "-0.0", "12", "1.5", "1e5", "1E+5", "1e-5", "-1.25e+300", "1e99999", "\"\"", "\"a\"",
    " \t\r\n1 \t\r\n", "[]", "[ ]", "{}", "{ }", "[1]", "[1,2]", "[ 1 , 2 ]", #"{"a":1}"#, #"{ "a" : 1 , "b" : [ { } ] }"#,
    #"{"":0}"#, #"{"a":1,"a":2}"#, #""\"\\\/\b\f\n\r\t\u0041\u00e9\uABCD""#, #""\uD83D\uDE00""#, #""\ud83d\ude00""#,
    #""\u0000""#, "\"\u{7F}\u{80}\u{7FF}\u{800}\u{D7FF}\u{E000}\u{FFFF}\u{10000}\u{10FFFF}\"", "\"\u{FEFF}\"",
    "123456789012345678901234567890", "[[[[[[[[]]]]]]]]", "\"0123456789abcdef\"",
  ])
  func validTextIsAccepted(_ text: String) {
    #expect(verdict(text) == nil)
  }

  @Test(
    arguments: [
      ("", .truncated, 0), ("  ", .truncated, 2), ("\u{FEFF}1", .unexpectedByte, 0), ("\0", .unexpectedByte, 0), ("1\0", .trailingBytes, 1),
      ("1 2", .trailingBytes, 2), ("{}{}", .trailingBytes, 2), ("]", .unexpectedByte, 0), ("[}", .unexpectedByte, 1),
      ("{]", .unexpectedByte, 1), ("[1}", .unexpectedByte, 2), (#"{"a":1]"#, .unexpectedByte, 6), ("[1,]", .unexpectedByte, 3),
      ("[,1]", .unexpectedByte, 1), ("[1,,2]", .unexpectedByte, 3), ("[1 2]", .unexpectedByte, 3), (#"{"a":1,}"#, .unexpectedByte, 7),
      (#"{,"a":1}"#, .unexpectedByte, 1), (#"{"a" 1}"#, .unexpectedByte, 5), (#"{"a"}"#, .unexpectedByte, 4),
      (#"{"a":}"#, .unexpectedByte, 5),
      ("{a:1}", .unexpectedByte, 1), ("{1:1}", .unexpectedByte, 1), ("{'a':1}", .unexpectedByte, 1),
      (#"{"a":1 "b":2}"#, .unexpectedByte, 7),
      ("[", .truncated, 1), ("{", .truncated, 1), ("[1", .truncated, 2), ("[1,", .truncated, 3), (#"{"a"#, .truncated, 3),
      (#"{"a""#, .truncated, 4), (#"{"a":"#, .truncated, 5), (#"{"a":1"#, .truncated, 6), (#"{"a":1,"#, .truncated, 7),
      ("01", .invalidNumber, 1), ("-01", .invalidNumber, 2), ("00", .invalidNumber, 1), ("-", .truncated, 1), ("-a", .invalidNumber, 1),
      ("+1", .unexpectedByte, 0), (".5", .unexpectedByte, 0), ("1.", .truncated, 2), ("[1.]", .invalidNumber, 3),
      ("1.e5", .invalidNumber, 2),
      ("1e", .truncated, 2), ("1e+", .truncated, 3), ("[1e]", .invalidNumber, 3), ("1.5.2", .trailingBytes, 3), ("0x1", .trailingBytes, 1),
      ("1_000", .trailingBytes, 1), ("NaN", .unexpectedByte, 0), ("Infinity", .unexpectedByte, 0), ("-Infinity", .invalidNumber, 1),
      ("nul", .truncated, 3), ("nulL", .unexpectedByte, 3), ("True", .unexpectedByte, 0), ("tru", .truncated, 3),
      ("truefalse", .trailingBytes, 4),
      ("fals ", .unexpectedByte, 4), ("\"", .truncated, 1), ("\"abc", .truncated, 4), ("\"0123456789", .truncated, 11),
      ("'a'", .unexpectedByte, 0),
      ("\"a\nb\"", .controlCharacter, 2), ("\"01234567\t\"", .controlCharacter, 9), ("\"\0\"", .controlCharacter, 1),
      ("\"\u{1F}\"", .controlCharacter, 1), (#""\a""#, .invalidEscape, 1), (#""\'""#, .invalidEscape, 1), (#""\x41""#, .invalidEscape, 1),
      (#""\u12""#, .invalidEscape, 1), (#""\u12G4""#, .invalidEscape, 1), (#""\U0041""#, .invalidEscape, 1), (#""\"#, .truncated, 2),
      (#""\u"#, .invalidEscape, 1), (#""\""#, .truncated, 3), (#""\uD800""#, .loneSurrogate, 1), (#""\uDC00""#, .loneSurrogate, 1),
      (#""\uD800\u0041""#, .loneSurrogate, 1), (#""\uDC00\uDC00""#, .loneSurrogate, 1), (#""\uDFFF\uD800""#, .loneSurrogate, 1),
      (#""\uD800\uD800""#, .loneSurrogate, 1), (#""\uD800abcdef""#, .loneSurrogate, 1),
      (#""\uD800\uDC0""#, .loneSurrogate, 1), ("// 1", .unexpectedByte, 0), ("1 // one", .trailingBytes, 2),
      ("/* */ 1", .unexpectedByte, 0),
      ("\u{0B}1", .unexpectedByte, 0), ("\u{A0}1", .unexpectedByte, 0), ("1\u{2028}", .trailingBytes, 1),
    ] as [(String, JSONError.Reason, Int)])
  func invalidTextIsRefusedWithReasonAndPlace(_ text: String, _ reason: JSONError.Reason, _ offset: Int) {
    #expect(verdict(text) == JSONError(reason: reason, offset: offset))
  }

  @Test(
    arguments: [
      [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x20], [0xC3, 0xC3], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF], [0xE1, 0x80],
      [0xE1, 0x80, 0x20], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xEF, 0xBF], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF],
      [0xF1, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFE], [0xFF],
    ] as [[UInt8]])
  func bytesThatAreNotUTF8AreRefused(_ bytes: [UInt8]) {
    for padding in [[], Array("0123456".utf8), Array("\u{E9}".utf8), Array("012345678\u{E9}\u{20AC}".utf8)] as [[UInt8]] {
      #expect(verdict([0x22] + padding + bytes + [0x22]) == JSONError(reason: .invalidUTF8, offset: 1 + padding.count))
      #expect(verdict([0x22] + padding + bytes + Array("abcdefgh\"".utf8)) == JSONError(reason: .invalidUTF8, offset: 1 + padding.count))
    }
  }

  @Test func everyTwoAndThreeByteSequenceIsJudgedAsTheStandardLibraryDoes() {
    for first in UInt8(0x80)...0xFF {
      for second in UInt8(0)...0xFF where second != 0x22 && second != 0x5C && second >= 0x20 {
        for tail in [[], [0x80], [0xBF], [0x80, 0x80], [0x20]] as [[UInt8]] {
          let content = [first, second] + tail
          let isValid = String(validating: content, as: UTF8.self) != nil
          let isAccepted = verdict([0x22] + content + [0x22]) == nil
          guard isValid == isAccepted else {
            Issue.record("\(content): accepted \(isAccepted)")
            return
          }
        }
      }
    }
  }

  @Test func nestingIsAllowedUpToTheLimitAndNoFurther() {
    func nested(_ depth: Int, _ open: String, _ close: String) -> [UInt8] {
      Array((String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)).utf8)
    }
    #expect(verdict(nested(64, "[", "]")) == nil)
    #expect(verdict(nested(65, "[", "]")) == JSONError(reason: .tooDeep, offset: 64))
    #expect(verdict(nested(64, #"{"a":"#, "}")) == nil)
    #expect(verdict(nested(65, #"{"a":"#, "}")) == JSONError(reason: .tooDeep, offset: 320))
    #expect(verdict(nested(32, #"[{"a":"#, "}]")) == nil)
    #expect(verdict(nested(3, "[", "]"), depthLimit: 3) == nil)
    #expect(verdict(nested(4, "[", "]"), depthLimit: 3) == JSONError(reason: .tooDeep, offset: 3))
    #expect(verdict(nested(1_000_000, "[", "]"), depthLimit: 1_000_000) == JSONError(reason: .tooDeep, offset: 64))
    #expect(verdict(Array("[]".utf8), depthLimit: 0) == JSONError(reason: .tooDeep, offset: 0))
    #expect(verdict(Array("[]".utf8), depthLimit: -1) == JSONError(reason: .tooDeep, offset: 0))
    #expect(verdict(Array("1".utf8), depthLimit: 0) == nil)
  }
}
