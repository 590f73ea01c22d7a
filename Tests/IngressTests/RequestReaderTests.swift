import HTTP
import JSON
import Notifications
import TestSupport
import Testing

@testable import Ingress

/// Which objects are requests, and what the others are told.
@Suite struct RequestReaderTests {
  private static let shop = Publisher(
    token: PublisherToken(
      applications: ["com.example.shop"], targets: [.user], operations: [.notify, .remove], publisher: "shop", expiration: 1),
    identity: "shop")

  private static func read(_ object: String, of publisher: Publisher = Publisher(), trace: String? = nil) throws
    -> RequestReader.Admitted
  {
    var reader = RequestReader(RequestLimits())
    return try Array(object.utf8).withUnsafeBytes { try reader.read($0, of: publisher, trace: trace, now: 1_000_000) }
  }

  private static func refusal(_ object: String, of publisher: Publisher = Publisher()) -> RequestAnswer? {
    do { _ = try read(object, of: publisher) } catch { return error as? RequestAnswer }
    return nil
  }

  @Test func anObjectBecomesARecord() throws {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    let admitted = try Self.read(
      #"{"target":"user:ada","app":"com.example.shop","id":"6F0C1A2E-0A4B-4C8E-9D52-3F6F6A9B1C11","title":"Order"}"#, trace: trace)
    #expect(admitted.facts.application == "com.example.shop" && admitted.facts.operation == .notify && !admitted.facts.isForDevice)
    #expect(
      admitted.request.headers.map { "\($0.name): \($0.value)" } == [
        "target: user:ada", "apns-id: 6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11", "apns-topic: com.example.shop", "traceparent: \(trace)",
      ])
    #expect(admitted.request.key == Array("user:ada".utf8))
  }

  /// More headers than a request may have.
  private static let many = (0...100).map { "\"apns-\($0)\":\"\"" }.joined(separator: ",")

  @Test(arguments: [
    ("", "body", 400), ("[]", "body", 400), ("{", "body", 400), ("{} {}", "body", 400),
    (#"{"target":"user:a","app":"a.b"}"#, "body", 400), (#"{"target":5,"app":"a.b","title":"t"}"#, "target", 400),
    (#"{"target":"user:a","target":"user:b","app":"a.b","title":"t"}"#, "target", 400),
    (#"{"target":"user:a","app":"a.b","title":"t","headers":{"apns-topic":"c.d"}}"#, "headers", 400),
    (#"{"headers":{"Apns-Topic":"c.d"},"target":"user:a","app":"a.b","title":"t"}"#, "app", 400),
    (#"{"target":"user:a","app":"a.b","title":"t","headers":{"x":"1","x":"2"}}"#, "headers", 400),
    (#"{"target":"user:a","app":"a.b","title":"t","custom":{"k":1,"k":2}}"#, "custom", 400),
    (#"{"target":"user:a","app":"a.b","title":"t","headers":{"Carillon-Origin":"{}"}}"#, "carillon-origin", 400),
    (#"{"target":"user:a","app":"a.b","title":"t","headers":{"carillon-anything":"1"}}"#, "carillon-anything", 400),
    (#"{"target":"user:a","app":"a.b","title":"t","headers":{"carillon-origin\u0000":"1"}}"#, "headers", 400),
    (#"{"target":"user:a","app":"a.b","title":"t","headers":{"apns-topic\u0000x":"c.d"}}"#, "headers", 400),
    (#"{"target":"user:a","app":"a.b","title":"t","carillon-origin":"{}"}"#, "carillon-origin", 400),
    (#"{"target":"user:a","app":"a.b","aps":{"alert":"x"}}"#, "aps", 400), (#"{"app":"a.b","title":"t"}"#, "target", 400),
    (#"{"target":"user:a","title":"t"}"#, "apns-topic", 400), (#"{"target":"user:a","app":"a b","title":"t"}"#, "apns-topic", 400),
    (#"{"target":"channel:a","app":"a.b","title":"t"}"#, "target", 400),
    (#"{"target":"user:a","app":"a.b","id":"7","title":"t"}"#, "apns-id", 400),
    (#"{"target":"user:a","app":"a.b","operation":"remove","identifiers":["x","y"]}"#, "identifiers", 400),
    (#"{"target":"user:a","app":"a.b","title":"t","trigger":{"type":"never"}}"#, "trigger.type", 400),
    (#"{"target":"user:a","app":"a.b","payload":{"aps":{"alert":"\#(String(repeating: "x", count: 5_000))"}}}"#, "payload", 413),
    (#"{"target":"user:a","app":"a.b","title":"t","headers":{"x":"\#(String(repeating: "x", count: 16_384))"}}"#, "headers", 413),
    (#"{"target":"user:a","app":"a.b","title":"t","headers":{\#(many)}}"#, "headers", 413),
  ])
  func `an object that is no request is told field and rule`(object: String, field: String, status: Int) {
    let answer = Self.refusal(object)
    #expect(answer?.field == field && answer?.status.rawValue == status && answer?.rule?.isEmpty == false, "\(String(describing: answer))")
  }

  /// A removal with a bound, of delivered notifications or of location requests that wait.
  private static func pending(_ scope: String) -> String {
    #""app":"com.example.shop","operation":"remove","payload":{"identifiers":["c"],"scope":"\#(scope)","notNewerThan":"\#(bound)"}"#
  }

  private static let bound = Revision(SourcePosition(partition: 0, offset: 7, timestamp: 1_000)).description

  @Test(arguments: [
    (#""app":"com.example.shop","title":"t""#, nil), (#""app":"com.example.shop.voip","push-type":"voip","title":"t""#, nil),
    (#""app":"com.example.shop.voip","title":"t""#, "apns-topic"), (#""app":"com.example","title":"t""#, "apns-topic"),
    (#""app":"com.example.shop.other.voip","push-type":"voip","title":"t""#, "apns-topic"),
    (#""app":"com.example.shop","operation":"cancel","collapse-id":"c""#, "operation"),
    (#""app":"com.example.shop","operation":"remove","collapse-id":"c""#, nil),
    (pending("pending"), "operation"), (pending("delivered"), nil),
    (#""app":"com.example.other","operation":"remove","all":true"#, "apns-topic"),
  ])
  func `a publisher may do what its token says`(members: String, field: String?) {
    let answer = Self.refusal(#"{"target":"user:a",\#(members)}"#, of: Self.shop)
    #expect(answer?.field == field && (field == nil || answer?.status == .forbidden), "\(String(describing: answer))")
    let device = Self.refusal(#"{"target":"device:\#(String(repeating: "ab", count: 32))",\#(members)}"#, of: Self.shop)
    #expect(device != nil, "the token is for people")
  }

  @Test func anyBytesHaveAnAnswer() {
    let corpus = [
      #"{"target":"user:ada","app":"com.example.shop","title":"Order","headers":{"x-y":"z"},"custom":{"k":[1]}}"#,
      #"{"target":"user:a","app":"a.b","payload":{"aps":{"alert":{"title":"x"}}},"trigger":{"type":"timeInterval","timeInterval":60}}"#,
      #"{"target":"user:a","app":"a.b","operation":"remove","identifiers":["x"],"expiration":"5m","badge":1}"#,
    ].map { Array($0.utf8) }
    var reader = RequestReader(RequestLimits())
    let failures = Fuzz("publishers' objects", corpus: corpus, tokens: ["\"headers\":{", "carillon-", "\\u0000", "apns-topic", "null"]).run
    {
      bytes, _ in
      do throws(RequestAnswer) {
        let headers = try reader.read(bytes, of: Publisher(), trace: nil, now: 1_000_000).request.headers
        let isForbidden = headers.contains { $0.name.lowercased().hasPrefix("carillon-") || $0.name.utf8.contains(0) }
        return isForbidden ? "a forbidden header" : nil
      } catch {
        return error.rule?.isEmpty == false && error.field != nil ? nil : "an answer without a field or a rule"
      }
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
