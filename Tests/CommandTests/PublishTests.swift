import EventLoop
import Ingress
import JSON
import Kafka
import TestSupport
import Testing
import Worker

@testable import Command

/// `carillon publish` and `carillon topics create`, with a Kafka.
@Suite struct PublishTests {
  /// A Kafka with the requests topic of a prefix of its own.
  private func withRequests(
    partitions: Int32 = 1,
    _ body: @Sendable (_ carillon: CarillonCommand, _ kafka: KafkaFixture, _ topic: String, _ flags: [String]) async throws -> Void
  ) async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        let prefix = KafkaFixture.unique("publish") + "."
        let topic = prefix + "requests"
        try await kafka.makeTopics([topic], partitions: partitions)
        let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
        try await body(carillon, kafka, topic, ["--kafka", servers, "--topic-prefix", prefix])
      }
    }
  }

  private static let common = ["publish", "--target", "user:ada", "--app", "com.example"]

  @Test func everyFlagIsAHeaderOrAMemberOfThePayload() throws {
    let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"
    let requests = try DryRunTests.requests([
      "publish", "--target", "user:ada", "--app", "com.example.shop", "--id", id, "--collapse-id", "order-7", "--expiration", "1900000000",
      "--priority", "5", "--push-type", "alert", "--title", "T", "--subtitle", "S", "--body", "B \"quoted\" ü", "--badge", "3", "--sound",
      "default", "--category", "order", "--thread-id", "orders", "--interruption-level", "time-sensitive", "--relevance-score",
      "0.25", "--mutable-content", "--custom", #"order={"id":7.0}"#, "--custom",
      "kind=\"sale\"", "--header", "traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "--header", "x-team=shop",
    ])
    let request = try #require(requests.first)
    #expect(requests.count == 1 && request.id == id && request.key == Array("user:ada".utf8))
    #expect(
      request.headers.map { "\($0.name): \($0.value)" } == [
        "target: user:ada", "apns-id: \(id)", "apns-topic: com.example.shop", "apns-collapse-id: order-7", "apns-expiration: 1900000000",
        "apns-priority: 5", "apns-push-type: alert", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "x-team: shop",
      ])
    #expect(
      request.value.map { String(decoding: $0, as: UTF8.self) }
        == #"{"aps":{"alert":{"title":"T","subtitle":"S","body":"B \"quoted\" ü"},"badge":3,"sound":"default","category":"order","#
        + #""thread-id":"orders","interruption-level":"time-sensitive","relevance-score":0.25,"#
        + #""mutable-content":1},"order":{"id":7.0},"kind":"sale"}"#)
  }

  @Test func aRequestWithoutAnIDGetsARandomUUID() async throws {
    try await withRequests { carillon, kafka, topic, flags in
      let began = WallClock.seconds()
      let result = try await carillon.run(
        ["publish"] + flags + ["--target", "user:ada", "--app", "com.example", "--body", "x", "--expiration", "10m", "--json"])
      #expect(result.status == 0)
      let line = try #require(result.lines.first)
      let answer = try JSONValue(parsing: line)
      let id = try #require(answer["apnsId"]?.stringValue)
      #expect(id.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil)
      #expect(answer["topic"]?.stringValue == topic)
      let record = try #require(try await kafka.records(of: topic, count: 1).first)
      #expect(record.header("apns-id") == id)
      #expect(answer["partition"]?.integerValue == record.partition.map(Int64.init))
      #expect(answer["offset"]?.integerValue == record.offset)
      let written = try #require(record.timestamp)
      let expiration = try #require(record.header("apns-expiration").flatMap { Int64($0) })
      #expect(began + 600 <= expiration && expiration <= written / 1000 + 601)
    }
  }

  @Test func aBrokenRuleIsNamedBeforeAnythingIsSent() async throws {
    let wrong = Self.common + ["--priority", "7", "--body", "x"]
    // Kafka is not asked: nobody listens there.
    let refused = try await Typed.refusal(wrong + ["--kafka", "127.0.0.1:9"])
    #expect(refused.code == .wrongUsage && refused.text.contains("BadPriority: apns-priority: A priority is 10, 5 or 1."))
    let unchecked = try DryRunTests.requests(wrong + ["--unchecked"])
    #expect(unchecked.first?.headers.contains { $0 == ("apns-priority", "7") } == true)
  }

  @Test func aPayloadGoesAsItIs() async throws {
    try await TestFolder.with { folder in
      let payload = "{ \"aps\" : {\"alert\":\"\\u0041\"}, \"n\": 1.50e3 }"
      let file = try folder.write("payload.json", payload)
      #expect(try DryRunTests.requests(Self.common + ["--payload", file]).map(\.value) == [Array(payload.utf8)])
      let both = try await Typed.refusal(Self.common + ["--payload", file, "--title", "x"])
      #expect(both.code == .wrongUsage && both.text.contains("--payload is the whole payload"))
    }
  }

  @Test func aRemoveIsOneRequestForEachIdentifier() async throws {
    let common = Self.common + ["--operation", "remove"]
    let requests = try DryRunTests.requests(common + ["--identifiers", "order-7,order-8"])
    #expect(Set(requests.map(\.id)).count == 2 && requests.allSatisfy { $0.value == nil })
    for (request, identifier) in zip(requests, ["order-7", "order-8"]) {
      #expect(
        request.headers.contains { $0 == ("operation", "remove") } && request.headers.contains { $0 == ("apns-collapse-id", identifier) })
    }
    let unnamed = try await Typed.refusal(common)
    #expect(unnamed.code == .wrongUsage && unnamed.text.contains("BadRequestPayload: identifiers"))
    let one = try await Typed.refusal(common + ["--identifiers", "a,b", "--id", "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"])
    #expect(one.code == .wrongUsage && one.text.contains("--id is one request's"))
  }

  @Test func linesGoOnPastABadOne() async throws {
    try await withRequests { carillon, kafka, topic, flags in
      let lines = """
        {"target":"user:1","title":"one","collapse-id":"c","priority":10,"expiration":"5m"}
        {"targett":"user:2","title":"two"}

        not json
        {"target":"user:5","payload":{"aps": {"alert":"five"},"k":1.50},"app":"com.other","headers":{"x-y":"z"}}
        {"target":"nobody","title":"six"}
        {"target":"user:7"}
        """
      let result = try await carillon.run(
        ["publish"] + flags + ["--app", "com.example", "--body", "B", "--lines", "-", "--json"], input: lines)
      #expect(result.status == 1)
      #expect(result.errors.contains("line 2: no member 'targett' is known"))
      #expect(result.errors.contains("line 4: JSON"))
      #expect(result.errors.contains("line 6: BadDeviceToken: target"))
      let answers = try result.lines.map { try JSONValue(parsing: $0) }
      #expect(answers.compactMap { $0["line"]?.integerValue }.sorted() == [1, 5, 7])
      let records = try await kafka.records(of: topic, count: 3)
      #expect(
        records.map(\.text) == [
          #"{"aps":{"alert":{"title":"one","body":"B"}}}"#, #"{"aps": {"alert":"five"},"k":1.50}"#, #"{"aps":{"alert":{"body":"B"}}}"#,
        ])
      #expect(records.map { $0.header("apns-topic") } == ["com.example", "com.other", "com.example"])
      #expect(records[1].header("x-y") == "z")
      #expect(Set(answers.compactMap { $0["apnsId"]?.stringValue }) == Set(records.compactMap { $0.header("apns-id") }))
    }
  }

  @Test func manyLinesAreAllAcknowledged() async throws {
    try await withRequests(partitions: 4) { carillon, kafka, topic, flags in
      let count = isComplete ? 25_000 : 2_000
      let lines = (0..<count).map { #"{"target":"user:\#($0)","title":"t"}"# }.joined(separator: "\n")
      let file = try carillon.file("many.jsonl", lines)
      let result = try await carillon.run(["publish"] + flags + ["--app", "com.example", "--lines", file])
      #expect(result.status == 0, "it said: \(result.errors)")
      #expect(Set(result.lines).count == count)
    }
  }

  @Test func aMissingTopicSaysWhatMakesIt() async throws {
    try await KafkaFixture.with(embeddedOnly: true) { kafka in
      let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
      let request = ["--target", "user:ada", "--app", "com.example", "--body", "x"]
      for (command, topic) in [
        (["publish"] + request, "requests"), (["lag"], "requests"), (["applications", "list"], "applications"),
        (["dead-letters", "list"], "dead-letters"), (["categories", "list"], "categories"),
      ] {
        let refused = try await Typed.refusal(command + ["--kafka", servers, "--topic-prefix", "absent."])
        #expect(refused.code == .dependencyMissing)
        #expect(
          refused.text.contains("there is no topic absent.\(topic)") && refused.text.contains("'carillon topics create' makes it"),
          "it says: \(refused.text)")
      }
    }
  }

  @Test func topicsAreCreatedOnceAndComparedAfterwards() async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        let prefix = KafkaFixture.unique("topics") + "."
        let servers = kafka.configuration.bootstrapServers.joined(separator: ",")
        // The embedded broker makes topics of 4 partitions, whatever is asked for.
        let flags = ["topics", "create", "--kafka", servers, "--topic-prefix", prefix, "--json"]
        let names = Set(
          [
            "requests", "deliveries", "devices", "schedule", "events", "journal", "dead-letters", "applications", "people", "categories",
          ].map { prefix + $0 })
        let dry = try await carillon.run(flags + ["--partitions", "4", "--dry-run"])
        #expect(dry.status == 0, "it said: \(dry.errors)")
        let missing = try dry.lines.map { try JSONValue(parsing: $0) }
        #expect(Set(missing.compactMap { $0["topic"]?.stringValue }) == names)
        #expect(missing.allSatisfy { $0["missing"] == true && $0["created"] == false && $0["differences"]?.elements?.isEmpty == true })
        #expect(try await kafka.admin.describeCluster().topics.keys.allSatisfy { !names.contains($0) })
        let text = try await carillon.run(flags.dropLast() + ["--partitions", "4", "--dry-run"])
        #expect(text.lines.allSatisfy { $0.hasPrefix("would be created  \(prefix)") }, "it said: \(text.output)")
        let first = try await carillon.run(flags + ["--partitions", "4"])
        #expect(first.status == 0, "it said: \(first.errors)")
        let created = try first.lines.map { try JSONValue(parsing: $0) }
        #expect(Set(created.compactMap { $0["topic"]?.stringValue }) == names)
        #expect(created.allSatisfy { $0["created"]?.boolValue == true })
        // These have one partition, whatever is asked for, and more are no difference.
        let ofOnePartition = [prefix + "applications", prefix + "categories"]
        for topic in created where !ofOnePartition.contains(topic["topic"]?.stringValue ?? "") {
          #expect(topic["partitions"]?.integerValue == 4)
        }
        let again = try await carillon.run(flags + ["--partitions", "4"])
        #expect(again.status == 0, "it said: \(again.errors)")
        #expect(try again.lines.allSatisfy { try JSONValue(parsing: $0)["created"]?.boolValue == false })
        let other = try await carillon.run(flags + ["--partitions", "5"])
        #expect(other.status == 1)
        for topic in try other.lines.map({ try JSONValue(parsing: $0) })
        where !ofOnePartition.contains(topic["topic"]?.stringValue ?? "") {
          #expect(topic["differences"]?[0]?.stringValue == "has 4 partitions, not 5")
        }
        let compared = try await carillon.run(flags + ["--partitions", "5", "--dry-run"])
        #expect(compared.status == 1 && compared.output == other.output, "it said: \(compared.output)")
        if kafka.embedded == nil {
          #expect(try await kafka.admin.settings(ofTopic: prefix + "requests")["message.timestamp.type"] == "LogAppendTime")
          #expect(try await kafka.admin.settings(ofTopic: prefix + "devices")["cleanup.policy"] == "compact")
          let applications = try await kafka.admin.settings(ofTopic: prefix + "applications")
          #expect(applications["cleanup.policy"] == "compact" && applications["message.timestamp.type"] == "LogAppendTime")
        }
      }
    }
  }
}
