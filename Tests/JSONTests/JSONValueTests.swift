import Foundation
import JSON
import TestSupport
import Testing

@Suite struct JSONValueTests {
  @Test func membersKeepOrderAndRepetitionsAndTheLastOneCounts() throws {
    let value = try JSONValue(parsing: #" {"b":1, "a":[true,null,"x"], "b":2.50} "#)
    #expect(value["b"]?.doubleValue == 2.5)
    #expect(value["a"]?[0]?.boolValue == true)
    #expect(value["a"]?[2]?.stringValue == "x")
    #expect(value["a"]?[3] == nil && value["a"]?[-1] == nil && value["c"] == nil && value[0] == nil && value["a"]?["x"] == nil)
    #expect(value.members?.map(\.key) == ["b", "a", "b"])
    #expect(value["a"]?.elements?.count == 3)
    #expect(value.text == #"{"b":1,"a":[true,null,"x"],"b":2.50}"#)
  }

  @Test func `members whose names only look alike are two`() throws {
    var value = try JSONValue(parsing: #"{"é":1,"e\u0301":2,"userKey":3}"#)
    #expect(value["é"] == 1 && value["e\u{301}"] == 2 && value["user\u{212A}ey"] == nil)
    value.set("é", 4)
    value.set("e\u{301}", nil)
    value.merge(["user\u{212A}ey": 5])
    #expect(value.text == #"{"é":4,"userKey":3,"user\#u{212A}ey":5}"#)
    #expect(JSONValue.string("K") != "\u{212A}" && (["é": 1] as JSONValue) != ["e\u{301}": 1])
    let (short, long) = (try #require(JSONPointer("/é")), try #require(JSONPointer("/e\u{301}")))
    #expect(short != long && value[short] == 4 && value[long] == nil)
    #expect(JSONPointer("/~0\u{301}/~1\u{301}")?.description == "/~0\u{301}/~1\u{301}")
  }

  @Test func literalsSpellValues() throws {
    let value: JSONValue = ["a": 1, "b": [true, nil, "x", 1.5], "c": [:]]
    #expect(value.text == #"{"a":1,"b":[true,null,"x",1.5],"c":{}}"#)
    #expect(try JSONValue(parsing: value.text) == value)
  }

  @Test func `an object of Swift values keeps their order, and writes what is missing as null or not at all`() {
    let (count, missing): (Int32, Int64?) = (7, nil)
    let object = JSONValue.object(["z": "x", "count": count, "a": missing, "b": [true], "c": 1.5, "d": Double.nan, "e": JSONValue.null])
    #expect(object.text == #"{"z":"x","count":7,"a":null,"b":[true],"c":1.5,"d":null,"e":null}"#)
    let present = JSONValue.object(present: ["a": missing, "b": UInt64.max, "c": JSONValue.null])
    #expect(present.text == #"{"b":18446744073709551615,"c":null}"#)
    #expect(object.appending(contentsOf: present).members?.map(\.key) == ["z", "count", "a", "b", "c", "d", "e", "b", "c"])
    #expect(present.appending(["f": missing]).text == #"{"b":18446744073709551615,"c":null,"f":null}"#)
  }

  @Test func bigNumbersLoseNoDigit() throws {
    let text = "123456789012345678901234567890.0000000000000000001"
    #expect(try JSONValue(parsing: text).text == text)
    #expect(try JSONValue(parsing: text).integerValue == nil)
    #expect(JSONValue.integer(.max).integerValue == .max)
  }

  @Test(arguments: ["", "x", "1 ", " 1", "01", "1,2", "\"1\"", "[1]", "NaN"])
  func aNumberThatIsNoneIsNeverWritten(_ text: String) {
    #expect(JSONValue.array([.number(text)]).text == "[null]")
    #expect(JSONValue.number(text).integerValue == nil)
    #expect(JSONValue.number(text).doubleValue == nil)
  }

  @Test func invalidAndTooDeepTextsAreRefused() {
    #expect(throws: JSONError(reason: .unexpectedByte, offset: 3)) { try JSONValue(parsing: "[1,]") }
    #expect(throws: JSONError(reason: .trailingBytes, offset: 1)) { try JSONValue(parsing: "1x") }
    #expect(throws: JSONError(reason: .tooDeep, offset: 64)) { try JSONValue(parsing: String(repeating: "[", count: 100_000)) }
  }
}

/// Judges random texts, sound and spoiled, beside Foundation's reader.
///
/// `TESTS_FUZZ_ITERATIONS` sets how many, `TESTS_FUZZ_SEED` runs a failure again.
@Suite struct JSONBesideFoundation {
  private static let environment = ProcessInfo.processInfo.environment
  private static let iterations = environment["TESTS_FUZZ_ITERATIONS"].flatMap { Int($0) } ?? 20_000
  private static let seed = environment["TESTS_FUZZ_SEED"].flatMap { UInt64($0) } ?? .random(in: 0...UInt64.max)

  @Test func theSameTextsAreAcceptedAndReadTheSame() {
    var random = RandomJSON(seed: Self.seed)
    var sound = 0
    for _ in 0..<Self.iterations {
      let text = Array(random.text(of: random.tree()).utf8)
      let bytes = Int.random(in: 0..<4, using: &random.generator) == 0 ? text : random.spoiled(text)
      let ours = bytes.withUnsafeBytes { bytes in Result { try JSONValue(parsing: bytes) } }
      let theirs = Result { try JSONSerialization.jsonObject(with: Data(bytes), options: [.fragmentsAllowed]) }
      switch (ours, theirs) {
      case (.success(let value), .success(let object)):
        sound += 1
        if !isSame(value, object) { fail("read differently", bytes) }
      case (.success(let value), .failure(let error)):
        if !hasHugeNumber(value) { fail("only Foundation refuses: \(error)", bytes) }
      case (.failure(let error), .success):
        if !isKnownLeniency(bytes, error) { fail("only the scanner refuses: \(error)", bytes) }
      case (.failure, .failure): break
      }
    }
    #expect(sound >= Self.iterations / 10)
  }

  private func fail(_ what: String, _ bytes: [UInt8]) {
    Issue.record("TESTS_FUZZ_SEED=\(Self.seed): \(what): \(String(decoding: bytes, as: UTF8.self).debugDescription)")
  }

  /// Foundation takes texts with zeros among their first bytes, or with a byte order mark, for UTF-16 and UTF-32, and it allows a comma
  /// at the end of an array or an object.
  private func isKnownLeniency(_ bytes: [UInt8], _ error: any Error) -> Bool {
    if bytes.prefix(4).contains(where: { $0 == 0 || $0 >= 0xEF }) { return true }
    guard let offset = (error as? JSONError)?.offset, offset < bytes.count, bytes[offset] | 0x20 == UInt8(ascii: "}") else { return false }
    return bytes[..<offset].last { $0 > 0x20 } == UInt8(ascii: ",")
  }

  private func isSame(_ value: JSONValue, _ object: Any) -> Bool {
    switch value {
    case .null: return object is NSNull
    case .bool(let value): return (object as? NSNumber)?.boolValue == value
    case .string(let text): return hasByteOrderMark(text) || (object as? String).map { Array($0.utf8) == Array(text.utf8) } ?? false
    case .number:
      guard let number = object as? NSNumber else { return false }
      if let integer = value.integerValue, number.int64Value == integer { return true }
      guard let double = value.doubleValue else { return false }
      // Foundation's value of 873.5062425066196E92 is not the nearest one; `JSONScannerStepTests` shows that ours is.
      return abs(number.doubleValue - double) <= abs(double) * 1e-14
    case .array(let elements):
      guard let array = object as? [Any], array.count == elements.count else { return false }
      return zip(elements, array).allSatisfy { isSame($0, $1) }
    case .object(let members):
      guard let dictionary = object as? [String: Any] else { return false }
      // Foundation compares names by canonical equivalence and keeps one of several: those cannot be compared.
      guard dictionary.count == members.count else { return Set(members.map(\.key)).count < members.count }
      return members.allSatisfy { member in
        hasByteOrderMark(member.key) || dictionary[member.key].map { isSame(member.value, $0) } ?? false
      }
    }
  }

  /// Foundation loses U+FEFF behind an escape.
  private func hasByteOrderMark(_ text: String) -> Bool { text.unicodeScalars.contains("\u{FEFF}") }

  private func hasHugeNumber(_ value: JSONValue) -> Bool {
    switch value {
    case .number: value.doubleValue == nil
    case .array(let elements): elements.contains { hasHugeNumber($0) }
    case .object(let members): members.contains { hasHugeNumber($0.value) }
    default: false
    }
  }
}
