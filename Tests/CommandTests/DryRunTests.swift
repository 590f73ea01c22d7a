import Calendars
import Foundation
import Ingress
import JSON
import Notifications
import TestSupport
import Testing
import Worker

@testable import Command

/// What `carillon publish` says of requests before a Kafka has anything to do with them.
@Suite struct DryRunTests {
  private static let flags = ["publish", "--target", "user:ada", "--app", "com.example"]

  /// The records that flags make; throws why they are refused.
  static func requests(_ flags: [String]) throws -> [RequestToSend] {
    let values = try Typed.values(flags)
    let draft = try PublishSettings.draft(values, now: 1_000_000)
    return try PublishCommand.requests(values, draft, values[PublishSettings.isUnchecked] ? nil : RequestLimits(values)) ?? []
  }

  /// Why flags are refused; nil if they are not.
  private static func refusal(_ flags: [String]) throws -> String? {
    do { _ = try requests(flags) } catch let error as UsageError { return error.description }
    return nil
  }

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

  @Test(arguments: [
    (#"{"type":"calendar","dateComponents":{"hour":9,"timeZone":"Mars/Base"}}"#, "trigger.dateComponents.timeZone"),
    (#"{"type":"calendar","dateComponents":{"year":2001,"hour":9}}"#, "trigger.dateComponents"),
    (#"{"type":"calendar","dateComponents":{"month":2,"day":31,"year":2001,"timeZone":"UTC"}}"#, "trigger.dateComponents"),
    (#"{"type":"timeInterval","timeInterval":31536000,"repeats":true,"notBefore":253402300799}"#, "trigger.notBefore"),
  ])
  func `a trigger that is never due, or not in a zone that exists, is refused before Kafka has it`(_ trigger: String, _ field: String)
    throws
  {
    let refusal = try #require(try Self.refusal(Self.flags + ["--title", "Order", "--trigger", trigger]))
    #expect(refusal.contains("the cluster would reject this request") && refusal.contains(field), "\(refusal)")
    #expect(try Self.requests(Self.flags + ["--title", "Order", "--trigger", trigger, "--unchecked"]).count == 1)
  }

  @Test func `the zone that the build of the image asks for is asked for in the right way`() throws {
    let file = try String(contentsOf: ReadmeTests.package.appending(path: "Deploy/Dockerfile"), encoding: .utf8)
    let trigger = try #require(file.firstMatch(of: #/--trigger '(.*)'/#)?.1)
    #expect(try Self.requests(Self.flags + ["--title", "Order", "--trigger", String(trigger)]).count == 1)
  }

  @Test func `a wall time without a zone is taken as long as it may be due somewhere`() throws {
    let hour = #"{"type":"calendar","dateComponents":{"hour":9}}"#
    #expect(try Self.requests(Self.flags + ["--title", "Order", "--trigger", hour]).count == 1)
  }

  @Test func aDryRunOfLinesShowsThemAndWhatIsWrongWithThem() async throws {
    try await CarillonCommand.with { carillon in
      let lines = """
        {"target":"user:1","title":"one"}
        {"target":"user:2","titel":"two"}
        {"target":"user:3"}
        {"target":"user:4","operation":"remove","identifiers":["a","b"]}
        {"target":"user:5","title":"five","headers":{"apns-priorty":"5"}}
        {"target":"user:6","title":"six","headers":{"apns-priorty":"5"}}
        """
      let result = try await carillon.run(["publish", "--app", "com.example", "--lines", "-", "--dry-run", "--json"], input: lines)
      #expect(result.status == 1)
      let records = try result.lines.map { try JSONValue(parsing: $0) }
      #expect(records.map { $0["line"]?.integerValue } == [1, 4, 4, 5, 6])
      #expect(records.map { $0["headers"]?["apns-collapse-id"]?.stringValue } == [nil, "a", "b", nil, nil])
      #expect(records[at: 2]?["value"] == .null)
      #expect(result.errors.contains("line 2: no member 'titel' is known; did you mean 'title'?"))
      #expect(result.errors.contains("line 3: it would show nothing and do nothing: add 'title'"))
      let warnings = result.errors.split(separator: "\n").filter { $0.contains("warning") }
      #expect(
        warnings == ["carillon: line 5: warning: apns-priorty is unknown, and has no effect; did you mean 'apns-priority'?"],
        "it said: \(result.errors)")
    }
  }

  @Test(
    arguments: [
      ([], false), (["--category", "order", "--thread-id", "a", "--mutable-content"], false), (["--custom", "n=1"], false),
      (["--push-type", "background", "--custom", "n=1"], false), (["--badge", "0"], true), (["--sound", "default"], true),
      (["--content-available", "--custom", "n=1"], true), (["--operation", "remove", "--identifiers", "a"], true),
      (["--push-type", "mdm", "--custom", "n=1"], true), (["--unchecked"], true),
    ] as [([String], Bool)])
  func aRequestThatWouldDoNothingIsRefused(content: [String], hasEffect: Bool) throws {
    let refusal = try Self.refusal(Self.flags + content)
    #expect((refusal == nil) == hasEffect)
    #expect(refusal?.contains("add --title, --subtitle, --body, --badge or --sound, or --content-available") != false)
  }

  @Test func `what no rule knows is published with a warning`() throws {
    try TestFolder.with { folder in
      let payload = try folder.write("payload.json", #"{"aps":{"alertt":"x"}}"#)
      for (content, warning) in [
        (
          ["--body", "x", "--header", "apns-colapse-id=c", "--header", "mark=1"],
          "apns-colapse-id is unknown, and has no effect; did you mean 'apns-collapse-id'?"
        ), (["--payload", payload], "aps.alertt is unknown, and has no effect; did you mean 'aps.alert'?"),
      ] {
        let requests = try Self.requests(Self.flags + content)
        var times = DueTimes()
        #expect(try requests.map { try $0.check(RequestLimits(), &times).warnings } == [[warning]])
      }
    }
    let refusal = try Self.refusal(["publish", "--target", "user:ada", "--body", "x", "--header", "apns-topci=a"])
    #expect(refusal?.contains("The header apns-topci is unknown.") == true, "it says: \(refusal ?? "")")
  }

  @Test func `a header of the contract is one header in any case`() throws {
    let given = ["--body", "x", "--header", "Apns-Collapse-Id=c", "--collapse-id", "d", "--header", "Target=user:eve"]
    let request = try #require(try Self.requests(Self.flags + given).first)
    #expect(request.headers.map(\.name) == ["target", "apns-id", "apns-topic", "apns-collapse-id"])
    #expect(request.headers.first?.value == "user:ada" && request.headers.last?.value == "d" && request.key == Array("user:ada".utf8))
  }

  @Test(arguments: [("1.5", false), ("-1", false), (#""3""#, false), ("2147483648", false), ("0", true)])
  func aBadgeIsAnIntegerOfZeroOrMore(badge: String, isBadge: Bool) throws {
    try TestFolder.with { folder in
      let refusal = try Self.refusal(Self.flags + ["--payload", try folder.write("payload.json", #"{"aps":{"badge":\#(badge)}}"#)])
      #expect((refusal == nil) == isBadge)
      #expect(refusal?.contains("aps.badge: A badge is an integer from 0 to 2147483647") != false, "it says: \(refusal ?? "")")
    }
  }

  @Test func `a record is shown with its line, its headers and its value, without what a terminal obeys`() throws {
    let draft = try RequestLineTests.draft(#"{"target":"user:\u001b[2J","title":"x","headers":{"mark":"\u0007"}}"#)
    let request = try #require(draft.records(line: 7).first)
    let text = RequestPrinter(isJSON: false).text(request)
    #expect(
      text.split(separator: "\n").filter { !$0.hasPrefix("header apns-id: ") } == [
        "line 7", "key: user:\u{FFFD}[2J", "header target: user:\u{FFFD}[2J", "header mark: \u{FFFD}",
        #"value: {"aps":{"alert":{"title":"x"}}}"#,
      ])
    let json = try JSONValue(parsing: RequestPrinter(isJSON: true).json(request))
    #expect(json["line"] == 7 && json["key"] == "user:\u{1B}[2J" && json["headers"]?["mark"] == "\u{7}")
    let removal = RequestToSend(line: 0, id: "", key: [], headers: [], value: nil)
    #expect(RequestPrinter(isJSON: false).text(removal) == "key: (none)\nvalue: (none)\n")
    #expect(RequestPrinter(isJSON: true).json(removal) == #"{"key":null,"headers":{},"value":null}"#)
  }
}
