import Extensions
import JSON
import Notifications
import Testing

@Suite struct SetAndCopyTests {
  private let request = ExtensionRequest(
    id: NotificationID(high: 1, low: 2), identifier: "i", application: "com.example.shop", expiration: 0)

  private func chain(_ settings: String) throws -> ExtensionChain {
    let file = try ExtensionsFile(parsing: Array(#"{"applications":{"com.example.shop":[\#(settings)]}}"#.utf8))
    return try #require(file.chain(application: NameHash.hash("com.example.shop")))
  }

  private func run(_ settings: String, _ payload: JSONValue) throws -> ExtensionRun {
    var run = ExtensionRun(MutableContent(payload: payload))
    run.pass(try chain(settings).immediate, of: request, ContentRules())
    return run
  }

  @Test func membersAreSetCopiedAndPrefixed() throws {
    let run = try run(
      #"{"name":"mark","use":"set-and-copy","set":{"/aps/sound":"default"},"copy":{"/aps/thread-id":"/order/id"},"prefix":{"/aps/alert/title":"[modified] "}}"#,
      ["aps": ["alert": ["title": "Hello"], "mutable-content": 1], "order": ["id": 17]])
    #expect(run.outcomes.map(\.state) == [.modified])
    let written = try #require(run.written)
    #expect(
      String(decoding: written.payload, as: UTF8.self)
        == #"{"aps":{"alert":{"title":"[modified] Hello"},"mutable-content":1,"sound":"default","thread-id":"17"},"order":{"id":17}}"#)
  }

  @Test func anAlertThatIsATextGetsAPrefixAsItsBody() throws {
    let run = try run(
      #"{"name":"mark","use":"set-and-copy","set":{"/aps/alert/title":"News"},"prefix":{"/aps/alert/body":"> "}}"#,
      ["aps": ["alert": "Hello"]])
    #expect(run.content.payload == ["aps": ["alert": ["body": "> Hello", "title": "News"]]])
  }

  @Test func whatIsNotThereIsNeitherCopiedNorPrefixed() throws {
    let payload: JSONValue = ["aps": ["alert": ["body": "Hello"]]]
    let run = try run(
      #"{"name":"mark","use":"set-and-copy","copy":{"/aps/thread-id":"/order/id"},"prefix":{"/aps/alert/title":"> "}}"#, payload)
    #expect(run.outcomes.map(\.state) == [.unchanged])
    #expect(run.content.payload == payload)
    #expect(run.written == nil)
  }

  @Test(arguments: [
    (#""set":{"/aps/alert":{"title":""}}"#, "no title, subtitle or body"),
    (#""set":{"/aps/badge":"one"}"#, "aps.badge"),
    (#""set":{"/aps/alert/body/x":1}"#, "no place /aps/alert/body/x"),
    (#""set":{"/aps":1}"#, "aps"),
  ])
  func whatBreaksARuleLeavesTheContentAsItWas(_ change: String, _ reason: String) throws {
    let payload: JSONValue = ["aps": ["alert": ["body": "Hello"]]]
    let run = try run(#"{"name":"wrong","use":"set-and-copy",\#(change)},{"name":"next","use":"set-and-copy","set":{"/x":1}}"#, payload)
    #expect(run.outcomes.map(\.state) == [.failed, .modified])
    #expect(run.outcomes[0].failure?.reason.contains(reason) == true, "\(run.outcomes[0].failure?.reason ?? "")")
    #expect(run.content.payload["aps"] == payload["aps"])
  }

  @Test func aResultWithMoreBytesThanAPayloadHasIsNotTaken() throws {
    let long = String(repeating: "x", count: 1_000)
    let copies = (0..<17).map { #""/copy\#($0)":"/long""# }.joined(separator: ",")
    let run = try run(#"{"name":"long","use":"set-and-copy","copy":{\#(copies)}}"#, ["aps": ["alert": "Hello"], "long": .string(long)])
    #expect(run.outcomes.map(\.state) == [.failed])
    #expect(run.written == nil)
  }
}
