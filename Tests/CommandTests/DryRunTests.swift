import Foundation
import JSON
import TestSupport
import Testing

/// What `carillon publish` says of requests before a Kafka has anything to do with them.
@Suite struct DryRunTests {
  private static let flags = ["publish", "--target", "user:ada", "--app", "com.example"]

  @Test func aDryRunShowsTheRecordsAndNeedsNoKafka() async throws {
    try await CarillonCommand.with { carillon in
      let id = "6F0C1A2E-0A4B-4C8E-9D52-3F6F6A9B1C11"
      let flags = Self.flags + ["--title", "Order", "--id", id, "--dry-run"]
      let text = try await carillon.run(flags)
      #expect(text.status == 0, "it said: \(text.errors)")
      #expect(
        text.lines == [
          "key: user:ada", "header target: user:ada", "header apns-id: \(id.lowercased())", "header apns-topic: com.example",
          #"value: {"aps":{"alert":{"title":"Order"}}}"#,
        ])
      // Not even one that it is told of.
      let json = try await carillon.run(flags + ["--json", "--kafka", "127.0.0.1:9"])
      #expect(json.status == 0, "it said: \(json.errors)")
      let record = try JSONValue(parsing: json.output)
      #expect(record["key"] == "user:ada" && record["headers"]?["apns-id"]?.stringValue == id.lowercased())
      #expect(record["value"] == #"{"aps":{"alert":{"title":"Order"}}}"#)
    }
  }

  @Test func aDryRunOfLinesShowsThemAndWhatIsWrongWithThem() async throws {
    try await CarillonCommand.with { carillon in
      let lines = """
        {"target":"user:1","title":"one"}
        {"target":"user:2","titel":"two"}
        {"target":"user:3"}
        {"target":"user:4","operation":"remove","identifiers":["a","b"]}
        """
      let result = try await carillon.run(["publish", "--app", "com.example", "--lines", "-", "--dry-run", "--json"], input: lines)
      #expect(result.status == 1)
      let records = try result.lines.map { try JSONValue(parsing: $0) }
      #expect(records.map { $0["line"]?.integerValue } == [1, 4, 4])
      #expect(records.map { $0["headers"]?["apns-collapse-id"]?.stringValue } == [nil, "a", "b"])
      #expect(records.last?["value"] == .null)
      #expect(result.errors.contains("line 2: no member 'titel' is known; did you mean 'title'?"))
      #expect(result.errors.contains("line 3: it would show nothing and do nothing: add 'title'"))
    }
  }

  @Test(
    arguments: [
      ([], false), (["--category", "order", "--thread-id", "a", "--mutable-content"], false), (["--custom", "n=1"], false),
      (["--push-type", "background", "--custom", "n=1"], false), (["--badge", "0"], true), (["--sound", "default"], true),
      (["--content-available", "--custom", "n=1"], true), (["--operation", "remove", "--identifiers", "a"], true),
      (["--push-type", "mdm", "--custom", "n=1"], true), (["--unchecked"], true),
    ] as [([String], Bool)])
  func aRequestThatWouldDoNothingIsRefused(content: [String], hasEffect: Bool) async throws {
    try await CarillonCommand.with { carillon in
      let result = try await carillon.run(Self.flags + content + ["--dry-run"])
      #expect(result.status == (hasEffect ? 0 : 2), "it said: \(result.errors)")
      #expect(hasEffect || result.errors.contains("add --title, --subtitle, --body, --badge or --sound, or --content-available"))
    }
  }

  @Test func `what no rule knows is published with a warning`() async throws {
    try await CarillonCommand.with { carillon in
      let flags = Self.flags + ["--dry-run", "--json"]
      let header = try await carillon.run(flags + ["--body", "x", "--header", "apns-colapse-id=c", "--header", "mark=1"])
      #expect(header.status == 0 && header.lines.count == 1)
      #expect(
        header.errors == "carillon: warning: apns-colapse-id is unknown, and has no effect; did you mean 'apns-collapse-id'?\n",
        "it said: \(header.errors)")
      let member = try await carillon.run(flags + ["--payload", "-"], input: #"{"aps":{"alertt":"x"}}"#)
      #expect(member.status == 0 && member.errors.contains("warning: aps.alertt is unknown, and has no effect; did you mean 'aps.alert'?"))
      let refused = try await carillon.run(["publish", "--target", "user:ada", "--body", "x", "--header", "apns-topci=a", "--dry-run"])
      #expect(refused.status == 2 && refused.errors.contains("The header apns-topci is unknown."), "it said: \(refused.errors)")
      let line = #"{"target":"user:1","title":"one","headers":{"apns-priorty":"5"}}"#
      let lines = try await carillon.run(
        ["publish", "--app", "com.example", "--lines", "-", "--dry-run"], input: [line, line].joined(separator: "\n"))
      #expect(lines.status == 0 && lines.errors.split(separator: "\n").count == 1, "it said: \(lines.errors)")
      #expect(lines.errors.contains("line 1: warning: apns-priorty is unknown, and has no effect; did you mean 'apns-priority'?"))
    }
  }

  @Test func `a header of the contract is one header in any case`() async throws {
    try await CarillonCommand.with { carillon in
      let given = [
        "--body", "x", "--header", "Apns-Collapse-Id=c", "--collapse-id", "d", "--header", "Target=user:eve", "--dry-run", "--json",
      ]
      let result = try await carillon.run(Self.flags + given)
      #expect(result.status == 0, "it said: \(result.errors)")
      let headers = try JSONValue(parsing: result.output)["headers"]
      #expect(headers?["apns-collapse-id"] == "d" && headers?["target"] == "user:ada" && headers?["Apns-Collapse-Id"] == nil)
    }
  }

  @Test(arguments: [("1.5", false), ("-1", false), (#""3""#, false), ("2147483648", false), ("0", true)])
  func aBadgeIsAnIntegerOfZeroOrMore(badge: String, isBadge: Bool) async throws {
    try await CarillonCommand.with { carillon in
      let result = try await carillon.run(Self.flags + ["--payload", "-", "--dry-run"], input: #"{"aps":{"badge":\#(badge)}}"#)
      #expect(result.status == (isBadge ? 0 : 2))
      #expect(isBadge || result.errors.contains("aps.badge: A badge is an integer from 0 to 2147483647"), "it said: \(result.errors)")
    }
  }

  @Test func whoeverWaitsForSlowLinesSeesHowFarItIs() async throws {
    try await CarillonCommand.with { carillon in
      let terminal = try PseudoTerminal(width: 80)
      let lines = Pipe()
      let process = try carillon.start(
        ["publish", "--app", "com.example", "--lines", "-", "--dry-run"],
        streams: .init(input: lines.fileHandleForReading, errors: terminal.terminal))
      try lines.fileHandleForWriting.write(contentsOf: Data("{\"target\":\"user:1\",\"title\":\"one\"}\n".utf8))
      // Nothing more comes meanwhile.
      _ = try await terminal.read(until: "1 request so far")
      try lines.fileHandleForWriting.close()
      #expect(try await process.result().status == 0)
    }
  }
}
