import JSON
import TestSupport
import Testing

private func setting(_ path: [String], to value: String, in text: String) throws -> String {
  var writer = JSONWriter()
  try Array(text.utf8).withUnsafeBytes { text in
    try Array(value.utf8).withUnsafeBytes { try writer.raw(text, setting: path, to: $0) }
  }
  return writer.text
}

private func removing(_ path: [String], from text: String) throws -> String? {
  var writer = JSONWriter()
  let removed = try Array(text.utf8).withUnsafeBytes { try writer.raw($0, removing: path) }
  if !removed { #expect(writer.text == text) }
  return removed ? writer.text : nil
}

@Suite struct JSONSpliceTests {
  @Test(
    arguments: [
      (
        #" { "aps" : { "alert" : "a" , "badge":1 } , "x":[1, 2] } "#, ["aps", "alert"],
        #" { "aps" : { "alert" : NEW , "badge":1 } , "x":[1, 2] } "#
      ),
      (#"{"a":1}"#, ["a"], #"{"a":NEW}"#), (#"{"a":1}"#, ["b"], #"{"a":1,"b":NEW}"#), (#"{"a":1 }"#, ["b"], #"{"a":1,"b":NEW }"#),
      (#"{}"#, ["b"], #"{"b":NEW}"#), (#"{ }"#, ["b"], #"{"b":NEW }"#), (#"{"a":{}}"#, ["a", "b"], #"{"a":{"b":NEW}}"#),
      (#"{"x":0}"#, ["a", "b", "c"], #"{"x":0,"a":{"b":{"c":NEW}}}"#), (#"{}"#, ["a", "b"], #"{"a":{"b":NEW}}"#),
      (#"{"a":1,"a":2}"#, ["a"], #"{"a":1,"a":NEW}"#), (#"{"a":{"b":1},"a":{"c":2}}"#, ["a", "b"], #"{"a":{"b":1},"a":{"c":2,"b":NEW}}"#),
      (#"{"\u0061":1}"#, ["a"], #"{"\u0061":NEW}"#), (#"{"b":{"a":1},"a":2}"#, ["a"], #"{"b":{"a":1},"a":NEW}"#),
      (#"{}"#, ["q\"\n"], #"{"q\"\n":NEW}"#), (#"[1]"#, [], "NEW"), (#"{"":1}"#, [""], #"{"":NEW}"#),
    ] as [(String, [String], String)])
  func aMemberIsSetAndAllElseStays(_ text: String, _ path: [String], _ expected: String) throws {
    #expect(try setting(path, to: #"{"n": 1}"#, in: text) == expected.replacing("NEW", with: #"{"n": 1}"#))
  }

  @Test(
    arguments: [
      (#"{"a":1}"#, ["a"], "{}"), (#"{ "a" : 1 }"#, ["a"], "{  }"), (#"{"a":1,"b":2,"c":3}"#, ["a"], #"{"b":2,"c":3}"#),
      (#"{"a":1,"b":2,"c":3}"#, ["b"], #"{"a":1,"c":3}"#), (#"{"a":1,"b":2,"c":3}"#, ["c"], #"{"a":1,"b":2}"#),
      (#"{"a":1 , "b":2}"#, ["b"], #"{"a":1 }"#), (#"{"a":1 , "b":2}"#, ["a"], #"{  "b":2}"#),
      (#"{"a":1,"b":2,"a":3}"#, ["a"], #"{"b":2}"#), (#"{"a":1,"a":2,"b":3,"a":4,"c":5}"#, ["a"], #"{"b":3,"c":5}"#),
      (#"{"a":1,"a":2}"#, ["a"], "{}"), (#"{"b":0,"a":1,"a":2,"c":[ ]}"#, ["a"], #"{"b":0,"c":[ ]}"#),
      (#"{"p":{"a":1,"b":{"a":2}},"a":3}"#, ["p", "a"], #"{"p":{"b":{"a":2}},"a":3}"#), (#"{"p":{"a":1},"p":{"b":2}}"#, ["p", "a"], nil),
      (#"{"a":1}"#, ["b"], nil), ("{}", ["a"], nil), ("[1]", ["a"], nil), (#"{"a":"text"}"#, ["a", "b"], nil),
      (#"{"\u0061":[1,{"x":"y"}]}"#, ["a"], "{}"),
    ] as [(String, [String], String?)])
  func aMemberIsRemovedWithAllItsRepetitionsAndAllElseStays(_ text: String, _ path: [String], _ expected: String?) throws {
    #expect(try removing(path, from: text) == expected)
  }

  @Test func whatCannotBeChangedIsRefusedAndNothingIsWritten() throws {
    #expect(throws: JSONError(reason: .notAnObject, offset: 5)) { try setting(["a", "b"], to: "1", in: #"{"a":[1]}"#) }
    #expect(throws: JSONError(reason: .notAnObject, offset: 0)) { try setting(["a"], to: "1", in: "7") }
    #expect(throws: JSONError(reason: .trailingBytes, offset: 8)) { try setting(["a"], to: "1", in: #"{"a":1} 2"#) }
    #expect(throws: JSONError(reason: .truncated, offset: 6)) { try removing(["a"], from: #"{"a":1"#) }
    #expect(throws: JSONError(reason: .misplacedCall, offset: 0)) { try removing([], from: "{}") }
    let deep = String(repeating: #"{"a":"#, count: 65) + "1" + String(repeating: "}", count: 65)
    #expect(throws: JSONError(reason: .tooDeep, offset: 320)) { try setting(Array(repeating: "a", count: 65), to: "1", in: deep) }
    var writer = JSONWriter()
    writer.openArray()
    Array("{]".utf8).withUnsafeBytes { text in
      _ = #expect(throws: JSONError.self) { try writer.raw(text, removing: ["a"]) }
    }
    writer.closeArray()
    #expect(writer.text == "[]")
  }

  @Test func aSplicedTextIsOneValueToTheWriter() throws {
    var writer = JSONWriter()
    writer.openArray()
    try Array(#"{"a":1}"#.utf8).withUnsafeBytes { text in
      try Array("2".utf8).withUnsafeBytes { value in
        try writer.raw(text, setting: ["a"], to: value)
        try writer.raw(text, setting: ["b"], to: value)
        try writer.raw(text, setting: ["c", "d"], to: value)
        try writer.raw(text, removing: ["a"])
        try writer.raw(text, removing: ["b"])
        try writer.raw(text, setting: [], to: value)
      }
    }
    writer.closeArray()
    #expect(writer.text == #"[{"a":2},{"a":1,"b":2},{"a":1,"c":{"d":2}},{},{"a":1},2]"#)
  }

  /// Against random documents: the changed text parses to the changed tree, and what comes before and behind the change is the source.
  @Test func everyOtherByteOfRandomTextsStays() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = RandomJSON(seed: seed)
    var changes = 0
    for _ in 0..<10_000 {
      let tree = random.tree(depth: 5)
      guard case .object(let members) = tree, let member = members.randomElement(using: &random.generator) else { continue }
      let inner = member.value.members?.randomElement(using: &random.generator)
      let path = [member.key] + (inner.map { [$0.key] } ?? [])
      let source = random.text(of: tree)
      let old = inner?.value ?? member.value
      changes += 1
      let same = try setting(path, to: "0", in: source)
      let marked = try setting(path, to: "\u{22}\u{1F514}new\u{22}", in: source)
      let parts = marked.split(separator: "\u{22}\u{1F514}new\u{22}", maxSplits: 1, omittingEmptySubsequences: false)
      try #require(parts.count == 2, "seed \(seed)")
      #expect(source.hasPrefix(parts[0]) && source.hasSuffix(parts[1]) && same == parts[0] + "0" + parts[1], "seed \(seed)")
      let between = source.utf8.dropFirst(parts[0].utf8.count).dropLast(parts[1].utf8.count)
      #expect(try JSONValue(parsing: String(Substring(between))) == old, "seed \(seed)")
      let removed = try #require(try removing(path, from: source), "seed \(seed)")
      var remaining = members
      let place = try #require(members.firstIndex { $0.key == member.key })
      if let inner {
        remaining[place].value = .object(member.value.members?.filter { $0.key != inner.key } ?? [])
      } else {
        remaining.remove(at: place)
      }
      #expect(try JSONValue(parsing: removed) == .object(remaining), "seed \(seed)")
    }
    #expect(changes > 500)
  }
}
