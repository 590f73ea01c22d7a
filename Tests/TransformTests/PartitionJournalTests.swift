import Kafka
import Notifications
import TestSupport
import Testing

@testable import Transform

/// The journal of a partition, by random histories beside a model that only counts.
@Suite struct PartitionJournalTests {
  /// Tickets can be had of a tracker alone.
  private static func tickets(_ count: Int) -> [RecordTicket] {
    var tracker = PartitionTracker(limit: count + 1)
    tracker.assign(0, generation: 1)
    return (0..<count).compactMap { offset in
      if case .begun(let ticket) = tracker.begin(0, generation: 1, offset: Int64(offset)) { ticket } else { nil }
    }
  }

  private static func judgement(_ offset: Int) -> JournalJudgement {
    JournalJudgement(.duplicate, revision: Revision(timestamp: 1, partition: 0, offset: UInt64(offset)))
  }

  private static func offsets(_ value: [UInt8]) throws -> [Int64] {
    try value.withUnsafeBytes { bytes in
      let headers = [(name: "layout", value: "1"), (name: "worker", value: "w"), (name: "incarnation", value: "0")]
      var offsets: [Int64] = []
      try JournalRecord(headers: headers, value: bytes).forEachEntry(in: bytes, partition: 0) { offsets.append($0.offset) }
      return offsets
    }
  }

  /// A request is finished once, and only when Kafka has every record that names it; none is forgotten, whatever fails and is sent again.
  @Test func aRequestIsFinishedOnceAndOnlyWhenAllThatNamesItIsDurable() throws {
    for seed in 0..<(isComplete ? 200 : 40) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      let tickets = Self.tickets(60)
      let journal = PartitionJournal(partition: 0, incarnation: 0)
      // The model: which offsets Kafka has, what is on its way, and who was finished.
      var (durable, finished): (Set<Int64>, [RecordTicket]) = ([], [])
      var inFlight: [UInt32: [UInt8]] = [:]
      var (next, last): (Int, UInt32) = (0, 0)
      func take(_ back: [RecordTicket]) throws {
        for ticket in back {
          #expect(!finished.contains(ticket), "seed \(seed): finished twice")
          let offset = Int64(try #require(tickets.firstIndex(of: ticket)))
          #expect(durable.contains(offset), "seed \(seed): finished before it is durable")
          finished.append(ticket)
        }
      }
      func step(_ choice: Int) throws {
        switch choice {
        case 0..<4 where next < tickets.count:
          journal.writer.append(offset: Int64(next), timestamp: 5, Self.judgement(next), now: 9)
          if journal.wait(tickets[next]) { try take([tickets[next]]) }
          next += 1
        case 4, 5:
          last += 1
          if !journal.seal(last) { last -= 1 }
        case 6:
          journal.send { number, _, value in
            #expect(inFlight[number] == nil)
            guard Bool.random(using: &random) else { return false }
            inFlight[number] = value
            return true
          }
        default:
          guard let number = inFlight.keys.sorted().randomElement(using: &random), let value = inFlight.removeValue(forKey: number) else {
            return
          }
          let isDurable = choice != 7
          if isDurable { durable.formUnion(try Self.offsets(value)) }
          try take(journal.reported(number, isDurable: isDurable))
        }
      }
      for _ in 0..<400 { try step(Int.random(in: 0..<10, using: &random)) }
      // Everything that was taken comes to its end when nothing fails any more.
      for _ in 0..<1_000 where next < tickets.count || journal.openBytes > 0 || journal.bytes > 0 || !inFlight.isEmpty {
        for choice in [0, 4, 6, 8, 8, 8] { try step(choice) }
      }
      try #require(Set(finished) == Set(tickets), "seed \(seed): forgotten")
    }
  }

  @Test func aRequestWhosePagesLieInSeveralRecordsWaitsForTheFirst() {
    let ticket = Self.tickets(1)[0]
    let journal = PartitionJournal(partition: 0, incarnation: 0)
    func page(_ closing: JournalEntry.Closing?) {
      journal.writer.append(offset: 0, timestamp: 5, count: 0, closing: closing, now: 9) { _, _ in }
    }
    page(nil)
    _ = journal.seal(1)
    page(JournalEntry.Closing())
    #expect(!journal.wait(ticket))
    _ = journal.seal(2)
    journal.send { _, _, _ in true }
    #expect(journal.reported(2, isDurable: true).isEmpty, "the first page is not durable yet")
    #expect(journal.reported(1, isDurable: false).isEmpty)
    journal.send { number, _, _ in number == 1 }
    #expect(journal.reported(1, isDurable: true) == [ticket])
  }

  @Test func itRetainsARecordUntilKafkaHasItAndAllBeforeIt() {
    let journal = PartitionJournal(partition: 0, incarnation: 0)
    var sizes: [Int] = []
    for number in 1...3 {
      for offset in 0..<number { journal.writer.append(offset: Int64(offset), timestamp: 5, Self.judgement(offset), now: 9) }
      #expect(journal.bytes == sizes.reduce(journal.openBytes, +))
      sizes.append(journal.openBytes)
      _ = journal.seal(UInt32(number))
    }
    journal.send { _, _, _ in true }
    _ = journal.reported(2, isDurable: true)
    _ = journal.reported(1, isDurable: false)
    #expect(journal.bytes == sizes.reduce(0, +), "the second has to wait, and the first is sent again")
    journal.send { _, _, _ in true }
    _ = journal.reported(1, isDurable: true)
    #expect(journal.bytes == sizes[2])
    _ = journal.reported(3, isDurable: true)
    #expect(journal.bytes == 0)
  }

  @Test func requestsOfATopicMadeAgainHaveRecordsOfTheirOwn() {
    let journal = PartitionJournal(partition: 0, incarnation: 0)
    journal.writer.append(offset: 7, timestamp: 5, Self.judgement(7), now: 9)
    #expect(journal.enter(incarnation: 1, 1))
    journal.writer.append(offset: 0, timestamp: 6, Self.judgement(0), now: 9)
    _ = journal.seal(2)
    var incarnations: [UInt32] = []
    journal.send { _, incarnation, _ in
      incarnations.append(incarnation)
      return true
    }
    #expect(incarnations == [0, 1])
  }
}
