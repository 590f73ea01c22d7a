import JSON
import Notifications
import Testing

@testable import Extensions

/// What extensions outside the worker are told of attachments, and what they may make of them.
@Suite struct ContentAttachmentTests {
  private static let media = Media(hash: MediaHash(String(repeating: "ab", count: 32))!, type: .jpeg, size: 12)
  private static let stored = ContentAttachment(identifier: "photo", .stored(media))
  private static let named = ContentAttachment(identifier: "clip", url: "https://media.example.com/clip.mp4")
  private static let given = MutableContent(payload: ["aps": ["alert": "News"]], attachments: [stored])

  private static func content(_ answer: String) throws -> MutableContent {
    try ExtensionMessage.content(try JSONValue(parsing: answer), of: given)
  }

  private static func failure(_ answer: String) -> String? {
    do {
      _ = try content(answer)
      return nil
    } catch { return "\(error)" }
  }

  @Test func anAnswerThatSaysNothingOfThemLeavesThem() throws {
    #expect(try Self.content(#"{"payload":{"aps":{"alert":"Other"}}}"#).attachments == [Self.stored])
    #expect(try Self.content(#"{"patch":{"a":1}}"#).attachments == [Self.stored])
  }

  @Test(arguments: [(#""It is on its way""#, "It is on its way"), (#"{"body":"Here"}"#, "Here")])
  func `a patch of the alert's members keeps an alert that is a text as its body`(alert: String, body: String) throws {
    var content = Self.given
    content.payload = try JSONValue(parsing: #"{"aps":{"alert":\#(alert)}}"#)
    let answer = try JSONValue(parsing: #"{"patch":{"aps":{"alert":{"subtitle":"Good morning"}}}}"#)
    let patched = try ExtensionMessage.content(answer, of: content)
    #expect(patched.body == body && patched.subtitle == "Good morning")
    let replaced = try ExtensionMessage.content(try JSONValue(parsing: #"{"patch":{"aps":{"alert":"Other"}}}"#), of: content)
    #expect(replaced.body == "Other")
  }

  @Test func anAnswerMayAddWhatHasAURLAndTakeAway() throws {
    #expect(try Self.content(#"{"attachments":[]}"#).attachments == [])
    let both = try Self.content(#"{"patch":{"a":1},"attachments":[\#(Self.named.object.text),\#(Self.stored.object.text)]}"#)
    #expect(both.attachments == [Self.named, Self.stored] && both.payload["a"] == 1)
    #expect(both.payload["aps"] == Self.given.payload["aps"])
  }

  @Test(arguments: [
    #"{"attachments":1}"#, #"{"attachments":[1]}"#, #"{"attachments":[{"identifier":"x"}]}"#, #"{"attachments":[{"url":"https://a"}]}"#,
    #"{"attachments":[{"identifier":"x","url":7}]}"#, #"{"payload":{},"patch":{}}"#, "{}", "[]", #"{"payload":1}"#, #"{"other":{}}"#,
    #"{"payload":{},"payload":{}}"#,
    #"{"attachments":[{"identifier":"x","hash":"\#(String(repeating: "cd", count: 32))","type":"image/png","size":1}]}"#,
  ])
  func anAnswerThatBreaksARuleIsNone(_ answer: String) { #expect(Self.failure(answer) != nil) }

  /// A hash is a right to read: nobody gets one by guessing.
  @Test func aFileOfTheStoreIsNoneThatItWasNotGiven() {
    let other = Self.stored.object.text.replacing("abab", with: "cdcd")
    #expect(Self.failure(#"{"attachments":[\#(other)]}"#)?.contains("a hash that it was not given") == true)
  }

  private static let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

  @Test func whatAChildIsToldAndAnswersIsReadAgain() throws {
    let id = NotificationID(high: 1, low: 2)
    let request = ExtensionRequest(id: id, identifier: "i", application: "a", expiration: 7, traceparent: Self.trace).named("x")
    let content = MutableContent(payload: Self.given.payload, attachments: [Self.named, Self.stored])
    let read = try #require(ExtensionMessage.notification(ExtensionMessage.object(request, content)))
    #expect(read.content == content && read.request.extensionName == "x" && read.request.traceparent == Self.trace)
    #expect(try ExtensionMessage.content(ExtensionMessage.answer(content), of: Self.given) == content)
  }

  private static func check(_ attachments: [ContentAttachment]) -> String? {
    do {
      _ = try ContentRules().write(MutableContent(payload: given.payload, attachments: attachments))
      return nil
    } catch { return "\(error)" }
  }

  @Test func aResultKeepsTheRules() {
    #expect(Self.check([Self.stored, Self.named]) == nil)
    #expect(Self.check([Self.stored, Self.stored])?.contains("different identifiers") == true)
    let many = (0...NotificationAttachment.maximum).map { ContentAttachment(identifier: "\($0)", .stored(Self.media)) }
    #expect(Self.check(many)?.contains("at most 10") == true)
    #expect(Self.check([ContentAttachment(identifier: "", .stored(Self.media))])?.contains("identifier") == true)
    #expect(Self.check([ContentAttachment(identifier: "x", url: "")])?.contains("URL") == true)
  }

  @Test func whatIsStillAURLGoesToNoDevice() throws {
    let written = try ContentRules().write(MutableContent(payload: Self.given.payload, attachments: [Self.named, Self.stored]))
    #expect(written.attachments.withUnsafeBytes { NotificationAttachment.list($0) }?.map(\.identifier) == ["photo"])
  }

  @Test func aRememberedResultHasItsAttachments() throws {
    let chain = ExtensionChain(application: "a", steps: [])
    let published = MutableContent(payload: Self.given.payload)
    var run = ExtensionRun(published)
    try run.take(Self.given, ContentRules())
    let again = try #require(ExtensionRun(run.bytes(of: chain), of: chain, published: published, ContentRules()))
    #expect(again.content == Self.given && again.written?.attachments == run.written?.attachments)
  }
}
