import TestSupport
import Testing

@testable import Kafka

/// What the tracker promises, told the slow way: a list of all records begun.
private struct NaiveTracker {
  struct Record {
    var offset: Int64
    var timestamp: Int64
    var isFinished = false
    var isSetAside = false
  }

  var records: [Record] = []
  var committable: Int64? { records.prefix { $0.isFinished }.last.map { $0.offset + 1 } }
  var committableTimestamp: Int64? { records.prefix { $0.isFinished }.last?.timestamp }

  /// Below it all records are finished or set aside; nil unless an unfinished one is set aside.
  var beyondSetAside: Int64? {
    guard records.contains(where: { $0.isSetAside && !$0.isFinished }) else { return nil }
    return records.prefix { $0.isFinished || $0.isSetAside }.last.map { $0.offset + 1 }
  }

  /// Nothing is left to begin below an offset.
  mutating func reachEnd(_ offset: Int64, _ timestamp: Int64) {
    guard offset - 1 > records.last?.offset ?? -1 else { return }
    records.append(Record(offset: offset - 1, timestamp: records.last?.timestamp ?? timestamp, isFinished: true))
  }
  var oldest: Record? { records.first { !$0.isFinished } }
  var inFlight: Int { records.count { !$0.isFinished } }
}

@Suite struct PartitionTrackerTests {
  @Test(arguments: 0..<(isComplete ? 40 : 8)) func tellsTheSameAsANaiveModel(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var tracker = PartitionTracker(limit: 1_000_000)
    var naive: [Int: NaiveTracker] = [:]
    var generations: [Int: UInt32] = [:]
    var open: [(ticket: RecordTicket, place: Int)] = []
    var stale: [RecordTicket] = []
    for _ in 0..<3_000 {
      let partition = Int(random.next() % 3)
      switch random.next() % 100 {
      case 0..<2:
        generations[partition, default: 0] += 1
        tracker.assign(partition, generation: generations[partition] ?? 0)
        naive[partition] = NaiveTracker()
        stale += open.filter { $0.ticket.partition == partition }.map(\.ticket)
        open.removeAll { $0.ticket.partition == partition }
      case 2:
        tracker.revoke(partition)
        naive[partition] = nil
        stale += open.filter { $0.ticket.partition == partition }.map(\.ticket)
        open.removeAll { $0.ticket.partition == partition }
      case 3..<8:
        if let ticket = stale.randomElement(using: &random) {
          let counted = tracker.finish(ticket)
          #expect(!counted, "a revoked assignment's ticket counts")
        }
      case 8..<14:
        let (offset, timestamp) = ((naive[partition]?.records.last?.offset ?? -1) + Int64(random.next() % 5), Int64(random.next() % 1_000))
        let generation = generations[partition] ?? 0
        if generation > 1 { tracker.reachEnd(partition, generation: generation - 1, offset: offset + 100) }
        tracker.reachEnd(partition, generation: generation, offset: offset, timestamp: timestamp)
        naive[partition]?.reachEnd(offset, timestamp)
      case 14..<55:
        let offset = (naive[partition]?.records.last?.offset ?? -1) + 1 + Int64(random.next() % 3)
        let generation = generations[partition] ?? 0
        if generation > 1, random.next() % 4 == 0 {
          let late = tracker.begin(partition, generation: generation - 1, offset: offset)
          #expect(late == .ignored, "what was read in an earlier assignment is begun in a later one")
        }
        let timestamp = Int64(random.next() % 1_000_000)
        let beginning = tracker.begin(partition, generation: generation, offset: offset, timestamp: timestamp)
        if case .begun(let ticket) = beginning {
          open.append((ticket, naive[partition]?.records.count ?? 0))
          naive[partition]?.records.append(.init(offset: offset, timestamp: timestamp))
        } else {
          #expect(beginning == .ignored && naive[partition] == nil)
        }
      case 55..<60:
        if let ticket = stale.randomElement(using: &random) { tracker.setAside(ticket) }
        guard let (ticket, place) = open.randomElement(using: &random) else { continue }
        tracker.setAside(ticket)
        naive[Int(ticket.partition)]?.records[place].isSetAside = true
      default:
        guard !open.isEmpty else { continue }
        let (ticket, place) = open.remove(at: Int(random.next() % UInt64(open.count)))
        let first = tracker.finish(ticket)
        let second = tracker.finish(ticket)
        #expect(first && !second, "a ticket counts once")
        naive[Int(ticket.partition)]?.records[place].isFinished = true
      }
      for (index, model) in naive {
        #expect(tracker.progress(of: index)?.committable == model.committable)
        #expect(tracker.inFlight(of: index) == model.inFlight)
        let progress = tracker.progress(of: index)
        #expect(progress?.oldest == model.oldest?.offset && progress?.oldestTimestamp == model.oldest?.timestamp)
        #expect(progress?.newest == model.records.last?.offset && progress?.committable == model.committable)
        #expect(model.committable == nil || progress?.committableTimestamp == model.committableTimestamp)
      }
      let beyond = Dictionary(uniqueKeysWithValues: tracker.beyondSetAside.map { ($0.partition, $0.offset) })
      #expect(beyond == naive.compactMapValues(\.beyondSetAside))
      #expect(tracker.inFlight == naive.values.reduce(0) { $0 + $1.inFlight })
    }
  }

  @Test func aTicketOfAnotherTrackerChangesNothing() {
    var former = PartitionTracker(limit: 10)
    var tracker = PartitionTracker(limit: 10)
    former.assign(0, generation: 1)
    tracker.assign(0, generation: 1)
    guard case .begun(let old) = former.begin(0, generation: 1, offset: 5),
      case .begun(let new) = tracker.begin(0, generation: 1, offset: 7)
    else {
      Issue.record("neither has room")
      return
    }
    #expect(!tracker.isCurrent(old) && tracker.isCurrent(new))
    #expect(tracker.finish(old) == false && tracker.progress(of: 0)?.committable == nil)
    #expect(tracker.finish(new) && tracker.progress(of: 0)?.committable == 8)
  }

  @Test func asksForEachOffsetOnceAndNeverForAnOlderOne() {
    var tracker = PartitionTracker(limit: 10)
    tracker.assign(0, generation: 1)
    let tickets = begin(&tracker, 0, 5..<9)
    tracker.finish(tickets[1])
    expectNothingAdvanced(&tracker)
    tracker.finish(tickets[0])
    let first = tracker.takeAdvanced()
    #expect(first == [CommitOffset(partition: 0, generation: 1, offset: 7)])
    expectNothingAdvanced(&tracker)
    tracker.committed(first[0], as: .again)
    let again = tracker.takeAdvanced()
    #expect(again == first)
    tracker.committed(first[0], as: .givenUp)
    expectNothingAdvanced(&tracker)
    tracker.finish(tickets[2])
    let second = tracker.takeAdvanced()
    #expect(second.map(\.offset) == [8])
    tracker.committed(second[0], as: .confirmed)
    tracker.committed(first[0], as: .confirmed)
    tracker.committed(second[0], as: .again)
    expectNothingAdvanced(&tracker, "a confirmed offset is not asked for again")
  }

  @Test func aSlowRecordStopsTheOthersOnlyWhenTooManyAreFinishedBehindIt() {
    var tracker = PartitionTracker(limit: 4, spanLimit: 6)
    tracker.assign(0, generation: 1)
    tracker.assign(1, generation: 1)
    var tickets = begin(&tracker, 0, 0..<3)
    _ = begin(&tracker, 1, 0..<1)
    expectBeginning(&tracker, 0, 3, is: .full, "as many as allowed are in flight, in all partitions together")
    tracker.finish(tickets[1])
    tracker.finish(tickets[2])
    tickets += begin(&tracker, 0, 3..<5)
    #expect(tickets.count == 5, "what is finished out of order leaves its room to others")
    tracker.finish(tickets[3])
    expectBeginning(&tracker, 0, 5, is: .full, "but not without an end")
    expectBeginning(&tracker, 1, 1, is: .full, "in all partitions together")
    #expect(!tracker.hasRoom && tracker.inFlight == 3 && tracker.span == 6)
    tracker.finish(tickets[0])
    #expect(tracker.hasRoom && tracker.inFlight == 2 && tracker.span == 2)
    #expect(begin(&tracker, 0, 5..<7).count == 2)
  }

  @Test func aRecordThatComesAgainIsIgnored() {
    var tracker = PartitionTracker(limit: 10)
    tracker.assign(0, generation: 1)
    _ = begin(&tracker, 0, 0..<3)
    expectBeginning(&tracker, 0, 2, is: .ignored)
    #expect(tracker.inFlight == 3)
  }

  /// A lane that rewinds reads again what follows; what it had read before and not begun must not stand for that.
  @Test func whatWasReadBeforeGoingBackDoesNotHideWhatIsReadAfterIt() {
    var tracker = PartitionTracker(limit: 10)
    tracker.assign(0, generation: 1)
    _ = begin(&tracker, 0, 5..<8)
    tracker.assign(0, generation: 2)
    expectBeginning(&tracker, 0, 8, is: .ignored)
    guard case .begun(let ticket) = tracker.begin(0, generation: 2, offset: 5) else {
      return #expect(Bool(false), "what comes again is not begun")
    }
    tracker.finish(ticket)
    #expect(tracker.progress(of: 0)?.committable == 6)
  }

  private func expectNothingAdvanced(
    _ tracker: inout PartitionTracker, _ what: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let advanced = tracker.takeAdvanced()
    #expect(advanced.isEmpty, what, sourceLocation: sourceLocation)
  }

  private func expectBeginning(
    _ tracker: inout PartitionTracker, _ partition: Int, _ offset: Int64, is wanted: PartitionTracker.Beginning, _ what: Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let beginning = tracker.begin(partition, generation: 1, offset: offset)
    #expect(beginning == wanted, what, sourceLocation: sourceLocation)
  }

  private func begin(_ tracker: inout PartitionTracker, _ partition: Int, _ offsets: Range<Int64>) -> [RecordTicket] {
    offsets.compactMap { if case .begun(let ticket) = tracker.begin(partition, generation: 1, offset: $0) { ticket } else { nil } }
  }
}
