import Kafka
import Notifications
import Testing

@testable import Command
@testable import Operations

/// What a terminal shows of many dead letters.
@Suite struct LetterSummaryTests {
  @Test func `a list has as many lines as the screen has room for, and says how many it leaves out`() {
    var screen = Screenful(height: 24)
    for number in 0..<2_000 { screen.take { "letter \(number)" } }
    let lines = screen.lines(below: ["reason", "BadTopic"], all: "--no-summary prints all")
    #expect(lines.count == 23 && lines.prefix(4) == ["reason", "BadTopic", "", "letter 0"])
    #expect(lines.last == "… and 1981 more: --no-summary prints all")
  }

  @Test func `what fits is shown, and nothing is left out`() {
    var screen = Screenful(height: 24)
    for number in 0..<3 { screen.take { "letter \(number)\n    goes on" } }
    #expect(screen.lines(below: ["summary"], all: "") == ["summary", ""] + (0..<3).map { "letter \($0)\n    goes on" })
  }

  @Test func `a dry run is summed up by reason, application and time, and by why letters would be left`() throws {
    var summary = RedriveSummary(isDiscard: false)
    for number in 0..<2_000 as Range<Int64> {
      let letter = try Self.letter(reason: number % 4 == 0 ? "MissingTopic" : "BadTopic", time: 1_000 * number)
      summary.take(letter, refusal: number % 4 == 0 ? "it would be rejected again" : nil)
    }
    let table = summary.table(LetterPrinter(prefix: "", now: 2_000_000)).map { $0.split(separator: " ").joined(separator: " ") }
    #expect(table[0] == "reason application letters redriven left oldest newest")
    #expect(table[1] == "BadTopic com.example 1500 1500 0 33 min 19 s 1 s")
    #expect(table[2] == "MissingTopic com.example 500 0 500 33 min 20 s 4 s")
    #expect(summary.reasons == ["       500  it would be rejected again"])
  }

  @Test func `however many applications there are, few lines tell of them, and no letter is forgotten`() throws {
    var summary = RedriveSummary(isDiscard: false)
    for number in 0..<5_000 {
      summary.take(try Self.letter(reason: "BadTopic", application: "a\(number)", time: 0), refusal: "refused \(number)")
    }
    let counts = summary.table(LetterPrinter(prefix: "", now: 0)).dropFirst().compactMap { line in
      line.split(separator: " ").first { Int($0) != nil }
    }
    #expect(counts.count == 11 && counts.compactMap { Int($0) }.reduce(0, +) == 5_000)
    #expect(summary.reasons.count == 11)
    #expect(summary.reasons.compactMap { $0.split(separator: " ").first.flatMap { Int($0) } }.reduce(0, +) == 5_000)
  }

  private static func letter(reason: String, application: Name = "com.example", time: Int64) throws -> LetterSummary {
    var letter = DeadLetter(poison: "", tries: 1, source: SourceCoordinates(topic: "requests", partition: 0, offset: 1, timestamp: 1))
    letter.reason = reason
    let id = try #require(NotificationID("6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"))
    let facts = LetterFacts(
      place: RecordPlace(partition: 0, offset: time), time: time, letter: letter, first: letter.source, hasOrigin: false, id: id,
      isDerivedID: false, application: application, target: nil)
    return LetterSummary(facts: facts, standing: .pending, times: 1)
  }
}
