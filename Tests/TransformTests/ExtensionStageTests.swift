import Cryptography
import Extensions
import Glibc
import JSON
import Kafka
import Notifications
import Redis
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
    let source = InForce(try Self.file("one: "))
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

  /// A folder with the texts of two locales, and the file of extensions that names it.
  private static func withTexts(_ body: (ExtensionsFile) async throws -> Void) async throws {
    let texts = ["en.lproj/Localizable.strings": "ORDER = \"Order %@\";\n", "de.lproj/Localizable.strings": "ORDER = \"Bestellung %@\";\n"]
    try await TestFolder.with(texts) { folder in
      let settings = #"{"name":"texts","use":"localize","strings":"\#(folder.path)","default":"en"}"#
      try await body(try ExtensionsFile(parsing: Array(#"{"applications":{"com.example.shop":[\#(settings)]}}"#.utf8)))
    }
  }

  private static let order = #"{"aps":{"alert":{"loc-key":"ORDER","loc-args":["7"]},"mutable-content":1}}"#

  @Test func eachDeviceOfAPersonIsShownItsOwnLanguage() async throws {
    try await Self.withTexts { file in
      let source = InForce(file)
      try await TransformFixture.with({ $0.extensions = source }) { lane in
        let tokens = TransformFixture.tokens(in: [(0, 2), (1, 1)])
        try await lane.register(tokens, for: "ada", locales: [tokens[0]: "de_AT", tokens[1]: "fr_FR"])
        for token in tokens { try await lane.connect(token) }
        try await lane.request("user:ada", payload: Self.order)
        for token in tokens { try await lane.request("device:" + token, payload: Self.order) }
        var shown: [String: [String]] = [:]
        for record in try await lane.kafka.records(of: lane.topics.deliveries, count: 6) {
          try (record.value ?? []).withUnsafeBytes { bytes in
            let payload = try #require(DeliveryRecord(bytes)?.entry?.payload)
            shown[record.device ?? "", default: []].append(String(decoding: payload, as: UTF8.self))
          }
        }
        let (german, english) = (
          #"{"aps":{"alert":{"body":"Bestellung 7"},"mutable-content":1}}"#, #"{"aps":{"alert":{"body":"Order 7"},"mutable-content":1}}"#
        )
        #expect(shown[tokens[0]] == [german, german])
        #expect(shown[tokens[1]] == [english, english] && shown[tokens[2]] == [english, english])
      }
    }
  }

  @Test func aLocaleThatRedisDoesNotTellNowIsAskedForAgain() async throws {
    try await Self.withTexts { file in
      let source = InForce(file)
      try await TransformFixture.with({ $0.extensions = source }) { lane in
        let token = TransformFixture.tokens(in: [(0, 1)])[0]
        try await lane.register([token], for: "ada", locales: [token: "de"])
        try await lane.connect(token)
        try await lane.probe.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        try await lane.request("device:" + token, payload: Self.order)
        let record = try #require(try await lane.kafka.records(of: lane.topics.deliveries, count: 1).first)
        try (record.value ?? []).withUnsafeBytes { bytes in
          let payload = try #require(DeliveryRecord(bytes)?.entry?.payload)
          #expect(String(decoding: payload, as: UTF8.self).contains("Bestellung 7"))
        }
      }
    }
  }

  /// A device that signs out, or registers without a locale, leaves none behind.
  @Test func theLocaleOfADeviceIsThatOfItsLastRegistration() async throws {
    try await TransformFixture.with { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      func locale() async throws -> String? { try await lane.probe.command("HGET", .text(TransformFixture.keys.device(token)), "l").text }
      try await lane.register([token], for: "ada", locales: [token: "de_AT"])
      #expect(try await locale() == "de_AT")
      try await lane.register([token], for: "ada", after: 1)
      #expect(try await locale() == nil)
    }
  }

  @Test func onlyAlertsPassExtensions() async throws {
    let source = InForce(try Self.file("> "))
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.connect(token)
      let payload = #"{"aps":{"alert":"x","mutable-content":1}}"#
      try await lane.request("device:" + token, payload: payload, voip: true)
      try await lane.request("device:" + token, payload: payload)
      let shown = try await Self.deliveries(lane, 2)
      #expect(shown.map(\.states) == [[], ["mark modified"]])
    }
  }

  @Test func whatIsSupersededTellsNothingOfTheExtensionsOfWhatTookItsPlace() async throws {
    let source = InForce(try Self.file("> "))
    try await TransformFixture.with({ $0.extensions = source }) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.request("device:" + token, collapse: "score")
      try await lane.request("device:" + token, collapse: "score", isMutable: true)
      let event = try #require(try await lane.kafka.records(of: lane.topics.events, count: 1).first)
      let value = try JSONValue(parsing: String(decoding: event.value ?? [], as: UTF8.self))
      #expect(event.headers.contains { $0.name == "ce_type" && String(decoding: $0.value ?? [], as: UTF8.self).contains("collapsed") })
      #expect(value["by"] != nil && value["extensions"] == nil, "\(value.text)")
    }
  }

  @Test func whatComesTogetherIsJudgedTogetherAlsoWhereItDependsOnLocales() async throws {
    try await Self.withTexts { file in
      let source = InForce(file)
      try await TransformFixture.with({ $0.extensions = source }) { lane in
        let token = TransformFixture.tokens(in: [(0, 1)])[0]
        try await lane.register([token], for: "ada", locales: [token: "de"])
        let before = try await lane.calls()
        try await lane.whileRedisStandsStill {
          try await lane.request("device:" + token, payload: Self.order, count: 120)
          await lane.eventually("all are taken") { lane.taken == 120 }
        }
        await lane.eventually("all are judged") { lane.count(.queued) == 120 }
        #expect(try await lane.calls() - before < 60, "a call for each would be 120")
      }
    }
  }

  @Test func aRequestThatAProcessHasEndedOverIsShownWithoutItsExtensions() async throws {
    let source = InForce(try Self.file("> "))
    // As if a worker had ended at the second request while it worked on nothing else.
    try await TransformFixture.with(
      { $0.extensions = source },
      before: { try await $0.probe.command("HSET", .text(Keys.tries), "q0", "0 5", "q0 group", "1 1 another") }
    ) { lane in
      let token = TransformFixture.tokens(in: [(0, 1)])[0]
      try await lane.register([token], for: "ada")
      try await lane.connect(token)
      for _ in 0..<3 { try await lane.request("device:" + token, bytes: 1, isMutable: true) }
      let shown = try await Self.deliveries(lane, 3)
      #expect(shown.map(\.states) == [["mark modified"], ["mark failed"], ["mark modified"]])
      #expect(shown[1].payload == #"{"aps":{"alert":"x","mutable-content":1}}"#)
      #expect(lane.count(.deadLettered) == 0)
    }
  }

  @Test func theJournalTellsOfTheExtensionsBeforeTheVerdict() async throws {
    let source = InForce(try Self.file("> "))
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
            case .unreadable: told.append("\(entry.offset) unreadable")
            case .extensions(let passed): told.append("\(entry.offset) \(passed.map { "\($0.name) \($0.state)" })")
            }
          }
        }
      }
      // Those of one batch may stand between one another.
      #expect(told.filter { $0.hasPrefix("0") } == [#"0 ["mark modified"]"#, "0 queued"])
      #expect(told.filter { $0.hasPrefix("1") } == [#"1 ["mark modified"]"#, "1 1 devices"] && told.count == 4)
    }
  }
}
