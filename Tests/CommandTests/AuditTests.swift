import Foundation
import JSON
import Kafka
import Notifications
import Redis
import TestSupport
import Testing
import Worker

@testable import Command

/// `carillon explain` and `carillon audit`, over what a running cluster has written, and over what was forged.
@Suite struct AuditTests {
  private static let device = String(repeating: "ab", count: 32)
  private static let other = String(repeating: "cd", count: 32)

  /// A cluster of processes, and how its tools are called.
  private struct Place: Sendable {
    let carillon: CarillonCommand
    let kafka: KafkaFixture
    let prefix: String
    let flags: [String]
    let transform: RunningCommand
    let devices: String

    func tool(_ arguments: [String], status: Int32 = 0, input: String = "") async throws -> CarillonCommand.Result {
      let result = try await carillon.run(arguments + flags, input: input)
      #expect(result.status == status, "\(arguments.joined(separator: " ")) said: \(result.errors)\(result.output)")
      return result
    }

    /// Starts a device and waits until it has said something of this name.
    func device(_ token: String, _ arguments: [String] = []) throws -> RunningCommand {
      try carillon.start(
        ["device", "--devices", devices, "--token", token, "--app", "com.example.shop", "--user", "ada", "--json"] + arguments)
    }

    func wait(_ process: RunningCommand, for event: String, count: Int = 1) async throws {
      try await process.untilOutput(contains: "\"event\":\"\(event)\"", count: count)
    }

    /// Plants an event of a request that lies at a place.
    func forge(
      _ type: String, _ statement: String, device: String, id: String, _ source: (partition: Int, offset: Int), worker: String,
      _ more: String = "", identifier: String = "order-7",
      at time: (text: String, milliseconds: Int) = ("2099-01-31T12:00:00.000Z", 4_073_544_000_000)
    ) async throws {
      let value = #"""
        {"identifier":"\#(identifier)","device":"\#(device)","application":"com.example.shop","worker":"\#(worker)",\#(more)
        "source":{"topic":"\#(prefix)requests","partition":\#(source.partition),"offset":\#(source.offset),"timestamp":\#(time.milliseconds - 1)}}
        """#
      try await kafka.publish(
        [
          TestRecord(
            key: device, value,
            headers: [
              .init("ce_specversion", "1.0"), .init("ce_id", statement), .init("ce_type", "carillon.\(type).v1"),
              .init("ce_source", "/carillon/t"), .init("ce_subject", id), .init("ce_time", time.text),
            ])
        ], to: prefix + "events")
    }

    func audit(_ arguments: [String] = [], status: Int32) async throws -> [JSONValue] {
      try await tool(["audit", "--json", "--grace", "0"] + arguments, status: status).lines.map { try JSONValue(parsing: $0) }
    }

    /// Audits until all that was published has its outcome.
    func auditWhenSettled() async throws -> JSONValue {
      let result = try await carillon.answer(["audit", "--json", "--grace", "0", "--no-pending"] + flags, "all has its outcome") {
        $0.status == 0 && !$0.lines.isEmpty
      }
      return try JSONValue(parsing: result.lines.last ?? "")
    }
  }

  private func withCluster(_ body: @Sendable @escaping (Place) async throws -> Void) async throws {
    try await CarillonCommand.with { carillon in
      try await KafkaFixture.with { kafka in
        try await withRedis(listening: .port(nil)) { redis in
          let prefix = KafkaFixture.unique("audit") + "."
          let flags = ["--kafka", kafka.configuration.bootstrapServers.joined(separator: ","), "--topic-prefix", prefix]
          let created = try await carillon.run(["topics", "create", "--partitions", "4"] + flags)
          #expect(created.status == 0, "it said: \(created.errors)")
          let place = flags + ["--redis", redis.address.description, "--json"]
          let transform = try carillon.start(["transform", "--group", prefix + "transform", "--session-timeout", "5m"] + place)
          let fanOut = try carillon.start(["fan-out", "--listen", "127.0.0.1:0"] + place)
          _ = try await transform.firstLine()
          let devices = try JSONValue(parsing: try await fanOut.firstLine())["devices"]?.stringValue ?? ""
          try await body(
            Place(carillon: carillon, kafka: kafka, prefix: prefix, flags: flags, transform: transform, devices: devices))
          await carillon.end()
        }
      }
    }
  }

  @Test func aClusterThatKeepsItsPromisesIsFoundToAndAForgedOneIsNot() async throws {
    try await withCluster { place in
      // A device shows one, and its acknowledgement is lost with it.
      let state = place.carillon.folder.appendingPathComponent("device.state").path
      let first = try place.device(Self.device, ["--state", state, "--no-ack"])
      try await place.wait(first, for: "connected")
      let publish = ["publish", "--target", "user:ada", "--app", "com.example.shop", "--collapse-id", "order-7"]
      let id = try #require(try await place.tool(publish + ["--body", "on its way"]).lines.first)
      try await place.wait(first, for: "shown")
      first.signal(SIGKILL)
      _ = try await first.result()
      let second = try place.device(Self.device, ["--state", state])
      try await place.wait(second, for: "dropped")

      var lines: [String] = []
      for number in 0..<20 {
        lines.append(
          #"{"target": "device:\#(Self.device)", "app": "com.example.shop", "body": "\#(number)", "collapse-id": "c\#(number % 3)"}"#)
      }
      lines.append(#"{"target": "device:\#(Self.device)", "app": "com.example.shop", "body": "again", "id": "\#(id)"}"#)
      lines.append(#"{"target": "device:\#(Self.other)", "app": "com.example.shop", "body": "nobody"}"#)
      lines.append(#"{"target": "user:nobody", "app": "com.example.shop", "body": "nobody"}"#)
      lines.append(#"{"target": "user:ada", "app": "com.example.shop", "body": "too late", "expiration": 1}"#)
      lines.append(#"{"target": "device:\#(Self.device)", "app": "com.example.shop", "body": "broken", "priority": "7"}"#)
      lines.append(
        #"{"target": "device:\#(Self.device)", "app": "com.example.shop", "operation": "remove", "collapse-id": "order-7"}"#)
      _ = try await place.tool(["publish", "--lines", "-", "--unchecked"], input: lines.joined(separator: "\n") + "\n")
      let summary = try await place.auditWhenSettled()
      #expect(summary["violations"] == 0)
      #expect(summary["requests"] == 27)
      #expect(summary["known"] == 1)
      let outcomes = try #require(summary["outcomes"])
      for (outcome, count) in [("rejected", 1), ("duplicate", 1), ("unregistered", 2), ("expired", 1), ("removed", 1), ("lost", 0)] {
        #expect(outcomes[outcome]?.integerValue == Int64(count), "\(outcome): \(outcomes.text)")
      }

      try await explains(place, id)
      try await finds(place, id)
      try await derives(place)
    }
  }

  private func explains(_ place: Place, _ id: String) async throws {
    let explained = try JSONValue(parsing: try #require(try await place.tool(["explain", id, "--json"]).lines.first))
    #expect(explained["state"] == "ended")
    #expect(explained["devices"]?[0]?["state"] == "delivered")
    let steps = try #require(explained["steps"]?.elements)
    let names = steps.compactMap { $0["step"]?.stringValue }
    #expect(names.first == "published")
    // It was published twice: what happened to the second record belongs to the same id.
    for name in ["queued", "routed", "addressed", "delivered", "duplicate"] { #expect(names.contains(name), "no \(name) among \(names)") }
    #expect(names.count { $0 == "published" } == 2)
    #expect(steps.first { $0["step"] == "routed" }?["device"]?.stringValue == String(repeating: "ab", count: 32))
    #expect(steps.allSatisfy { $0["time"] != nil && $0["partition"] != nil && $0["offset"] != nil })
    let text = try await place.tool(["explain", id, "--target", "user:ada", "--from", "1h"]).output
    #expect(text.contains("abababab…abababab: delivered "))
    let nothing = try await place.tool(["explain", "00000000-0000-4000-8000-000000000000"], status: 1)
    #expect(nothing.output.isEmpty && nothing.errors.contains("\(place.prefix)requests, partitions 0,1,2,3: "))
    #expect(try await place.tool(["explain", id.uppercased()]).output.contains("abababab…abababab: delivered "))
  }

  /// Plants what must not happen, and looks whether it is found.
  private func finds(_ place: Place, _ id: String) async throws {
    let steps = try JSONValue(parsing: try #require(try await place.tool(["explain", id, "--json"]).lines.first))["steps"]?.elements ?? []
    let published = try #require(steps.first { $0["step"] == "published" })
    let partition = Int(try #require(published["partition"]?.integerValue))
    let offset = Int(try #require(published["offset"]?.integerValue))
    let unknown = "11111111-0a4b-4c8e-9d52-3f6f6a9b1c11"
    try await place.forge("delivered", "a", device: Self.device, id: id, (partition, offset), worker: "one")
    try await place.forge("updated", "b", device: Self.device, id: id, (partition, offset), worker: "two")
    try await place.forge("delivered", "c", device: Self.device, id: unknown, (0, 0), worker: "one")
    // And a request that nobody works on.
    place.transform.signal(SIGTERM)
    _ = try await place.transform.result()
    let lost = try #require(
      try await place.tool(["publish", "--target", "device:\(Self.device)", "--app", "com.example.shop", "--body", "x"]).lines.first)

    let found = try await place.audit(status: 1)
    let violations = found.dropLast()
    let kinds = Set(violations.compactMap { $0["violation"]?.stringValue })
    #expect(kinds.isSuperset(of: ["lost", "shownTwice", "shownLate", "unknownRequest"]), "found: \(kinds)")
    #expect(violations.first { $0["violation"] == "lost" }?["apnsId"]?.stringValue == lost)
    let twice = try #require(violations.first { $0["violation"] == "shownTwice" })
    #expect(twice["apnsId"]?.stringValue == id)
    #expect(twice["steps"]?.elements?.contains { $0["worker"] == "two" } == true)
    #expect(found.last?["violations"]?.integerValue == Int64(violations.count))
    #expect(try await place.audit(["--grace", "1h"], status: 1).last?["outcomes"]?["inFlight"] == 1)
    #expect(try await place.audit(["--to", "1d"], status: 0).last?["requests"] == 0)
    let text = try await place.tool(["audit", "--limit", "1"], status: 1).output
    #expect(text.contains("VIOLATION ") && text.contains(" further violations"))
    let underWay = try await place.tool(["explain", lost]).output
    #expect(underWay.contains("not processed yet"))
  }

  /// Of two revisions of one notification that were queued, one after the other, the newer one tells what became of the older.
  private func derives(_ place: Place) async throws {
    /// Publishes a request that no worker works on, and says in its place that it was kept.
    func queue(_ identifier: String, superseding former: String? = nil) async throws -> String {
      let id = try #require(
        try await place.tool([
          "publish", "--target", "device:\(Self.other)", "--app", "com.example.shop", "--body", "x", "--collapse-id", identifier,
        ]).lines.first)
      let step = try #require(try await explain(id)["steps"]?[0])
      let offset = try #require(step["offset"]?.integerValue)
      let partition = Int32(try #require(step["partition"]?.integerValue))
      let published = try #require(step["time"]?.stringValue.flatMap { Timestamp.parse($0) })
      var writer = JournalWriter(partition: partition, incarnation: 0)
      let revision = Revision(SourcePosition(partition: partition, offset: offset, timestamp: published))
      let other = former.flatMap { NotificationID($0) }.map { JournalReference(revision: revision, id: $0) }
      writer.append(offset: offset, timestamp: published, JournalJudgement(.queued, revision: revision, other: other), now: published + 5)
      var record = TestRecord(
        nil, headers: [.init("layout", "1"), .init("worker", "one"), .init("incarnation", "0")], partition: partition)
      record.value = writer.withValue { Array($0) }
      try await place.kafka.publish([record], to: place.prefix + "journal")
      return id
    }
    func explain(_ id: String) async throws -> JSONValue {
      try JSONValue(parsing: try #require(try await place.tool(["explain", id, "--json"]).lines.first))
    }
    let older = try await queue("order-8")
    _ = try await queue("order-9")
    let waiting = try await explain(older)
    #expect(waiting["devices"]?[0]?["state"] == "queued", "another notification has not replaced it")
    let newer = try await queue("order-8", superseding: older)
    let replaced = try await explain(older)
    #expect(replaced["devices"]?[0]?["state"] == "collapsed")
    #expect(replaced["steps"]?.elements?.compactMap { $0["step"]?.stringValue } == ["published", "queued", "replaced"])
    #expect(replaced["steps"]?[1]?["topic"]?.stringValue == place.prefix + "journal")
    #expect(replaced["steps"]?[2]?["details"]?["by"]?.stringValue == newer, "it said: \(replaced.text)")
    #expect(try await explain(newer)["devices"]?[0]?["state"] == "queued")
  }

  @Test func requestsOlderThanTheEventsThatAreLeftAreNotTakenForLost() async throws {
    try await CarillonCommand.with { carillon in
      // The embedded broker keeps five megabytes of a partition.
      try await KafkaFixture.with(embeddedOnly: true) { kafka in
        for name in ["requests", "deliveries", "devices", "events", "journal", "dead-letters", "applications", "people", "categories"] {
          try kafka.embedded?.createTopic("notifications.\(name)", partitions: 1)
        }
        func request(_ id: Int, _ seconds: Int64) -> TestRecord {
          TestRecord(
            #"{"aps":{"alert":"x"}}"#,
            headers: [
              .init("target", "device:\(Self.device)"), .init("apns-topic", "com.example"),
              .init("apns-id", "\(id)0000000-0000-4000-8000-000000000000"),
            ], partition: 0, timestamp: 1_700_000_000_000 + seconds * 1_000)
        }
        try await kafka.publish([request(1, 0), request(2, 100)], to: "notifications.requests")
        let event = String(repeating: "x", count: 900_000)
        for _ in 0..<8 {
          try await kafka.publish([TestRecord(event, partition: 0, timestamp: 1_700_000_050_000)], to: "notifications.events")
        }
        let flags = ["--kafka", kafka.configuration.bootstrapServers.joined(separator: ",")]
        let result = try await carillon.run(["audit", "--json"] + flags)
        let lines = try result.lines.map { try JSONValue(parsing: $0) }
        #expect(result.status == 1, "it said: \(result.errors)")
        #expect(lines.dropLast().map { $0["apnsId"] } == ["20000000-0000-4000-8000-000000000000"])
        #expect(lines.last?["untold"] == 1 && lines.last?["outcomes"]?["lost"] == 1, "it said: \(result.output)")
      }
    }
  }

  @Test func whatContradictsItselfIsSaid() async throws {
    let wrong = try await Typed.refusal(["audit", "--kafka", "127.0.0.1:9", "--from", "1h", "--to", "2h"])
    #expect(wrong.code == .wrongUsage && wrong.text.contains("--from must lie before --to"))
  }
}
