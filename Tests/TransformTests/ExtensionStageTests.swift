import Extensions
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Store
@testable import Transform

@Suite struct ExtensionStageTests {
  private static func file(_ prefix: String) throws -> ExtensionsFile {
    let settings = #"{"name":"mark","use":"set-and-copy","prefix":{"/aps/alert/body":"\#(prefix)"}}"#
    return try ExtensionsFile(parsing: Array(#"{"applications":{"com.example.shop":[\#(settings)]}}"#.utf8))
  }

  /// What the deliveries of a lane have as payloads, and what they say of the extensions.
  private static func deliveries(_ lane: TransformFixture, _ count: Int) async throws -> [(payload: String, states: [String])] {
    try await lane.kafka.records(of: lane.topics.deliveries, count: count).map { record in
      try (record.value ?? []).withUnsafeBytes { bytes in
        let entry = try #require(DeliveryRecord(bytes)?.entry)
        var states: [String] = []
        ExtensionStates(entry.extensions).forEach { states.append("\(String(decoding: $0, as: UTF8.self)) \($1.word)") }
        return (String(decoding: entry.payload, as: UTF8.self), states)
      }
    }
  }

  @Test func aMutableNotificationIsShownAsItsExtensionsHaveLeftIt() async throws {
    let source = ExtensionsSource(try Self.file("one: "))
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.connect(token)
      try await lane.request("device:" + token, bytes: 1)
      try await lane.request("device:" + token, bytes: 1, isMutable: true)
      // A person's as well, and by the extensions that have been put in force meanwhile.
      await lane.eventually("both are judged") { lane.count(.queued) == 2 }
      source.replace(with: try Self.file("two: "))
      try await lane.request("user:ada", bytes: 1, isMutable: true)
      let shown = try await Self.deliveries(lane, 3)
      #expect(
        shown.map(\.payload) == [
          #"{"aps":{"alert":"x"}}"#, #"{"aps":{"alert":{"body":"one: x"},"mutable-content":1}}"#,
          #"{"aps":{"alert":{"body":"two: x"},"mutable-content":1}}"#,
        ])
      #expect(shown.map(\.states) == [[], ["mark modified"], ["mark modified"]])
      #expect(lane.metric(#"carillon_transform_extensions_total{state="modified"}"#) == 2)
    }
  }

  @Test func theJournalTellsOfTheExtensionsBeforeTheVerdict() async throws {
    let source = ExtensionsSource(try Self.file("> "))
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.request("device:" + token, isMutable: true)
      try await lane.request("user:ada", isMutable: true)
      await lane.eventually("the group has committed both") { try await lane.committed(lane.topics.requests) == 2 }
      var told: [String] = []
      let count = Int(lane.metric("carillon_transform_journal_records_total"))
      for record in try await lane.kafka.records(of: lane.topics.journal, count: count) {
        let headers = record.headers.map { (name: $0.name, value: String(decoding: $0.value ?? [], as: UTF8.self)) }
        try (record.value ?? []).withUnsafeBytes { value in
          try JournalRecord(headers: headers, value: value).forEachEntry(in: value, partition: 0) { entry in
            switch entry.content {
            case .request(let judgement): told.append("\(entry.offset) \(judgement.verdict)")
            case .page(let page): told.append("\(entry.offset) \(page.devices.count) devices")
            case .extensions(let passed): told.append("\(entry.offset) \(passed.map { "\($0.name) \($0.state)" })")
            }
          }
        }
      }
      #expect(told == [#"0 ["mark modified"]"#, "0 kept", #"1 ["mark modified"]"#, "1 1 devices"])
    }
  }
}
