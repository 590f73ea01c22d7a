import JSON
import Notifications
import Testing
import TestSupport

@Suite struct NameTests {
  /// Texts that Unicode calls equivalent to others of these, and some that are only near.
  private static let texts = [
    "", "K", "\u{212A}", "k", "Kim", "\u{212A}im", "é", "e\u{301}", "éa", "e\u{301}a", "e", "Å", "\u{212B}", "A\u{30A}", ";", "\u{37E}",
    "`",
    "\u{1FEF}", "\u{AC00}", "\u{1100}\u{1161}", "a\u{323}\u{307}", "a\u{307}\u{323}", "\u{FB01}", "fi", "\0", "😀", "\u{FFFF}",
    String(repeating: "é", count: 20), String(repeating: "e\u{301}", count: 20),
  ]

  @Test func `two names are one exactly when their bytes are the same`() {
    for left in Self.texts {
      for right in Self.texts {
        let (one, other) = (Name(left), Name(right))
        let isSame = Array(left.utf8) == Array(right.utf8)
        #expect((one == other) == isSame, "\(left.utf8.map { $0 }) and \(right.utf8.map { $0 })")
        #expect((one < other) == left.utf8.lexicographicallyPrecedes(right.utf8))
        #expect(withBytes(right, one.equals) == isSame)
      }
    }
    #expect(Set(Self.texts.map { Name($0) }).count == Self.texts.count && Set(Self.texts).count < Self.texts.count)
    #expect(Name("\u{212A}im").description == "\u{212A}im" && Name("user:a\u{301}").starts(with: "user:"))
  }

  /// Beside a dictionary by bytes.
  @Test(arguments: 0..<(isComplete ? 20 : 4)) func `a dictionary of names finds what one of byte arrays finds`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var (names, bytes): ([Name: Int], [[UInt8]: Int]) = ([:], [:])
    for number in 0..<300 {
      let parts = (0..<Int.random(in: 0...3, using: &random)).map { _ in Self.texts.randomElement(using: &random) ?? "" }
      // Appended byte by byte, for a string that is appended to may be changed in no way either.
      let text = String(decoding: parts.flatMap { Array($0.utf8) }, as: UTF8.self)
      #expect(names[Name(text)] == bytes[Array(text.utf8)])
      (names[Name(text)], bytes[Array(text.utf8)]) = (number, number)
    }
    #expect(names.count == bytes.count)
    #expect(names.keys.sorted().map { Array($0.utf8) } == bytes.keys.sorted { $0.lexicographicallyPrecedes($1) })
  }

  @Test func `names of two fields do not run together in a hash`() {
    struct Pair: Hashable { let (one, other): (Name, Name) }
    let pairs: Set<Pair> = [Pair(one: "ab", other: "c"), Pair(one: "a", other: "bc"), Pair(one: "abc", other: "")]
    #expect(pairs.count == 3)
    var hashes: Set<Int> = []
    for pair in pairs { hashes.insert(pair.hashValue) }
    #expect(hashes.count == 3)
  }

  @Test func `categories and actions whose identifiers only look alike are two each`() throws {
    let text = #"""
      {"device":"\#(RequestFixture.token)","application":"a","since":1,"categories":[
        {"identifier":"é","actions":[{"identifier":"K","title":"one"},{"identifier":"\u212a","title":"two","textInput":{}}]},
        {"identifier":"e\u0301","options":["customDismissAction"]}]}
      """#
    let registration = try withBytes(text) { try Registration(json: $0) }
    #expect(registration.categories.count == 2 && registration.categories.first?.actions.count == 2)
    #expect(registration.judge(category: "é", action: NotificationAction.dismissIdentifier, userText: nil) == .silent)
    #expect(registration.judge(category: "e\u{301}", action: NotificationAction.dismissIdentifier, userText: nil) == .event(.dismissed))
    #expect(registration.judge(category: "é", action: "K", userText: nil) == .event(.response))
    #expect(registration.judge(category: "é", action: "\u{212A}", userText: nil) == .refused(.missingUserText, field: "userText"))
  }
}
