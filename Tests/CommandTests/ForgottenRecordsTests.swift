import JSON
import Kafka
import TestSupport
import Testing
import Worker

/// What `carillon audit` and `carillon explain` say when the embedded broker has dropped what they would read.
@Suite struct ForgottenRecordsTests {
  private static let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"

  private func withTools(
    _ body:
      @Sendable (_ tool: @Sendable ([String]) async throws -> CarillonCommand.Result, _ kafka: KafkaFixture, _ requests: String)
      async throws -> Void
  ) async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with(embeddedOnly: true) { kafka in
        let topics = Topics(prefix: KafkaFixture.unique("forgotten") + ".")
        for topic in topics.all { try kafka.embedded?.createTopic(topic, partitions: 1) }
        let flags = ["--kafka", kafka.configuration.bootstrapServers.joined(separator: ","), "--topic-prefix", topics.prefix]
        try await body({ try await carillon.run($0 + flags) }, kafka, topics.requests)
      }
    }
  }

  @Test func `an embedded broker that has dropped requests is no proof that there were none`() async throws {
    try await withTools { tool, kafka, requests in
      let request = TestRecord(
        key: "user:ada", #"{"aps":{"alert":"x"}}"#, headers: [.init("apns-topic", "com.example"), .init("apns-id", Self.id)])
      try await kafka.publish([request], to: requests)
      var large = TestRecord(key: "user:ada", nil)
      // What the broker keeps is counted as it is stored: compressed.
      large.value = (0..<500_000).map { _ in UInt8.random(in: .min ... .max) }
      for _ in 0..<12 { try await kafka.publish([large], to: requests) }

      let audit = try await tool(["audit", "--json"])
      let forgotten = try #require(try JSONValue(parsing: audit.lines.last ?? "")["forgotten"]?.integerValue)
      #expect((1...12).contains(forgotten))
      #expect(try await tool(["audit"]).output.contains("the oldest \(Self.records(forgotten)) of requests"))
      let explained = try await tool(["explain", Self.id])
      #expect(explained.status == 1)
      #expect(explained.errors.contains("the oldest \(Self.records(forgotten)) of requests"))
    }
  }

  @Test func `nothing is said of dropped records where all are there`() async throws {
    try await withTools { tool, kafka, requests in
      try await kafka.publish([TestRecord(key: "user:ada", "{}", headers: [.init("apns-topic", "com.example")])], to: requests)
      let audit = try await tool(["audit", "--json"])
      #expect(try JSONValue(parsing: audit.lines.last ?? "")["forgotten"] == 0)
      #expect(!(try await tool(["audit"]).output.contains("embedded broker")))
      #expect(!(try await tool(["explain", Self.id]).errors.contains("embedded broker")))
    }
  }

  private static func records(_ count: Int64) -> String { count == 1 ? "1 record" : "\(count) records" }
}
