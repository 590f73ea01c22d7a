import EventLoop
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Operations

/// What the tools read out of the record of a request.
@Suite struct PublishedRequestTests {
  private actor Lane: LoopActor {
    nonisolated let loop: EventLoop
    init(_ loop: EventLoop) { self.loop = loop }

    func requests(_ rules: RequestRules, _ kafka: KafkaFixture) async throws -> [PublishedRequest] {
      let found = Found()
      let stretches = try await kafka.admin.stretches(of: rules.topics.requests)
      try await TopicReader(on: loop, kafka.configuration).read(stretches, "requests") {
        found.requests.append(PublishedRequest($0, rules))
      }
      return found.requests
    }
  }

  private final class Found { var requests: [PublishedRequest] = [] }

  @Test func `a request says what no rule knows, and its headers are read in any case`() async throws {
    try await KafkaFixture.with { kafka in
      let rules = RequestRules(topics: Topics(prefix: KafkaFixture.unique("published") + "."))
      let topic = rules.topics.requests
      try await kafka.makeTopics([topic], partitions: 1)
      let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"
      func record(_ headers: [(String, String)], _ value: String) -> TestRecord {
        TestRecord(key: "k", value, headers: headers.map { .init($0.0, $0.1) }, partition: 0)
      }
      try await kafka.publish(
        [
          record(
            [
              ("Target", "user:ada"), ("Apns-Topic", "a.b"), ("Apns-Id", id), ("Apns-Collapse-Id", "c"), ("apns-colapse-id", "x"),
              ("apns-urgency", "y"),
            ], #"{"aps":{"alertt":"x","bagde":1}}"#),
          record([("target", "user:ada"), ("Apns-Topic", "a b"), ("apns-topci", "a.b")], #"{"aps":{"alertt":"x"}}"#),
          record([("target", "user:ada"), ("apns-topic", "a.b")], #"{"aps":{"alert":"x"}}"#),
        ], to: topic)
      let requests = try await Lane(kafka.loop).requests(rules, kafka)
      #expect(requests.map(\.unknown) == [["apns-colapse-id", "apns-urgency", "aps.alertt"], ["apns-topci"], []])
      #expect(requests[0].id.description == id && requests[0].identifier == "c" && requests[0].application == "a.b")
      #expect(requests[1].application == "a b" && requests[1].broken?.hasSuffix("The header apns-topci is unknown.") == true)
    }
  }
}
