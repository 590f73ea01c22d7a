import Notifications
import TestSupport
import Testing

@testable import Operations

/// How it stands with letters, against a model that remembers everything.
@Suite(.onThreadsOfTheirOwn) struct LetterLedgerTests {
  /// A letter of a request that may have come before.
  static func letter(_ place: RecordPlace, first: Int64, reason: String, time: Int64 = 0, application: Name? = nil) -> LetterFacts {
    let source = SourceCoordinates(topic: "requests", partition: 0, offset: first, timestamp: 1)
    var letter = DeadLetter(poison: "x", tries: 1, source: source)
    letter.reason = reason
    return LetterFacts(
      place: place, time: time, letter: letter, first: source, hasOrigin: false,
      id: NotificationID(high: 0, low: UInt64(first)), isDerivedID: false, application: application, target: nil)
  }

  @Test(arguments: 0..<(isComplete ? 50 : 10) as Range<UInt64>) func whateverTheOrderItStandsAsTheModelSays(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var letters: [LetterFacts] = []
    var states: [(state: LetterState, place: RecordPlace)] = []
    // Near each other, and far apart: around the ends of blocks, too.
    let bases: [Int64] = [0, 4_090, 1 << 40]
    for _ in 0..<Int.random(in: 1...200, using: &random) {
      let place = RecordPlace(
        partition: .random(in: 0..<3, using: &random),
        offset: bases[.random(in: 0..<3, using: &random)] + .random(in: 0..<40, using: &random))
      guard !letters.contains(where: { $0.place == place }) else { continue }
      let facts = Self.letter(
        place, first: .random(in: 0..<20, using: &random), reason: ["A", "B"][.random(in: 0..<2, using: &random)])
      letters.append(facts)
      for _ in 0..<Int.random(in: 0..<3, using: &random) {
        let kind = LetterState.Kind.allCases[.random(in: 0..<2, using: &random)]
        // Some lie before their letter, or in another partition, where nobody writes them.
        let behind = RecordPlace(
          partition: place.partition + (Int.random(in: 0..<8, using: &random) == 0 ? 1 : 0),
          offset: place.offset + .random(in: -2..<10, using: &random))
        states.append((LetterState(kind, of: place, by: "x", at: 1), behind))
      }
    }
    var ledger = LetterLedger()
    states.shuffle(using: &random)
    for (state, place) in states { ledger.note(state, at: place) }

    var groups = LetterGroups()
    var expected: [String: (count: Int, pending: Int)] = [:]
    letters.shuffle(using: &random)
    for facts in letters {
      let kinds = states.filter { state, place in
        state.letter == facts.place && place.partition == facts.place.partition && place.offset > facts.place.offset
      }.map(\.state.kind)
      let standing: LetterStanding = kinds.contains(.redriven) ? .redriven : kinds.isEmpty ? .pending : .discarded
      #expect(ledger.standing(of: facts.place) == standing)
      groups.take(LetterSummary(facts: facts, standing: standing))
      var group = expected[facts.letter.reason] ?? (0, 0)
      group = (group.count + 1, group.pending + (standing == .pending ? 1 : 0))
      expected[facts.letter.reason] = group
    }
    #expect(groups.count == letters.count)
    for group in groups.sorted() {
      #expect(group.count == expected[group.reason]?.count)
      #expect(group.counts[.pending] ?? 0 == expected[group.reason]?.pending)
    }
  }

  @Test func inventedApplicationsMakeNoEndlessList() {
    var groups = LetterGroups()
    for number in 0..<30_000 as Range<Int64> {
      let letter = Self.letter(
        RecordPlace(partition: 0, offset: number), first: number, reason: "r\(number % 3)", time: number, application: "a\(number)")
      groups.take(LetterSummary(facts: letter, standing: .pending))
    }
    let sorted = groups.sorted()
    #expect(sorted.count == LetterGroups.maximum + 3 && groups.count == 30_000)
    #expect(sorted.first?.application == nil && sorted.first?.newest ?? 0 >= 29_997)
    for number in 0..<30_000 as Range<Int64> {
      let letter = Self.letter(RecordPlace(partition: 1, offset: number), first: number, reason: "s\(number)")
      groups.take(LetterSummary(facts: letter, standing: .pending))
    }
    #expect(groups.sorted().count <= 2 * LetterGroups.maximum + 1 && groups.count == 60_000)
  }

  @Test func aFilterTakesWhatItNames() throws {
    let letter = Self.letter(RecordPlace(partition: 1, offset: 2), first: 7, reason: "BadTopic", time: 100, application: "a.b")
    var filter = LetterFilter()
    #expect(filter.isEverything && filter.matches(letter, .redriven))
    filter.standing = .pending
    #expect(filter.isEverything && !filter.matches(letter, .redriven) && filter.matches(letter, .pending))
    filter.places = [RecordPlace(partition: 1, offset: 3)]
    #expect(!filter.isEverything && !filter.matches(letter))
    filter.ids = [letter.id]
    #expect(filter.matches(letter))
    (filter.reasons, filter.applications) = (["BadTopic", "Poison"], ["a.b"])
    #expect(filter.matches(letter))
    filter.time = TimeRange(from: 100, to: 101)
    #expect(filter.matches(letter))
    filter.time = TimeRange(from: 101)
    #expect(!filter.matches(letter))
    filter = LetterFilter()
    filter.applications = ["a"]
    #expect(!filter.matches(letter))
  }
}
