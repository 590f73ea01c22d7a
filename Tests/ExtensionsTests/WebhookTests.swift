import Cryptography
import EventLoop
import Glibc
import JSON
import Notifications
import Synchronization
import TestSupport
import Testing

@testable import Extensions

/// A team's own service: what it answers is shown, and whatever else it does ends as it is documented.
@Suite struct WebhookTests {
  private static let secret = [UInt8](repeating: 7, count: 32)
  private static let next = [UInt8](repeating: 8, count: 64)

  /// A folder with a file of keys.
  private static func withKeys(_ text: String? = nil, _ body: (String) async throws -> Void) async throws {
    func key(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { Base64.encode(url: $0) } }
    let keys = text ?? #"{"keys":[{"id":"new","key":"\#(key(next))"},{"id":"old","key":"\#(key(secret))"}]}"#
    try await TestFolder.with(["keys.json": keys]) { try await body($0.path) }
  }

  private static func file(_ folder: String, _ settings: String) throws -> ExtensionsFile {
    let text = #"{"applications":{"com.example.shop":[{"name":"ask","use":"webhook","keys":"keys.json",\#(settings)}]}}"#
    return try ExtensionsFile(parsing: Array(text.utf8), in: folder)
  }

  /// What becomes of a notification at a service that answers like this.
  private static func ask(
    settings: String = #""budget":30000,"timeout":30000"#, _ answer: @escaping @Sendable (String) -> ScriptedServer.Answer,
    _ body: @escaping @Sendable (ExtensionRun, [String]) throws -> Void
  ) async throws {
    try await withKeys { folder in
      try await ScriptedServer.with(answer) { server, port in
        let file = try Self.file(
          folder, #""url":"http://127.0.0.1:\#(port)/ask","plaintext":true,"networks":["127.0.0.0/8"],\#(settings)"#)
        let chain = try #require(file.chain(application: NameHash.hash("com.example.shop")))
        guard case .called(let definition) = chain.steps[0].work else { throw Expectation.isCalled }
        try await ExtensionCallsTests.Lane.with { lane in
          let run = await lane.pass([definition])
          try body(run, await server.requests)
        }
      }
    }
  }

  private final class Counter: Sendable {
    private let value = Atomic(0)
    func next() -> Int { value.add(1, ordering: .relaxed).newValue }
  }

  private enum Expectation: Error { case isCalled }

  private static func reply(_ status: String = "200 OK", _ body: String, _ more: String = "") -> ScriptedServer.Answer {
    .reply("HTTP/1.1 \(status)\r\ncontent-length: \(body.utf8.count)\r\n\(more)\r\n\(body)")
  }

  @Test func whatItAnswersIsShown() async throws {
    try await Self.ask({ _ in Self.reply(body: #"{"payload":{"aps":{"alert":"Changed"}}}"#) }) { run, _ in
      #expect(run.outcomes.map(\.state) == [.modified])
      #expect(run.content.body == "Changed")
    }
    try await Self.ask({ _ in Self.reply(body: #"{"patch":{"aps":{"alert":{"subtitle":"more"}}}}"#) }) { run, _ in
      #expect((run.content.title, run.content.subtitle) == ("News", "more"))
    }
    try await Self.ask({ _ in .reply("HTTP/1.1 204 No Content\r\n\r\n") }) { run, _ in
      #expect(run.outcomes.map(\.state) == [.unchanged])
    }
  }

  private static func reply(body: String) -> ScriptedServer.Answer { reply("200 OK", body) }

  @Test func itIsToldWhatItNeedsAndCanTellWhoAsks() async throws {
    let began = WallClock.seconds()
    try await Self.ask({ _ in .reply("HTTP/1.1 204 No Content\r\n\r\n") }) { _, requests in
      let parts = try #require(requests.first).split(separator: "\r\n\r\n", maxSplits: 1).map(String.init)
      var headers: [String: String] = [:]
      for line in parts[0].split(separator: "\r\n").dropFirst() {
        let field = line.split(separator: ":", maxSplits: 1).map { $0.trimmingPrefix(" ") }
        headers[field[0].lowercased()] = String(field[1])
      }
      #expect(parts[0].hasPrefix("POST /ask HTTP/1.1"))
      let message = try JSONValue(parsing: parts[1])
      #expect(message["application"] == "com.example.shop")
      #expect(message["payload"]?["aps"]?["alert"]?["title"] == "News")
      let trace = ExtensionCallsTests.Lane.trace
      #expect(message["traceparent"]?.stringValue == trace && headers["traceparent"] == trace)
      let id = try #require(headers["webhook-id"])
      #expect(id == "\(try #require(message["id"]?.stringValue))_0")
      let time = try #require(headers["webhook-timestamp"].flatMap { Int64($0) })
      #expect((began...WallClock.seconds()).contains(time))
      #expect(headers["webhook-key-id"] == "new old")
      let signed = Array("\(id).\(time).\(parts[1])".utf8)
      let expected = [Self.next, Self.secret].map { key in
        "v1," + signed.withUnsafeBytes { HMACKey(key).authenticationCode($0) }.withUnsafeBytes { Base64.encode($0) }
      }
      #expect(headers["webhook-signature"] == expected.joined(separator: " "))
    }
  }

  @Test(arguments: [
    ("500 Internal Server Error", "", "the status 500"), ("302 Found", "", "the status 302"), ("200 OK", "nonsense", "something else"),
    ("200 OK", "[]", "something else"), ("200 OK", #"{"payload":1}"#, "something else"),
    ("200 OK", #"{"payload":{},"patch":{}}"#, "something else"), ("200 OK", #"{"content":{}}"#, "something else"),
    ("200 OK", #"{"payload":{}}"#, "the result"), ("200 OK", #"{"patch":{"aps":{"alert":null}}}"#, "no extension suppresses"),
    ("200 OK", #"{"patch":{"x":"\#(String(repeating: "x", count: 20_000))"}}"#, "16384"),
    ("200 OK", String(repeating: "[", count: 100_000), "something else"), ("200 OK", String(repeating: " ", count: 200_000), "131072"),
  ])
  func whatItMustNotAnswerLeavesTheContentAsItWas(_ status: String, _ body: String, _ reason: String) async throws {
    try await Self.ask({ _ in Self.reply(status, body, "location: /other\r\n") }) { run, requests in
      #expect(run.outcomes.map(\.state) == [.failed])
      #expect(run.content.title == "News")
      #expect(run.outcomes[0].failure?.reason.contains(reason) == true, "\(run.outcomes)")
      #expect(requests.count == 1)
    }
  }

  @Test func oneThatIsBusyIsAskedAgainWithTheSameKey() async throws {
    let asked = Counter()
    try await Self.ask({ _ in
      switch asked.next() {
      case 1: .last("")
      case 2: Self.reply("503 Service Unavailable", "", "retry-after: 0\r\n")
      default: Self.reply(body: #"{"patch":{"aps":{"thread-id":"t"}}}"#)
      }
    }) { run, requests in
      #expect(run.outcomes.map(\.state) == [.modified])
      let ids = requests.compactMap { $0.split(separator: "\r\n").first { $0.hasPrefix("webhook-id") } }
      #expect(ids.count == 3)
      #expect(Set(ids).count == 1)
    }
  }

  @Test func oneThatStaysBusyIsAskedAsOftenAsTheFileSays() async throws {
    try await Self.ask(
      settings: #""attempts":2,"budget":30000,"timeout":30000"#, { _ in Self.reply("503 Service Unavailable", "", "retry-after: 0\r\n") }
    ) {
      run, requests in
      #expect(run.outcomes.map(\.state) == [.failed])
      #expect(requests.count == 2)
    }
  }

  @Test func oneThatHangsIsGivenUpWhenTheBudgetEnds() async throws {
    try await Self.ask(settings: #""budget":200,"timeout":30000"#, { _ in .silence }) { run, _ in
      #expect(run.outcomes.map(\.state) == [.timedOut])
      #expect(run.content.title == "News")
    }
    try await Self.ask(settings: #""attempts":1,"timeout":200,"budget":30000"#, { _ in .silence }) { run, _ in
      #expect(run.outcomes.map(\.state) == [.failed])
    }
  }

  @Test func oneThatSendsWithoutEndIsCutOff() async throws {
    try await Self.ask({ _ in .endless("HTTP/1.1 200 OK\r\n\r\n", then: String(repeating: "x", count: 10_000)) }) { run, _ in
      #expect(run.outcomes.map(\.state) == [.failed])
    }
  }

  @Test func itsConnectionIsUsedAgain() async throws {
    try await Self.withKeys { folder in
      try await ScriptedServer.with({ _ in .reply("HTTP/1.1 204 No Content\r\n\r\n") }) { server, port in
        let file = try Self.file(
          folder,
          #""url":"http://127.0.0.1:\#(port)/","plaintext":true,"networks":["127.0.0.0/8"],"budget":30000,"timeout":30000"#)
        guard case .called(let definition)? = file.all.first?.steps[0].work else { throw Expectation.isCalled }
        try await ExtensionCallsTests.Lane.with { lane in
          for _ in 0..<5 { #expect(await lane.pass([definition]).outcomes.map(\.state) == [.unchanged]) }
        }
        #expect(await server.connections == 1)
      }
    }
  }

  @Test(arguments: ["127.0.0.1", "10.1.2.3:8080", "[::1]", "[fd00::1]", "localhost", "ask.localhost", "169.254.169.254"])
  func `a host that could never be connected to is refused with the file, unless its network is admitted`(_ host: String) async throws {
    try await Self.withKeys { folder in
      let url = #""url":"http://\#(host)/","plaintext":true"#
      let error = #expect(throws: FieldError.self) { _ = try Self.file(folder, url) }
      #expect(error?.field.hasSuffix("[0].url") == true)
      #expect(error?.rule.contains("must not be connected to") == true, "\(error.map { "\($0)" } ?? "")")
      #expect(error?.rule.contains(#""networks" must admit it"#) == true)
      let networks = #""networks":["127.0.0.0/8","10.0.0.0/8","::1","fd00::/8","169.254.169.254"]"#
      #expect(throws: Never.self) { _ = try Self.file(folder, url + "," + networks) }
    }
  }

  @Test func `a file of certificates without a certificate is refused`() throws {
    let keys = #"{"keys":[{"id":"a","key":"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"}]}"#
    try TestFolder.with(["keys.json": keys, "ca.pem": "-----BEGIN PRIVATE KEY-----\n"]) { folder in
      let settings = #""url":"https://e.com/","certificates":"ca.pem""#
      let error = #expect(throws: FieldError.self) { _ = try Self.file(folder.path, settings) }
      #expect(error?.rule == "\(folder.path)/ca.pem: it has no certificate in PEM")
      try folder.write("ca.pem", "-----BEGIN CERTIFICATE-----\n")
      #expect(throws: Never.self) { _ = try Self.file(folder.path, settings) }
    }
  }

  @Test(arguments: [
    (#""url":"http://example.com/""#, #"[0].url: http://example.com"#), (#""url":"https://""#, "[0].url: This must be a URL"),
    (#""url":"nonsense""#, "[0].url: This must be a URL"), (#""url":1"#, "[0].url: This must be a text"),
    (#""url":"https://user:secret@example.com/""#, "[0].url:"),
    (#""url":"https://e.com/","budget":0"#, "[0].budget: This must be a whole number"),
    (#""url":"https://e.com/","budget":30001"#, "[0].budget"), (#""url":"https://e.com/","concurrency":0"#, "[0].concurrency"),
    (#""url":"https://e.com/","breaker":-1"#, "[0].breaker"), (#""url":"https://e.com/","unfinished":"x""#, "[0].unfinished"),
    (#""url":"https://e.com/","timeout":"1""#, "[0].timeout"), (#""url":"https://e.com/","attempts":11"#, "[0].attempts"),
    (#""url":"https://e.com/","networks":[]"#, "[0].networks: This must be a list"),
    (#""url":"https://e.com/","networks":["x"]"#, "[0].networks"),
    (#""url":"https://e.com/","plaintext":1"#, "[0].plaintext: This must be true or false."),
    (#""url":"https://e.com/","certificates":"none.pem""#, "[0].certificates"), (#""url":"https://e.com/","retries":1"#, "no such setting"),
    (#""budget":1000"#, "[0].url: This member is required."),
  ])
  func aWrongSettingIsRefusedWithItsPlaceAndRule(_ settings: String, _ expected: String) async throws {
    try await Self.withKeys { folder in
      let error = #expect(throws: FieldError.self) { _ = try Self.file(folder, settings) }
      #expect(error.map { "\($0)".contains(expected) } == true, "\(error.map { "\($0)" } ?? "")")
      #expect(error.map { "\($0)".contains("secret") } == false)
    }
  }

  @Test(arguments: [
    (#"{"keys":[]}"#, "array of 1 to 2 keys"), (#"{"keys":[{"id":"a","key":"AAAA"}]}"#, "32 to 64 bytes"), ("{", "byte 1"),
    (#"{"keys":[{"id":"a b","key":"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc"}]}"#, "visible ASCII"),
  ])
  func aWrongFileOfKeysIsRefusedAndNoKeyShown(_ text: String, _ expected: String) async throws {
    try await Self.withKeys(text) { folder in
      let error = #expect(throws: FieldError.self) { _ = try Self.file(folder, #""url":"https://e.com/""#) }
      #expect(error.map { "\($0)".contains(expected) } == true, "\(error.map { "\($0)" } ?? "")")
      #expect(error.map { "\($0)".contains("BwcH") } == false)
    }
  }

  @Test func whatIsAskedOnceStandsBeforeWhatDependsOnTheLocale() throws {
    #expect(!ExtensionChain.isInOrder([Self.localized, Self.called]))
    #expect(ExtensionChain.isInOrder([Self.called, Self.localized]))
    let chain = ExtensionChain(application: "a", steps: [Self.called, Self.localized])
    #expect((chain.called.count, chain.immediate.count) == (1, 1))
  }

  private struct Localized: ImmediateExtension {
    func change(_ content: inout MutableContent, of request: ExtensionRequest) -> ExtensionFailure? { nil }
    var usesLocale: Bool { true }
  }
  private static let localized = ExtensionChain.Step(name: "texts", work: Localized())
  private static let called = ExtensionChain.Step(
    name: "ask", work: .called(ExtensionDefinition { _ in ExtensionCallsTests.Told { $1.content } }))
}
