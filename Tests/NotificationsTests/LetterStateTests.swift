import TestSupport
import Testing

@testable import Notifications

/// What was done with a dead letter, as a record says it.
@Suite struct LetterStateTests {
  private let place = RecordPlace(partition: 3, offset: 1742)

  @Test func aStateIsReadAsItWasWritten() throws {
    let id = try #require(NotificationID("123e4567-e89b-12d3-a456-42665544000a"))
    for state in [
      LetterState(.discarded, of: place, by: "ada@shop", at: 1_700_000_000_123),
      LetterState(
        .redriven, of: place, by: "", at: 0, request: RecordPlace(partition: 0, offset: .max), id: id, note: "the sender was mended\n"),
    ] {
      #expect(LetterState(headers: state.headers) == state)
      #expect(state.headers.allSatisfy { $0.name.hasPrefix(LetterStateHeader.prefix) })
      #expect(DeadLetter(headers: state.headers) == nil)
    }
    for header in DeadLetterHeader.allCases { #expect(header.rawValue.hasPrefix(LetterStateHeader.prefix)) }
  }

  @Test func aLetterIsNoStateWhateverItsProducerWrote() {
    let letter = DeadLetter(poison: "x", tries: 5, source: SourceCoordinates(topic: "t", partition: 3, offset: 1, timestamp: 5))
    let headers = LetterState(.redriven, of: place, by: "a producer", at: 1).headers + letter.headers
    #expect(LetterState(headers: headers) == nil)
    #expect(DeadLetter(headers: headers) == letter)
  }

  @Test(arguments: ["", "1", "1:", ":1", "-1:1", "1:-1", "1:1:1", "2147483648:1", "1:9223372036854775808", "+1:1", "1:1 ", "１:1"])
  func whatIsNoPlaceIsRefused(_ text: String) {
    #expect(RecordPlace(text) == nil)
    let headers = [(name: "carillon-dead-letter-state", value: "redriven"), (name: "carillon-dead-letter-letter", value: text)]
    #expect(LetterState(headers: headers) == nil)
  }

  @Test func aPlaceIsReadAsItWasWritten() {
    #expect(RecordPlace("3:1742") == place && place.description == "3:1742")
    #expect(RecordPlace("2147483647:9223372036854775807") == RecordPlace(partition: .max, offset: .max))
    #expect(RecordPlace(partition: 1, offset: 9) < RecordPlace(partition: 2, offset: 0))
  }

  @Test func textsThatAreTooLongAreCutBetweenCharacters() throws {
    let state = LetterState(
      .discarded, of: place, by: String(repeating: "é", count: 1_000), at: 0, note: "a" + String(repeating: "🧵", count: 900))
    let read = try #require(LetterState(headers: state.headers))
    #expect(read.by == String(repeating: "é", count: 512))
    #expect(read.note == "a" + String(repeating: "🧵", count: 255))
  }

  @Test func hostileHeadersAreReadOrRefused() {
    let state = LetterState(.redriven, of: place, by: "ada@shop", at: 1_700_000_000_123, request: place, note: "n")
    let states = [state, LetterState(.discarded, of: place, by: "ada@shop", at: 0)]
    let corpus = states.map { Array($0.headers.map { "\($0.name): \($0.value)" }.joined(separator: "\n").utf8) }
    let names = LetterStateHeader.allCases.map { "\($0.rawValue): " } + ["\n", "carillon-dead-letter-reason: x\n", "discarded", "9:9"]
    let failures = Fuzz("letter states", corpus: corpus, tokens: names).run { text, _ in
      let headers = String(decoding: text, as: UTF8.self).split(separator: "\n").map { line in
        let parts = line.split(separator: ": ", maxSplits: 1, omittingEmptySubsequences: false)
        return (name: String(parts[0]), value: parts.count > 1 ? String(parts[1]) : "")
      }
      guard let state = LetterState(headers: headers) else { return nil }
      let again = LetterState(headers: state.headers)
      if again?.letter != state.letter || again?.kind != state.kind { return "the state is not read as it was written" }
      return DeadLetter(headers: headers) == nil ? nil : "it is a letter"
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
