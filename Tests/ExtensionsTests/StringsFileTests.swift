import Notifications
import TestSupport
import Testing

@testable import Extensions

@Suite struct StringsFileTests {
  private static func texts(_ text: String) throws -> [String: String] { try texts(Array(text.utf8)) }
  private static func texts(_ bytes: [UInt8]) throws -> [String: String] {
    Dictionary(uniqueKeysWithValues: try StringsFile(bytes).entries.map { ($0.key.text, $0.value.value) })
  }

  /// What is wrong with a file; "nothing" when it is read.
  private static func wrong(_ bytes: [UInt8]) -> String {
    do throws(StringsError) {
      _ = try StringsFile(bytes)
      return "nothing"
    } catch { return "\(error)" }
  }

  /// The text in UTF-16 behind its byte order mark.
  private static func utf16(_ text: String, isBig: Bool) -> [UInt8] {
    ([0xFEFF] + Array(text.utf16)).flatMap { (unit: UInt16) -> [UInt8] in
      let bytes = [UInt8(unit >> 8), UInt8(unit & 0xFF)]
      return isBig ? bytes : bytes.reversed()
    }
  }

  // MARK: What is read

  @Test(arguments: [
    ("", [:]),
    (" \t\r\n\u{B}\u{C}\u{2028}\u{2029}", [:]),
    (#""key" = "value";"#, ["key": "value"]),
    (#""a"="1";"b"="2";"#, ["a": "1", "b": "2"]),
    ("key = value;", ["key": "value"]),
    ("a_$/:.-Z9 = b_$/:.-Z9;", ["a_$/:.-Z9": "b_$/:.-Z9"]),
    ("'a\"b' = 'c\"d';", ["a\"b": "c\"d"]),
    (#""a'b" = "c'd";"#, ["a'b": "c'd"]),
    (#""Cancel"; OK ;"#, ["Cancel": "Cancel", "OK": "OK"]),
    (#""" = "";"#, ["": ""]),
    ("/* a */ k /* b */ = /* c */ v /* d */ ; /* e */", ["k": "v"]),
    ("// a\nk = v; // b", ["k": "v"]),
    ("// a\rk = v;", ["k": "v"]),
    ("// a\u{2028}k = v;", ["k": "v"]),
    ("/**/k = v;/***/", ["k": "v"]),
    ("/* \"x\" = \"y\"; // */ k = v;", ["k": "v"]),
    (#""/* a */" = "// b";"#, ["/* a */": "// b"]),
    ("http://example.com = /v;", ["http://example.com": "/v"]),
    ("\"k\" = \"two\nlines\";", ["k": "two\nlines"]),
    (#""Grüße" = "中文 😀";"#, ["Grüße": "中文 😀"]),
  ])
  func anEntryIsReadInEachOfItsForms(text: String, expected: [String: String]) throws {
    #expect(try Self.texts(text) == expected)
  }

  @Test(arguments: [
    (#"\""#, "\""), (#"\\"#, "\\"), (#"\n"#, "\n"), (#"\t"#, "\t"), (#"\r"#, "\r"), (#"\a\b\f\v"#, "\u{7}\u{8}\u{C}\u{B}"),
    (#"\'\/\q\x41"#, "'/qx41"), ("\\\n", "\n"), (#"\é"#, "é"),
    (#"\U00e9\u00E9"#, "éé"), (#"\Ue9;"#, "é;"), (#"\U0041B"#, "AB"), (#"\UFFFF"#, "\u{FFFF}"),
    (#"\Ud83d\Ude00"#, "😀"), (#"\ud83d\ude00"#, "😀"), (#"\Ud83D\uDE00"#, "😀"), (#"\Udbff\Udfff"#, "\u{10FFFF}"),
  ])
  func anEscapeStandsForItsCharacter(escape: String, expected: String) throws {
    let text = try #require(try Self.texts("k = \"\(escape)\";")["k"])
    #expect(Array(text.unicodeScalars) == Array(expected.unicodeScalars))
    #expect(try Self.texts("\"\(escape)\" = v;").keys.map { Array($0.utf8) } == [Array(expected.utf8)])
  }

  @Test func eachEncodingGivesTheSameTexts() throws {
    let text = "\"Grüße\" = \"中文 😀\"; /* ü */\r\nb = \"\\Ue9\";"
    let expected = ["Grüße": "中文 😀", "b": "é"]
    #expect(try Self.texts(text) == expected)
    #expect(try Self.texts([0xEF, 0xBB, 0xBF] + Array(text.utf8)) == expected)
    #expect(try Self.texts(Self.utf16(text, isBig: true)) == expected)
    #expect(try Self.texts(Self.utf16(text, isBig: false)) == expected)
  }

  @Test func `keys that only look alike are two`() throws {
    let entries = try StringsFile(Array("\"é\" = \"one\"; \"e\u{301}\" = \"two\";".utf8)).entries
    #expect(entries["é"]?.value == "one" && entries["e\u{301}"]?.value == "two")
  }

  /// Whatever ends a line, a line is counted once.
  @Test func anEntryKnowsItsLine() throws {
    let file = try StringsFile(Array("a;\nb;\r\nc;\r\rd;/*\n*/e; f = \"\n\";g;".utf8))
    #expect(file.entries.mapValues(\.line) == ["a": 1, "b": 2, "c": 3, "d": 5, "e": 6, "f": 6, "g": 7])
  }

  // MARK: What is refused

  @Test(arguments: [
    (#"= "v";"#, #"1:1: a key is expected: write each entry as "key" = "value";"#),
    ("k = v;\n{ a = b; }", #"2:1: a key is expected: write each entry as "key" = "value";"#),
    ("k = v;;", #"1:7: a key is expected: write each entry as "key" = "value";"#),
    ("\u{A0}k = v;", #"1:1: a key is expected: write each entry as "key" = "value";"#),
    ("/ = v; *", #"1:8: a key is expected: write each entry as "key" = "value";"#),
    (#"k = ;"#, "1:5: a value is expected after =: write it in double quotes"),
    (#"k ="#, "1:4: a value is expected after =: write it in double quotes"),
    ("k = (a, b);", "1:5: a value is a string: lists, dictionaries and data have no place here"),
    ("k = { a = b; };", "1:5: a value is a string: lists, dictionaries and data have no place here"),
    ("k = <00ff>;", "1:5: a value is a string: lists, dictionaries and data have no place here"),
    ("“k” = v;", "1:1: a typographic quotation mark encloses nothing: write straight ones (\")"),
    ("\"ü\" = „v“;", "1:7: a typographic quotation mark encloses nothing: write straight ones (\")"),
    (#""k" "v";"#, "1:4: = is expected after the key, or ; where the key is the value too"),
    (#""k""#, "1:4: = is expected after the key, or ; where the key is the value too"),
    ("k = \"v\"\n\n\"l\" = \"w\";", "1:8: ; is expected after the value"),
    ("k = v", "1:6: ; is expected after the value"),
    ("k = a b;", "1:6: ; is expected after the value"),
    ("a;\n  k = \"v;\nb;", "2:7: the string that begins here has no closing quotation mark"),
    (#"k = "v\"#, "1:5: the string that begins here has no closing quotation mark"),
    (#"k = 'v""#, "1:5: the string that begins here has no closing quotation mark"),
    ("a;\r\n /* b\n;", "2:2: the comment that begins here has no */"),
    ("/*/", "1:1: the comment that begins here has no */"),
    (#"k = "\101";"#, "1:6: octal escapes are not read: write the character itself"),
    (#"k = "\Ug";"#, "1:6: \\U is followed by one to four hexadecimal digits"),
    (#"k = "a\u"#, "1:7: \\U is followed by one to four hexadecimal digits"),
    (#"k = "\U0000";"#, "1:6: a NUL cannot stand in a text: remove it, or if the file is UTF-16, save it with a byte order mark"),
    (#"k = "\Ud83d";"#, "1:6: half of a surrogate pair: write both halves, or the character itself"),
    (#"k = "\Ud83d\n";"#, "1:6: half of a surrogate pair: write both halves, or the character itself"),
    (#"k = "\Ud83d\Ud83d";"#, "1:6: half of a surrogate pair: write both halves, or the character itself"),
    (#"k = "\Ude00";"#, "1:6: half of a surrogate pair: write both halves, or the character itself"),
    (#"k = "\Ud83d\U"#, "1:6: half of a surrogate pair: write both halves, or the character itself"),
    ("a = 1;\nb = 2;\n\"a\" = 3;", "3:1: the key stands already in line 1: keep one of the two"),
    (
      "bplist00\u{1}",
      "1:1: this is a compiled file: use the source, or convert it with plutil -convert json and write it as \"key\" = \"value\";"
    ),
    ("\n<?xml version=\"1.0\"?>", "2:1: this is a property list in XML: write each entry as \"key\" = \"value\";"),
    ("<!DOCTYPE plist>", "1:1: this is a property list in XML: write each entry as \"key\" = \"value\";"),
    ("<plist version=\"1.0\">", "1:1: this is a property list in XML: write each entry as \"key\" = \"value\";"),
  ])
  func aMistakeIsToldWithItsPlaceAndItsRule(text: String, expected: String) {
    #expect(Self.wrong(Array(text.utf8)) == expected)
  }

  @Test func anotherEncodingIsToldWithItsPlace() {
    let encoding = "the text is in another encoding: save it as UTF-8, or as UTF-16 with a byte order mark"
    #expect(Self.wrong(Array("a;\n\"ü".utf8) + [0xFC] + Array("\" = v;".utf8)) == "2:3: \(encoding)")
    #expect(Self.wrong([0xEF, 0xBB, 0xBF, 0xC0, 0x80]) == "1:1: \(encoding)")
    #expect(Self.wrong(Self.utf16("a;\nb", isBig: true) + [0xD8, 0x3D, 0, 0x3B]) == "2:2: \(encoding)")
    #expect(Self.wrong(Self.utf16("a;", isBig: false) + [0x3B]) == "1:3: \(encoding)")
    let nul = "a NUL cannot stand in a text: remove it, or if the file is UTF-16, save it with a byte order mark"
    #expect(Self.wrong(Array(Self.utf16("ab;", isBig: false).dropFirst(2))) == "1:2: \(nul)")
    #expect(Self.wrong(Self.utf16("a;/*\0*/", isBig: true)) == "1:5: \(nul)")
  }

  @Test func eachBoundIsReachedAndNotPassed() {
    func entry(key: Int, value: Int) -> [UInt8] {
      Array("\"\(String(repeating: "k", count: key))\" = \"\(String(repeating: "v", count: value))\";".utf8)
    }
    func file(of count: Int) -> [UInt8] { [UInt8](repeating: 0x20, count: count) }
    func entries(_ count: Int) -> [UInt8] { Array((0..<count).map { "\($0);" }.joined().utf8) }
    #expect(Self.wrong(entry(key: 1_024, value: 16_384)) == "nothing")
    #expect(Self.wrong(entry(key: 1_025, value: 1)) == "1:1: a key has 1024 bytes at most")
    #expect(Self.wrong(entry(key: 1, value: 16_385)) == "1:7: a value has 16384 bytes at most")
    #expect(Self.wrong(Array("\(String(repeating: "k", count: 1_025));".utf8)) == "1:1: a key has 1024 bytes at most")
    #expect(Self.wrong(file(of: 4 << 20)) == "nothing")
    #expect(Self.wrong(file(of: 4 << 20 + 1)) == "1:1: a file has 4194304 bytes at most: split the application's texts")
    #expect(Self.wrong(entries(50_000)) == "nothing")
    #expect(Self.wrong(entries(50_001)).hasSuffix(": a file has 50000 entries at most: leave out what no notification names"))
  }

  // MARK: Any bytes

  private static let corpus: [[UInt8]] = [
    Array("/* A */\n\"a\" = \"1\";\r\n// B\n'b c' = 'x';\nplain = text-1;\nd;\n".utf8),
    Array(#""e" = "\"\\\n\t\r\U00e9\u00e9\Ud83d\Ude00\101\375\q"; "%@ %1$@" = "Grüße 😀";"#.utf8),
    utf16("\"k\" = \"ü 😀 \\Ud83d\\Ude00\"; /* */", isBig: true), utf16("'k' = v; // x\n", isBig: false),
    [0xEF, 0xBB, 0xBF] + Array("a=b;".utf8),
  ]
  private static let tokens = [
    "\"", "'", "\\", "=", ";", "/*", "*/", "//", "\\U", "\\Ud83d", "\\Ude00", "\\777", "\\0", "\u{2028}", "“", "(", "{", "<", "k = v;",
  ]

  /// What is read is the same when it is written again, and a place lies in the file.
  @Test func anyBytesAreReadOrRefused() {
    let failures = Fuzz("strings files", corpus: Self.corpus, tokens: Self.tokens).run { bytes, _ in
      do throws(StringsError) {
        let entries = try StringsFile(Array(bytes)).entries
        let again = try StringsFile(Self.written(entries)).entries
        return again.mapValues(\.value) == entries.mapValues(\.value) ? nil : "it was not the same when written and read again"
      } catch {
        return (1...bytes.count + 1).contains(error.line) && (1...bytes.count + 1).contains(error.column) ? nil : "\(error)"
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }

  /// Entries with every character escaped.
  private static func written(_ entries: [Name: StringsFile.Entry]) -> [UInt8] {
    func quoted(_ text: String) -> String {
      "\"" + text.utf16.map { "\\U" + String($0, radix: 16).padded(to: 4) }.joined() + "\""
    }
    return Array(entries.map { "\(quoted($0.key.text)) = \(quoted($0.value.value));" }.joined(separator: "\n").utf8)
  }
}

extension String {
  fileprivate func padded(to count: Int) -> String { String(repeating: "0", count: max(0, count - self.count)) + self }
}
