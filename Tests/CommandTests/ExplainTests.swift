import Foundation
import JSON
import Kafka
import Redis
import TestSupport
import Testing
import Worker

@testable import Command
@testable import Operations

/// `carillon explain`, by whatever a person knows of a request, over what a running cluster has written.
@Suite struct ExplainTests {
  private static let device = String(repeating: "ab", count: 32)
  private static let other = String(repeating: "cd", count: 32)
  /// As Swift's `UUID().uuidString` writes it.
  private static let upper = "6F0C1A2E-0A4B-4C8E-9D52-3F6F6A9B1C11"

  private struct Place: Sendable {
    let carillon: CarillonCommand
    let kafka: KafkaFixture
    let requests: String
    let flags: [String]
    let devices: String

    func device(_ token: String, user: String) throws -> RunningCommand {
      try carillon.start(
        ["device", "--devices", devices, "--token", token, "--app", "com.example.shop", "--user", user, "--json"])
    }

    func untilOutput(of process: RunningCommand, contains text: String) async throws {
      try await process.untilOutput(contains: text)
    }

    /// Publishes as any other client does.
    func publish(_ target: String, id: String?, operation: String? = nil, app: String = "com.example.shop", _ value: String) async throws {
      let headers = [("apns-topic", app), ("apns-id", id), ("operation", operation)].compactMap { name, value in
        value.map { TestRecord.Header(name, $0) }
      }
      try await kafka.publish([TestRecord(key: target, value, headers: headers)], to: requests)
    }

    func tool(_ arguments: [String], status: Int32 = 0) async throws -> CarillonCommand.Result {
      let result = try await carillon.run(arguments + flags)
      #expect(result.status == status, "\(arguments.joined(separator: " ")) said: \(result.errors)\(result.output)")
      return result
    }

    func explain(_ arguments: [String]) async throws -> [JSONValue] {
      try await tool(["explain", "--json"] + arguments).lines.map { try JSONValue(parsing: $0) }
    }

    /// Audits until nothing is found: the last requests' journal and events come a moment later.
    func auditFindsNothing() async throws {
      _ = try await carillon.answer(["audit", "--grace", "0", "--json"] + flags, "the audit finds nothing") { audit in
        try audit.status == 0 && JSONValue(parsing: audit.lines.last ?? "")["violations"] == 0
      }
    }

    /// Explains until the answer is as wanted.
    func explain(_ arguments: [String], until isWanted: ([JSONValue]) -> Bool) async throws -> [JSONValue] {
      var answers: [JSONValue] = []
      _ = try await carillon.answer(["explain", "--json"] + arguments + flags, "it is explained") { result in
        answers = try result.lines.map { try JSONValue(parsing: $0) }
        return isWanted(answers)
      }
      return answers
    }
  }

  private func withCluster(_ body: @Sendable @escaping (Place) async throws -> Void) async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        try await withRedis(listening: .port(nil)) { redis in
          let prefix = KafkaFixture.unique("explain") + "."
          let flags = ["--kafka", kafka.configuration.bootstrapServers.joined(separator: ","), "--topic-prefix", prefix]
          let created = try await carillon.run(["topics", "create", "--partitions", "4"] + flags)
          #expect(created.status == 0, "it said: \(created.errors)")
          let place = flags + ["--redis", redis.address.description, "--json"]
          let transform = try carillon.start(["transform", "--group", prefix + "transform", "--session-timeout", "5m"] + place)
          let fanOut = try carillon.start(["fan-out", "--listen", "127.0.0.1:0"] + place)
          _ = try await transform.firstLine()
          let devices = try JSONValue(parsing: try await fanOut.firstLine())["devices"]?.stringValue ?? ""
          try await body(Place(carillon: carillon, kafka: kafka, requests: prefix + "requests", flags: flags, devices: devices))
          await carillon.end()
        }
      }
    }
  }

  @Test func aRequestIsFoundByWhateverIsKnownOfIt() async throws {
    try await withCluster { place in
      let ada = try place.device(Self.device, user: "ada")
      try await place.untilOutput(of: ada, contains: #""event":"connected""#)
      try await anIDInUpperCaseIsTheSameEverywhere(place, ada)
      try await aRefusedIDIsFoundAsItWasWritten(place)
      try await aPersonsLatestRequestsAreListed(place)
    }
  }

  @Test(.onlyInAll("TimelineTests and OccurrenceTests have what is told of schedules"))
  func `a scheduled request is explained with its occurrences, and an occurrence with its request`() async throws {
    try await withCluster { place in
      let ada = try place.device(Self.device, user: "ada")
      try await place.untilOutput(of: ada, contains: #""event":"connected""#)
      func schedule(_ target: String, _ id: String, _ identifier: String, seconds: Int, operation: String? = nil) async throws {
        let trigger = operation == nil ? "{\"type\":\"timeInterval\",\"timeInterval\":\(seconds)}" : nil
        let headers = [
          ("target", target), ("apns-topic", "com.example.shop"), ("apns-id", id), ("apns-collapse-id", identifier), ("trigger", trigger),
          ("operation", operation),
        ]
        let value = operation == nil ? #"{"aps":{"alert":"later"}}"# : nil
        let record = TestRecord(key: target, value, headers: headers.compactMap { name, text in text.map { .init(name, $0) } })
        try await place.kafka.publish([record], to: place.requests)
      }
      let ids = (1...4).map { "0000000\($0)-0000-4000-8000-000000000000" }
      try await schedule("user:ada", ids[0], "soon", seconds: 2)
      try await schedule("device:\(Self.device)", ids[1], "late", seconds: 3_600)
      try await schedule("user:ada", ids[2], "never", seconds: 3_600)
      try await place.untilOutput(of: ada, contains: #""identifier":"soon""#)

      let over = try await place.explain(
        [ids[0]], until: { $0.first?["schedule"]?["occurrences"]?[0]?["devices"]?[0]?["state"] == "delivered" })
      #expect(over.first?["state"] == "scheduled" && over.first?["schedule"]?["state"] == "fired" && over.first?["devices"]?.elements == [])
      let occurrence = try #require(over.first?["schedule"]?["occurrences"]?[0])
      #expect(occurrence["state"] == "ended" && (occurrence["lateMs"]?.integerValue ?? -1) >= 0)
      let id = try #require(occurrence["apnsId"]?.stringValue)
      let fired = try #require(try await place.explain([id]).first)
      #expect(fired["occurrenceOf"]?.stringValue == ids[0] && fired["due"] == occurrence["due"] && fired["state"] == "ended")
      #expect(try await place.tool(["explain", id]).output.contains("It is an occurrence of \(ids[0]), due at "))
      #expect(try await place.tool(["explain", ids[0]]).lines.last?.hasSuffix("1 delivered") == true)

      let waiting = try await place.explain([ids[1]], until: { $0.first?["schedule"]?["state"] == "pending" })
      #expect(waiting.first?["schedule"]?["due"]?.elements?.count == 1 && waiting.first?["schedule"]?["occurrences"]?.elements == [])
      #expect(try await place.tool(["explain", ids[1]]).output.contains("It waits for its time, and is due next at "))

      try await schedule("user:ada", ids[3], "never", seconds: 0, operation: "cancel")
      let canceled = try await place.explain([ids[2]], until: { $0.first?["schedule"]?["state"] == "canceled" })
      #expect(canceled.first?["schedule"]?["by"]?.stringValue == ids[3])
      let cancel = try await place.explain([ids[3]], until: { $0.first?["state"] == "settled" })
      #expect(cancel.first?["outcome"] == "carried out")
      try await place.auditFindsNothing()
    }
  }

  private func anIDInUpperCaseIsTheSameEverywhere(_ place: Place, _ ada: RunningCommand) async throws {
    let lower = Self.upper.lowercased()
    try await place.publish("device:\(Self.device)", id: Self.upper, #"{"aps":{"alert":"upper"}}"#)
    try await place.untilOutput(of: ada, contains: #""id":"\#(lower)""#)
    for spelling in [Self.upper, lower] {
      let found = try await place.explain([spelling], until: { $0.first?["state"] == "ended" })
      #expect(found.first?["apnsId"]?.stringValue == lower)
      #expect(found.first?["devices"]?[0]?["state"] == "delivered")
      let events = try await place.tool([
        "events", "--from", "beginning", "--id", spelling, "--type", "delivered", "--limit", "1", "--json",
      ])
      #expect(events.output.contains(#""ce_subject":"\#(lower)""#))
    }
    // The same id in the other case is a duplicate, whoever writes it.
    _ = try await place.tool([
      "publish", "--target", "device:\(Self.device)", "--app", "com.example.shop", "--body", "again", "--id", Self.upper,
    ])
    _ = try await place.explain([lower], until: { $0.first?["steps"]?.elements?.contains { $0["step"] == "duplicate" } == true })
    // The notification has no collapse id, so its id is what a removal names.
    try await place.publish("device:\(Self.device)", id: nil, operation: "remove", #"{"identifiers":["\#(Self.upper)"]}"#)
    try await place.untilOutput(of: ada, contains: #""event":"removed""#)
    try await place.auditFindsNothing()
  }

  private func aRefusedIDIsFoundAsItWasWritten(_ place: Place) async throws {
    let written = "order 7 of today"
    try await place.publish("user:ada", id: written, #"{"aps":{"alert":"refused"}}"#)
    try await place.publish("user:ada", id: written + "!", #"{"aps":{"alert":"another"}}"#)
    let found = try await place.explain(
      [written],
      until: { $0.first?["state"] == "rejected" && $0.first?["steps"]?.elements?.last?["step"] == "dead letter" })
    #expect(found.count == 1 && found.first?["reason"] == "BadMessageId")
    #expect(found.first?["steps"]?.elements?.compactMap { $0["step"]?.stringValue } == ["published", "rejected", "dead letter"])
    let text = try await place.tool(["explain", written]).output
    #expect(text.contains("rejected: BadMessageId"))
    #expect(try await place.tool(["explain", "order 8"], status: 1).errors.contains("there is nothing about 'order 8'"))
  }

  private func aPersonsLatestRequestsAreListed(_ place: Place) async throws {
    var ids: [String] = []
    for number in 0..<3 {
      let target = number == 1 ? "device:\(Self.device)" : "user:ada"
      ids.append("0000000\(number)-0000-4000-8000-000000000000")
      try await place.publish(target, id: ids[number], #"{"aps":{"alert":"\#(number)"}}"#)
    }
    try await place.publish("user:bob", id: "bbbbbbbb-0000-4000-8000-000000000000", #"{"aps":{"alert":"bob"}}"#)
    try await place.publish("user:ada", id: "aaaaaaaa-0000-4000-8000-000000000000", app: "com.example.other", #"{"aps":{"alert":"b"}}"#)
    let person = ["--user", "ada", "--app", "com.example.shop", "--limit", "3"]
    let latest = try await place.explain(person, until: { $0.count == 3 && $0.allSatisfy { $0["state"] == "ended" } })
    #expect(latest.map { $0["apnsId"]?.stringValue } == ids.reversed())
    #expect(latest.allSatisfy { $0["devices"]?[0]?["state"] == "delivered" })
    let text = try await place.tool(["explain"] + person).lines
    #expect(text.count == 3 && text.allSatisfy { $0.contains("  1 delivered  ") }, "it said: \(text)")
    #expect(text.first?.contains(ids[2]) == true)
    // All applications, and what was refused, too.
    let all = try await place.explain(["--user", "ada"])
    #expect(all.count == 8)
    #expect(all.first?["apnsId"] == "aaaaaaaa-0000-4000-8000-000000000000")
    #expect(all.count { $0["state"] == "rejected" } == 2)
    let upper = try await place.explain(["--target", "device:\(Self.device.uppercased())", "--limit", "1"])
    #expect(upper.map { $0["apnsId"]?.stringValue } == [ids[1]])
    #expect(
      try await place.tool(["explain", "--user", "nobody"], status: 1).errors.contains("there is nothing about requests for user:nobody"))
  }

  @Test(.onlyInAll("TargetDevicesTests have it"))
  func `a request to the wrong application says which applications its target has devices for`() async throws {
    try await withCluster { place in
      let ada = try place.device(Self.device, user: "ada")
      try await place.untilOutput(of: ada, contains: #""event":"connected""#)
      try await place.publish("user:ada", id: Self.upper, app: "com.example.shpo", #"{"aps":{"alert":"x"}}"#)
      let found = try await place.explain([Self.upper], until: { $0.first?["state"] == "unregistered" })
      #expect(found.first?["registeredFor"]?.text == #"[{"application":"com.example.shop","devices":1}]"#)
      let text = try await place.tool(["explain", Self.upper]).output
      #expect(text.contains("no registered device for com.example.shpo"), "it said: \(text)")
      #expect(text.contains("Its target has devices for com.example.shop (1 device) now"), "it said: \(text)")
      #expect(try await place.tool(["explain", "--user", "ada"]).output.contains("no registered device for com.example.shpo"))
      let id = "00000007-0000-4000-8000-000000000000"
      try await place.publish("device:\(Self.device)", id: id, app: "com.example.shpo", #"{"aps":{"alert":"x"}}"#)
      _ = try await place.explain([id], until: { $0.first?["state"] == "rejected" })
      #expect(try await place.tool(["explain", id]).output.contains("(1 device) now: does the request name the right application?"))
      // Nobody has a device for it: then it is not the application.
      try await place.publish("user:bob", id: "00000008-0000-4000-8000-000000000000", #"{"aps":{"alert":"x"}}"#)
      _ = try await place.explain(["00000008-0000-4000-8000-000000000000"], until: { $0.first?["state"] == "unregistered" })
      #expect(
        try await place.tool(["explain", "00000008-0000-4000-8000-000000000000"]).output.contains(
          "Its target has no device for any application now."))
    }
  }

  @Test(.onlyInAll("TerminalTextTests have how lines are broken"))
  func aTerminalGetsATimelineThatFits() async throws {
    try await withCluster { place in
      try await place.publish("user:nobody", id: Self.upper, #"{"aps":{"alert":"x"}}"#)
      _ = try await place.explain([Self.upper], until: { $0.first?["state"] == "unregistered" })
      let terminal = try PseudoTerminal(width: 72)
      let process = try place.carillon.start(["explain", Self.upper] + place.flags, streams: .init(output: terminal.terminal))
      #expect(try await process.result().status == 0)
      let shown = terminal.read()
      #expect(
        shown.contains("application=com.example.shop") && shown.split(separator: "\n").allSatisfy { $0.count <= 72 }, "it said: \(shown)")
    }
  }

  @Test func `what is not found may have been dropped by the embedded broker, and that is said`() async throws {
    let broker = try EmbeddedBroker(topics: [("n.requests", 1), ("n.journal", 1), ("n.events", 1)])
    let kafka = try KafkaFixture(at: broker.configuration)
    let large = String(repeating: "x", count: 500_000)
    try await kafka.publish((0..<14).map { _ in TestRecord(large) }, to: "n.requests")
    let count = try await kafka.admin.forgottenRecords(Topics(prefix: "n."))
    #expect(count > 0 && count < 14)
    #expect(ForgottenRecords.sentence(count)?.contains("the oldest \(TerminalText.count(count, "record"))") == true)
    #expect(ForgottenRecords.nothing(about: "x", forgotten: count).hasPrefix("there is nothing about x, unless it is among the records"))
    #expect(ForgottenRecords.nothing(about: "x", forgotten: 0) == "there is nothing about x; searched:")
    await kafka.close()
    await broker.close()
  }

  /// What is typed, and what standard error must say of it.
  @Test(
    arguments: [
      ([], "which request? give its APNS-ID, or --user ID"), (["--user", "ada", "--target", "user:ada"], "--user is a target already"),
      ([upper, "--user", "ada"], "--user and --app list requests"),
    ] as [([String], String)])
  func whatIsAskedMustBeOneThing(arguments: [String], text: String) async throws {
    let refusal = try await Typed.refusal(["explain"] + arguments)
    #expect(refusal.code == .wrongUsage && refusal.text.contains(text), "it says: \(refusal.text)")
  }
}
