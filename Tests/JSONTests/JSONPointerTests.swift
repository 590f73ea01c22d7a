import JSON
import Testing

@Suite struct JSONPointerTests {
  /// The document and the places of RFC 6901, section 5.
  static let document: JSONValue = [
    "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8,
  ]

  @Test(arguments: [
    ("/foo", ["bar", "baz"] as JSONValue), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1), ("/c%d", 2), ("/e^f", 3), ("/g|h", 4),
    ("/i\\j", 5), ("/k\"l", 6), ("/ ", 7), ("/m~0n", 8),
  ])
  func theExamplesOfTheStandardAreFound(_ text: String, _ value: JSONValue) throws {
    let pointer = try #require(JSONPointer(text))
    #expect(Self.document[pointer] == value)
    #expect(pointer.description == text)
  }

  @Test func aSlashSeparatesWhateverFollowsIt() throws {
    let pointer = try #require(JSONPointer("/a/\u{301}x"))
    #expect(pointer.tokens == ["a", "\u{301}x"])
  }

  @Test func whatIsTooLargeIsKnownBeforeItIsWritten() {
    var value: JSONValue = ["a": "0123456789"]
    for _ in 0..<64 { value = ["left": value, "right": value] }
    #expect(value.isLarger(than: 16_384))
    let small: JSONValue = ["a": [1, true, nil, "text"]]
    #expect(!small.isLarger(than: small.text.utf8.count))
  }

  @Test func nothingIsTheWholeValue() throws { #expect(Self.document[try #require(JSONPointer(""))] == Self.document) }

  @Test(arguments: ["foo", "/~", "/~2", "/a~", String(repeating: "/a", count: 65), "/" + String(repeating: "a", count: 1_024)])
  func whatIsNoPointerIsRefused(_ text: String) { #expect(JSONPointer(text) == nil) }

  @Test(arguments: ["/foo/2", "/foo/01", "/foo/-", "/foo/x", "/foo/0/x", "/bar"])
  func whatIsNotThereIsNotFound(_ text: String) throws { #expect(Self.document[try #require(JSONPointer(text))] == nil) }

  @Test(arguments: [
    ("/a", #"{"a":1,"b":[{"c":2}]}"#, #"{"a":9,"b":[{"c":2}]}"#), ("/b/0/c", #"{"b":[{"c":2}]}"#, #"{"b":[{"c":9}]}"#),
    ("/x/y/z", "{}", #"{"x":{"y":{"z":9}}}"#), ("", "{}", "9"), ("/b/0", #"{"b":[1]}"#, #"{"b":[9]}"#), ("/0", #"{}"#, #"{"0":9}"#),
  ])
  func aValueIsPutToItsPlace(_ place: String, _ text: String, _ expected: String) throws {
    var value = try JSONValue(parsing: text)
    #expect(value.set(9, at: try #require(JSONPointer(place))))
    #expect(value.text == expected)
  }

  @Test(arguments: [("/b/1", #"{"b":[1]}"#), ("/b/x", #"{"b":[1]}"#), ("/a/b", #"{"a":"text"}"#), ("/a/b/c", #"{"a":{"b":1}}"#)])
  func whereThereIsNoPlaceNothingIsChanged(_ place: String, _ text: String) throws {
    var value = try JSONValue(parsing: text)
    #expect(!value.set(9, at: try #require(JSONPointer(place))))
    #expect(value.text == text)
  }

  @Test func aMemberIsChangedRemovedAndAdded() {
    var value: JSONValue = ["a": 1, "b": 2]
    value.set("a", nil)
    value.set("c", 3)
    value.withMember("b") { $0 = $0.map { [$0] } }
    #expect(value == ["b": [2], "c": 3])
    value.withMember("b") { $0?.withElement(0) { $0 = 7 } }
    #expect(value["b"] == [7])
  }

  /// The examples of RFC 7396, appendix A.
  @Test(arguments: [
    (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
    (#"{"a":"b"}"#, #"{"a":null}"#, "{}"), (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
    (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
    (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#), (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
    (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#), (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#), (#"{"a":"foo"}"#, "null", "null"),
    (#"{"a":"foo"}"#, #""bar""#, #""bar""#), (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
    ("[1,2]", #"{"a":"b","c":null}"#, #"{"a":"b"}"#), ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
  ])
  func aMergePatchChangesAsTheStandardSays(_ text: String, _ patch: String, _ expected: String) throws {
    var value = try JSONValue(parsing: text)
    value.merge(try JSONValue(parsing: patch))
    #expect(value.text == expected)
  }
}
