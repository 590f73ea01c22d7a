import JSON
import TestSupport
import Testing

@testable import Notifications

/// A payload's content as values, and what the scanner finds in the same payload without making any.
@Suite struct NotificationContentTests {
  @Test func `each member of the rule book is read with its type`() throws {
    let payload = #"""
      {"aps":{"alert":{"title":"T","subtitle":"S","body":"B","launch-image":"start","title-loc-key":"TK","title-loc-args":["1"],
       "subtitle-loc-key":"SK","subtitle-loc-args":[],"loc-key":"K","loc-args":["a","b"]},"badge":7,
       "sound":{"critical":1,"name":"siren.caf","volume":0.5},"thread-id":"t","category":"c","target-content-id":"w",
       "filter-criteria":"f","content-available":1,"mutable-content":1,"interruption-level":"passive","relevance-score":0.25},
       "order":{"id":7}}
      """#
    _ = try withBytes(payload) { try PayloadFacts(checking: $0) }
    let content = NotificationContent(payload: Array(payload.utf8))
    #expect([content.title, content.subtitle, content.body] == ["T", "S", "B"])
    #expect(content.localizedTitle == LocalizedText(key: "TK", arguments: ["1"]))
    #expect(content.localizedSubtitle == LocalizedText(key: "SK"))
    #expect(content.localizedBody == LocalizedText(key: "K", arguments: ["a", "b"]))
    #expect(content.launchImageName == "start" && content.badge == 7)
    #expect(content.sound == NotificationSound(name: "siren.caf", isCritical: true, volume: 0.5))
    #expect(content.threadIdentifier == Name("t") && content.categoryIdentifier == Name("c"))
    #expect(content.targetContentIdentifier == Name("w") && content.filterCriteria == "f")
    // A critical sound makes the notification critical, whatever its level says.
    #expect(content.interruptionLevel == .critical && content.relevanceScore == 0.25)
    #expect(content.isContentAvailable && content.isMutable && !content.isBackground)
    #expect(content[userInfo: "order"]?["id"]?.integerValue == 7 && content[userInfo: "aps"] == nil)
  }

  @Test(
    arguments: [
      (#""sound":"default""#, NotificationSound()), (#""sound":"bell.caf""#, NotificationSound(name: "bell.caf")),
      (#""sound":{"volume":0}"#, NotificationSound(volume: 0)), (#""sound":{"critical":0,"name":null}"#, NotificationSound()),
      (#""sound":null"#, nil), (#""alert":"x""#, nil),
    ] as [(String, NotificationSound?)])
  func `a sound is a name, or an object with a name, a flag and a volume`(member: String, sound: NotificationSound?) throws {
    let payload = "{\"aps\":{\(member)}}"
    _ = try withBytes(payload) { try PayloadFacts(checking: $0) }
    #expect(NotificationContent(payload: Array(payload.utf8)).sound == sound)
  }

  @Test func `a text that is a key has the key and its arguments, in a Live Activity too`() {
    let alert: JSONValue = ["title": ["loc-key": "SCORE", "loc-args": ["1"]], "body": ["loc-key": nil], "loc-key": "GOAL"]
    let content = NotificationContent(["aps": ["alert": alert]])
    #expect(content.title == "SCORE" && content.localizedTitle == LocalizedText(key: "SCORE", arguments: ["1"]))
    #expect(content.body == "GOAL" && content.localizedBody == LocalizedText(key: "GOAL"))
  }

  /// The members of random payloads: their names, and values of which most keep the rules.
  private static let values: [(String, [String])] = [
    ("alert", [#""x""#, #""""#, "null", "{}", #"{"title":"t"}"#, #"{"title":""}"#, #"{"loc-key":"k","loc-args":["a"]}"#, #"{"body":7}"#]),
    ("badge", ["0", "7", "2147483647", "-1", "1.5", "null", #""7""#]),
    ("sound", [#""default""#, #""""#, "{}", #"{"critical":1,"name":"a","volume":1}"#, #"{"critical":0}"#, "null", #"{"volume":2}"#]),
    ("category", [#""c""#, #""""#, "null", "7"]), ("thread-id", [#""t""#, "null", "[]"]),
    ("content-available", ["1", "0", "null", "true"]), ("mutable-content", ["1", "0", "null", "2"]),
    ("interruption-level", [#""passive""#, #""active""#, #""time-sensitive""#, #""critical""#, "null", #""loud""#]),
    ("relevance-score", ["0", "1", "0.5", "1e-3", "null", "1.01", "-0.1"]),
    ("unknown", ["1", "null"]),
  ]

  @Test func `what the scanner finds in a payload is what its content has`() throws {
    var random = SeededRandom(seed: 7)
    var (accepted, rejected) = (0, 0)
    for _ in 0..<20_000 {
      let members = Self.values.shuffled(using: &random).prefix(Int.random(in: 0...6, using: &random)).map { name, values in
        "\"\(name)\":\(values.randomElement(using: &random) ?? "null")"
      }
      let payload = "{\"aps\":{\(members.joined(separator: ","))}}"
      let facts: PayloadFacts? = withBytes(payload) { bytes in
        do throws(Rejection) { return try PayloadFacts(checking: bytes) } catch { return nil }
      }
      guard let facts else {
        rejected += 1
        continue
      }
      accepted += 1
      let content = NotificationContent(payload: Array(payload.utf8))
      var expected: PayloadFlags = []
      if content.hasAlert { expected.insert(.alert) }
      if content.isContentAvailable { expected.insert(.contentAvailable) }
      if content.isMutable { expected.insert(.mutableContent) }
      if content.badge != nil { expected.insert(.badge) }
      if content.sound != nil { expected.insert(.sound) }
      expected.level = content.interruptionLevel
      #expect(facts.flags == expected, "\(payload)")
    }
    #expect(accepted > 5_000 && rejected > 5_000)
  }
}
