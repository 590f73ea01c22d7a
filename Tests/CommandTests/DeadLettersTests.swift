import EventLoop
import Foundation
import JSON
import Kafka
import Notifications
import TestSupport
import Testing
import Worker

@testable import Command
@testable import Operations

/// What `carillon dead-letters` promises to the person who types.
@Suite struct DeadLettersTests {
  private static let id = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"

  /// What is typed after `dead-letters`, and what standard error must say of it.
  static let mistakes: [([String], String)] = [
    ([], "'dead-letters' needs one more word: dead-letters list, dead-letters show, dead-letters redrive, dead-letters discard"),
    (["redrive"], "which letters? give some, or a filter such as --reason, or --everything"),
    (["discard"], "which letters?"),
    (["show", "3"], "'3' is not a letter: it must be PARTITION:OFFSET, such as 3:1742"),
    (["redrive", "3:-1"], "is not a letter"), (["redrive", "1:1", "--wait", "0s"], "--wait: '0s' is not allowed"),
    (["list", "--state", "lost"], "--state: 'lost' is not allowed: it must be one of pending, redriven, discarded"),
    (["list", "--from", "1d", "--to", "2d"], "--from must lie before --to"),
    (["redrive", "1:1", "--set", "apns-topic"], "--set: 'apns-topic' is not allowed: it must be HEADER=VALUE"),
    (["redrive", "1:1", "--set", "target=user:eve"], "with another target it is another request: add --as-new"),
    (["redrive", "1:1", "--set", "apns-id=\(id)"], "with another apns-id it is another request: add --as-new"),
    (["redrive", "--everything", "--set", "apns-id=\(id)", "--as-new"], "--set apns-id goes with one LETTER"),
    (["redrive", "1:1", "--set", "carillon-origin={}"], "only the cluster writes carillon-origin"),
    (["redrive", "1:1", "--unset", "carillon-dead-letter-reason"], "belongs to the dead letter and is removed in any case"),
    (["redrive", "1:1", "--set", "a=1", "--unset", "a"], "--set and --unset cannot both be about a"),
    (["redrive", "--reason", "Poison", "--force"], "--force goes with one LETTER"),
    (["redrive", "1:1", "2:2", "--force"], "--force goes with one LETTER"),
    (["discard", "1:1", "--set", "a=1"], "'dead-letters discard' has no flag '--set'"),
  ]

  @Test(arguments: mistakes) func wrongUsageIsExplainedAndEndsWithTwo(arguments: [String], text: String) async throws {
    let refusal = try await Typed.refusal(["dead-letters"] + arguments)
    #expect(refusal.code == .wrongUsage && refusal.text.contains(text), "it says: \(refusal.text)")
  }

  @Test func wordsStandToTheLeftAndCountsAndAgesToTheRight() {
    var shop = LetterGroup(reason: "BadTopic", application: "com.example.shop", oldest: 0, newest: 60_000)
    shop.counts = [.pending: 2, .redriven: 10]
    let none = LetterGroup(reason: "Poison", application: nil, counts: [.discarded: 1], oldest: 60_000, newest: 9_999_500)
    #expect(
      LetterPrinter(now: 10_000_000).table([shop, none]) == [
        "reason    application       letters  pending  redriven  discarded      oldest      newest",
        "BadTopic  com.example.shop       12        2        10          0  2 h 46 min  2 h 45 min",
        "Poison    -                       1        0         0          1  2 h 45 min      500 ms",
      ])
  }

  @Test func aLetterIsListedShownRedrivenAndDiscarded() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      let kafka = try #require(try JSONValue(parsing: try await up.firstLine())["kafka"]?.stringValue)
      func run(_ words: String...) async throws -> CarillonCommand.Result {
        try await carillon.run(["dead-letters"] + words + ["--kafka", kafka])
      }
      let none = try await run("list")
      #expect(none.status == 1 && none.output.isEmpty && none.errors.contains("there are no dead letters"), "it said: \(none.errors)")
      let publish = ["publish", "--kafka", kafka, "--target", "user:ada", "--body", "secret", "--id", Self.id, "--unchecked"]
      let published = try await carillon.run(publish + ["--app", "com/example"])
      #expect(published.status == 0, "it said: \(published.errors)")
      let list = try await carillon.answer(["dead-letters", "list", "--json", "--kafka", kafka], "the letter is there") { $0.status == 0 }
      let group = try JSONValue(parsing: list.output)
      #expect(group["reason"] == "BadTopic" && group["pending"] == 1 && group["application"] == .null)
      let table = try await run("list")
      #expect(table.lines.count == 2 && table.lines.first?.hasPrefix("reason ") == true)

      let line = try await run("list", "--all")
      let place = try #require(line.lines.first?.split(separator: " ").first.map(String.init))
      let shown = try await run("show", place)
      #expect(shown.status == 0 && shown.output.contains("name=apns-topic value=com/example") && !shown.output.contains("secret"))
      #expect(try await run("show", Self.id.uppercased(), "--payload").output.contains("secret"))

      let nothing = try await run("redrive", "--reason", "BadTopik")
      #expect(nothing.status == 1 && nothing.output.isEmpty)
      #expect(nothing.errors.contains("that does not select the one dead letter"), "it said: \(nothing.errors)")
      let filtered = try await run("list", "--app", "a.b")
      #expect(filtered.status == 1 && filtered.errors.contains("that does not select the one dead letter"), "it said: \(filtered.errors)")
      let left = try await run("redrive", place)
      #expect(left.status == 1 && left.output.contains("it would be rejected again: BadTopic: apns-topic"), "it said: \(left.output)")
      let dry = try await run("redrive", place, "--set", "apns-topic=com.example", "--dry-run")
      #expect(dry.status == 0 && dry.output.contains("would be redriven"), "it said: \(dry.output)")
      let redriven = try await run("redrive", place, "--set", "apns-topic=com.example", "--json")
      #expect(redriven.status == 0, "it said: \(redriven.errors)\(redriven.output)")
      let lines = try redriven.lines.map { try JSONValue(parsing: $0) }
      #expect(lines.map { $0["result"]?.stringValue } == ["redriven", nil] && lines.last?["written"] == 1)
      let handled = try await run("discard", place)
      #expect(handled.status == 0 && handled.output.contains("were redriven or discarded before"), "it said: \(handled.output)")
      #expect(try await run("discard", place, "--again", "--note", "enough").status == 0)
      let after = try await run("show", place)
      #expect(after.output.contains("state         redriven") && after.output.contains("note=enough"))
      try await up.stop()
    }
  }
}
