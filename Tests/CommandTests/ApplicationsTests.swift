import JSON
import Kafka
import TestSupport
import Testing
import Worker

@testable import Command

/// What `carillon applications` promises to the person who types.
@Suite struct ApplicationsTests {
  /// What is typed after `applications`, and what standard error must say of it.
  static let mistakes: [([String], String)] = [
    (
      [],
      "'applications' needs one more word: applications stop, applications start, applications allow, applications disallow, applications limit, applications list"
    ),
    (["stop"], "APPLICATION"),
    (["stop", "a b", "--kafka", "127.0.0.1:9"], "'a b' is not an application. An application is a bundle id"),
    (["stop", String(repeating: "a", count: 256), "--kafka", "127.0.0.1:9"], "is not an application"),
    (["stop", "a.b", "--reason", String(repeating: "x", count: 201), "--kafka", "127.0.0.1:9"], "--reason takes 1 to 200 bytes of text"),
    (["stop", "a.b", "--by", "a\nb", "--kafka", "127.0.0.1:9"], "--by takes 1 to 200 bytes of text without control characters"),
    (["allow", "a.b", "--kafka", "127.0.0.1:9"], "give --critical, --time-sensitive or both"),
    (["limit", "a.b", "--kafka", "127.0.0.1:9"], "give --per-target, --per-application or both, or --none to end the limit"),
    (["limit", "a.b", "--none", "--per-target", "5", "--kafka", "127.0.0.1:9"], "--none ends the limit: give it without"),
    (["limit", "a.b", "--per-target", "0", "--kafka", "127.0.0.1:9"], "--per-target"),
    (["limit", "a.b", "--per-target", "5", "--window", "11s", "--kafka", "127.0.0.1:9"], "a duration from 100ms to 10s"),
    (["start", "a.b", "--reason", "x"], "'applications start' has no flag '--reason'"),
  ]

  @Test(arguments: mistakes) func wrongUsageIsExplainedAndEndsWithTwo(arguments: [String], text: String) async throws {
    let refusal = try await Typed.refusal(["applications"] + arguments)
    #expect(refusal.code == .wrongUsage && refusal.text.contains(text), "it says: \(refusal.text)")
  }

  @Test(.onlyInAll("it is about time: a limit begins five seconds later, and ClusterTests/LimitTests have it too"))
  func `a limit is set, shown, applied and ended`() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      let kafka = try #require(try JSONValue(parsing: try await up.firstLine())["kafka"]?.stringValue)
      func run(_ words: String...) async throws -> CarillonCommand.Result {
        try await carillon.run(["applications"] + words + ["--kafka", kafka])
      }
      let dry = try await run("limit", "com.example", "--per-target", "1", "--dry-run")
      #expect(dry.status == 0 && dry.errors.contains("it would be changed; nothing was written"), "it said: \(dry.errors)")
      #expect(try await run("list").status == 1, "a dry run writes nothing")
      let limited = try await run("limit", "com.example", "--per-target", "1", "--window", "10s", "--by", "ada")
      #expect(limited.status == 0, "it said: \(limited.errors)")
      #expect(limited.output.contains("com.example  limited to 1 request for one target in 10 s, from 20"), "it said: \(limited.output)")
      #expect(limited.output.contains(", by ada"))
      let again = try await run("limit", "com.example", "--per-target", "1", "--window", "10s")
      #expect(again.status == 0 && again.errors.contains("nothing was changed: it is so already"), "it said: \(again.errors)")
      #expect(try await run("list").output == limited.output)
      // It begins some seconds later. Two requests may lie in two windows.
      let publish = ["publish", "--kafka", kafka, "--target", "user:ada", "--body", "x", "--app", "com.example"]
      var explained = JSONValue.null
      await eventually("the limit applies") {
        explained = try await Self.published(publish, carillon, kafka)
        return explained["state"] == "rejected"
      }
      #expect(explained["reason"] == "TooManyRequests", "it said: \(explained.text)")
      #expect(explained.text.contains("retryAfter"), "it said: \(explained.text)")
      let none = try JSONValue(parsing: try await run("limit", "com.example", "--none", "--json").output)
      #expect(none["changed"] == true && none["limits"]?.elements?.count == 2 && none["limits"]?[0]?["windowMilliseconds"] == 10_000)
      #expect(try await run("list").status == 1)
      #expect(try await run("list", "--all").lines.count == 2)
      // The last events come a moment later.
      let line = ["audit", "--grace", "0s", "--kafka", kafka]
      _ = try await carillon.answer(line, "the audit finds nothing") { $0.status == 0 }
      try await up.stop()
    }
  }

  @Test func anApplicationIsStoppedListedAndStartedAgain() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      let kafka = try #require(try JSONValue(parsing: try await up.firstLine())["kafka"]?.stringValue)
      func run(_ words: String...) async throws -> CarillonCommand.Result {
        try await carillon.run(["applications"] + words + ["--kafka", kafka])
      }
      let none = try await run("list", "--all")
      #expect(
        none.status == 1 && none.output.isEmpty && none.errors.contains("no application was stopped, limited or allowed anything"),
        "it said: \(none.errors)")
      let idle = try await run("start", "com.example")
      #expect(idle.status == 0 && idle.errors.contains("nothing was changed: it is so already"), "it said: \(idle.errors)")
      let dry = try await run("stop", "com.example", "--dry-run")
      #expect(dry.status == 0 && dry.errors.contains("it would be changed; nothing was written"), "it said: \(dry.errors)")
      #expect(try await run("list").status == 1, "a dry run writes nothing")

      let stopped = try await run("stop", "com.example", "--reason", "wrong prices", "--by", "ada")
      #expect(stopped.status == 0 && stopped.output.contains("stopped since "), "it said: \(stopped.output)")
      #expect(stopped.output.contains("by ada: wrong prices"), "it said: \(stopped.output)")
      let again = try await run("stop", "com.example", "--json")
      let answer = try JSONValue(parsing: again.output)
      #expect(again.status == 0 && answer["changed"] == false && answer["state"] == "stopped" && answer["stops"]?[0]?["by"] == "ada")
      #expect(try await run("list").output.contains("wrong prices"))

      let publish = ["publish", "--kafka", kafka, "--target", "user:ada", "--body", "x", "--app", "com.example"]
      // The worker may hear of the stop a moment later.
      var explained = JSONValue.null
      await eventually("the worker has heard of the stop") {
        explained = try await Self.published(publish, carillon, kafka)
        return explained["state"] == "filtered"
      }
      #expect(explained["reason"] == "ApplicationStopped: wrong prices", "it said: \(explained.text)")
      let started = try JSONValue(parsing: try await run("start", "com.example", "--by", "bob", "--json").output)
      #expect(started["changed"] == true && started["state"] == "started" && started["stops"]?[0]?["endedBy"] == "bob")
      // However late the worker hears of the start.
      let after = try await Self.published(publish, carillon, kafka)
      #expect(after["state"] == "unregistered", "it said: \(after.text)")
      #expect(try await run("list").status == 1)
      let all = try await run("list", "--all", "--json")
      #expect(all.status == 0 && all.lines.count == 1 && all.output.contains("wrong prices"))
      try await up.stop()
    }
  }

  @Test(.onlyInAll("ApplicationLedgerTests find the requests, and StatusJSONTests have what is told"))
  func `a stop of an application that nobody publishes for is warned of, and status shows what is stopped`() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      let place = try JSONValue(parsing: try await up.firstLine())
      let kafka = try #require(place["kafka"]?.stringValue)
      func stop(_ words: String...) async throws -> CarillonCommand.Result {
        let result = try await carillon.run(["applications", "stop"] + words + ["--kafka", kafka])
        #expect(result.status == 0, "it said: \(result.errors)")
        return result
      }
      for app in ["com.example.shop", "com.example.mail"] {
        let published = try await carillon.run(["publish", "--kafka", kafka, "--target", "user:ada", "--body", "x", "--app", app])
        #expect(published.status == 0, "it said: \(published.errors)")
      }
      let dry = try await stop("com.example.shpo", "--dry-run")
      #expect(
        dry.errors.contains("no request of com.example.shpo was seen in the last hour; did you mean 'com.example.shop'?"),
        "it said: \(dry.errors)")
      #expect(!dry.errors.contains("ends the stop"))
      let json = try JSONValue(parsing: try await stop("com.example.shpo", "--dry-run", "--json").output)
      #expect(json["seen"] == false && json["requestsLookedAt"]?.integerValue == 2 && json["nearest"] == "com.example.shop")
      let known = try await stop("com.example.shop", "--dry-run")
      #expect(!known.errors.contains("no request"), "it said: \(known.errors)")
      let wrong = try await stop("com.example.shpo", "--reason", "wrong prices", "--by", "ada")
      #expect(wrong.output.contains("stopped since ") && wrong.errors.contains("'carillon applications start com.example.shpo'"))
      // What was stopped before is known too, and nothing that only begins alike.
      #expect(try await stop("com.example.shpp", "--dry-run").errors.contains("did you mean 'com.example.sh"))
      #expect(try await !stop("com.example.bank", "--dry-run").errors.contains("did you mean"))

      let flags = ["--kafka", kafka, "--redis", try #require(place["redis"]?.stringValue), "--sample", "0s"]
      let status = try await carillon.run(["status"] + flags) { $0.output.contains("NOTE   com.example.shpo") }
      #expect(
        status.output.contains("NOTE   com.example.shpo is stopped since ") && status.output.contains("by ada: wrong prices"),
        "it said: \(status.output)")
      #expect(status.output.contains("has the times of its producers (CreateTime)"), "it said: \(status.output)")
      #expect(!status.output.contains("there is no maxmemory"), "it said: \(status.output)")
      let objects = try await carillon.run(["status", "--json"] + flags) { $0.output.contains("com.example.shpo") }
      let told = try objects.lines.map { try JSONValue(parsing: $0) }
      let stopped = told.last?["notes"]?.elements?.first { $0["note"] == "stopped" }
      #expect(stopped?["application"] == "com.example.shpo", "it said: \(objects.output)")
      try await up.stop()
    }
  }

  /// Publishes a request, and gives what became of it.
  private static func published(_ publish: [String], _ carillon: CarillonCommand, _ kafka: String) async throws -> JSONValue {
    let id = try #require(try await carillon.run(publish).lines.first)
    let explained = try await carillon.answer(["explain", id, "--kafka", kafka, "--json"], "the request is processed") {
      try JSONValue(parsing: $0.output)["state"] != "unprocessed"
    }
    return try JSONValue(parsing: explained.output)
  }
}
