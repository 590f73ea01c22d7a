import Ingress
import Notifications
import Testing
import Worker

@testable import Command

/// One line of a file of requests, and what it takes from the flags.
@Suite struct RequestLineTests {
  /// What a line says.
  static func draft(_ line: String, now: Int64 = 0) throws -> RequestDraft {
    try Array(line.utf8).withUnsafeBytes { try RequestLine.read($0, now: now) }
  }

  /// The records of a line behind these flags; throws why there are none.
  private static func records(_ line: String, _ flags: [String] = ["--app", "com.example", "--body", "B"]) throws -> [RequestToSend] {
    let values = try Typed.values(["publish"] + flags + ["--lines", "-"])
    let draft = try PublishSettings.draft(values, now: 0)
    var source = LineSource(values, draft, RequestLimits(values))
    return try Array(line.utf8).withUnsafeBytes { try source.requests(3, $0, 1_000_000) }
  }

  @Test func `a line has what it says, and the flags have the rest`() throws {
    let one = try #require(
      try Self.records(#"{"target":"user:1","title":"one","collapse-id":"c","priority":10,"expiration":"5m"}"#).first)
    #expect(one.line == 3 && one.value.map { String(decoding: $0, as: UTF8.self) } == #"{"aps":{"alert":{"title":"one","body":"B"}}}"#)
    #expect(
      one.headers.filter { $0.name != "apns-id" }.map { "\($0.name): \($0.value)" } == [
        "target: user:1", "apns-topic: com.example", "apns-collapse-id: c", "apns-expiration: 1300", "apns-priority: 10",
      ])
    let five = try #require(
      try Self.records(#"{"target":"user:5","payload":{"aps": {"alert":"five"},"k":1.50},"app":"com.other","headers":{"x-y":"z"}}"#).first)
    #expect(five.value.map { String(decoding: $0, as: UTF8.self) } == #"{"aps": {"alert":"five"},"k":1.50}"#)
    #expect(five.headers.contains { $0 == ("apns-topic", "com.other") } && five.headers.last?.name == "x-y")
    #expect(try Self.records(#"{"target":"user:7"}"#).count == 1, "the body is that of the flags")
    let ranked = try Self.records(
      #"{"target":"user:8","relevance-score":1}"#, ["--app", "a", "--body", "B", "--interruption-level", "passive"])
    #expect(
      ranked.first?.value.map { String(decoding: $0, as: UTF8.self) }
        == #"{"aps":{"alert":{"body":"B"},"interruption-level":"passive","relevance-score":1.0}}"#)
  }

  @Test(arguments: [
    (#"{"targett":"user:2","title":"two"}"#, "no member 'targett' is known; did you mean 'target'?"), ("not json", "JSON"),
    (#"{"target":"nobody","title":"six"}"#, "BadDeviceToken: target"), (#"{"title":"a","title":"b"}"#, "the member 'title' stands twice"),
    (#"{"target":"user:1","badge":"3"}"#, "'badge' must be a whole number"),
    (#"{"target":"user:1","title":"x","interruption-level":"loud"}"#, "'interruption-level' must be one of active, passive"),
    (#"{"target":"user:1","title":"x","relevance-score":1.01}"#, "'relevance-score' must be a number from 0 to 1"),
    (#"{"target":"user:1","payload":{},"title":"x"}"#, "'payload' is the whole payload"),
    (#"{"target":"user:1","custom":{"aps":1}}"#, "use 'payload' for aps itself"),
    (
      #"{"target":"user:1","operation":"remove","identifiers":["a","b"],"id":"6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"}"#,
      "'id' is one request's"
    ),
  ])
  func `a line that is no request says why`(line: String, error: String) throws {
    let failure = #expect(throws: LineError.self) { try Self.records(line) }
    #expect(failure?.description.contains(error) == true, "it says: \(failure?.description ?? "")")
  }
}
