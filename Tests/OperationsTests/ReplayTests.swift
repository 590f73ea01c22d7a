import JSON
import Notifications
import TestSupport
import Testing

@testable import Operations

/// What a replay remembers of where it is, and what it may do.
@Suite struct ReplayTests {
  /// A partition's log as a broker has it: which offsets of the source were written, in their order.
  private struct Broker {
    var log: [Int64] = []
    var next: Int64 { Int64(log.count) }
  }

  /// By random histories: reads, answers in any bundles, saves at any moment, and ends without a word, after which what was on its way may
  /// have arrived or not. Whoever goes on with what was saved writes each record that is meant once, in its order.
  @Test func howeverOftenItIsInterruptedEachRecordIsWrittenOnce() {
    for seed in 0..<(isComplete ? 400 : 80) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      let count = Int64.random(in: 0...60, using: &random)
      let isMeant = (0..<count).map { _ in Int.random(in: 0..<3, using: &random) > 0 }
      var broker = Broker()
      var saved = ReplayedPartition(0, 0..<count, end: 0)
      var part = saved
      var underWay: [Int64] = []
      func plan(_ part: ReplayedPartition) -> ReplayedPartition {
        let plan = ReplayPlan(
          run: "a", cluster: "c", brokers: "b", selection: ReplaySelection(topic: "t", destination: "t"), partitions: [part])
        guard let read = try? ReplayPlan(Array(plan.json.text.utf8)).partitions[0] else {
          Issue.record("the plan cannot be read again")
          return part
        }
        return read
      }
      while !part.isComplete {
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<9:
          guard part.position < count else {
            part.end()
            continue
          }
          let offset = part.position
          let fate: ReplayFate = isMeant[Int(offset)] ? .written(bytes: 3) : .skipped(.passedOver)
          part.read(offset, fate, isAwaited: fate.isWritten)
          if isMeant[Int(offset)] { underWay.append(offset) }
        case 9..<16:
          guard !underWay.isEmpty else { continue }
          let place = broker.next
          broker.log.append(underWay.removeFirst())
          // Of a record that was sent again the broker may not say where it lies.
          part.acknowledged(at: Bool.random(using: &random) ? place : Int64(-1))
        case 16..<19: saved = plan(part)
        default:
          let arrived = Int.random(in: 0...underWay.count, using: &random)
          broker.log += underWay.prefix(arrived)
          underWay = []
          part = saved
          for place in part.written..<broker.next where broker.log[Int(place)] >= part.done {
            part.found(broker.log[Int(place)], at: place, bytes: 3)
          }
        }
      }
      let wanted = (0..<count).filter { isMeant[Int($0)] }
      #expect(broker.log == wanted, "seed \(seed)")
      #expect(part.counts[.written] == wanted.count, "seed \(seed)")
      #expect(part.counts[.bytes] == 3 * part.counts[.written])
    }
  }

  @Test func aRateIsKeptInTheLongRunAndPausesAreNotMadeUpFor() {
    for (records, bytes, size, expected) in [(1_000, nil, 10, 1_000), (nil, 10_000, 100, 100), (500, 1 << 20, 10, 500)]
      as [(Int?, Int?, Int, Int)]
    {
      var rate = ReplayRate(records: records, bytes: bytes)
      var now: UInt64 = 1_000_000
      var written = 0
      func pass(milliseconds: UInt64) {
        for _ in 0..<(milliseconds / 5) {
          now += 5
          while rate.allows(at: now) {
            rate.wrote(bytes: size)
            written += 1
          }
        }
      }
      pass(milliseconds: 10_000)
      #expect(abs(written - 10 * expected) <= expected / 5, "\(written) in ten seconds, and not \(10 * expected)")
      now += 60_000
      written = 0
      pass(milliseconds: 1_000)
      #expect(written <= expected + expected / 5, "\(written) in the second after a pause")
    }
    var free = ReplayRate(records: nil, bytes: nil)
    for _ in 0..<1_000 { free.wrote(bytes: 1 << 20) }
    let isFree = free.allows(at: 1)
    #expect(isFree)
  }

  @Test func aPlanIsReadAsItWasWritten() throws {
    var selection = ReplaySelection(topic: "requests", destination: "requests")
    selection.filter.fields = [
      .application: "com.example", .target: "user:ada", .id: "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11", .collapseID: "order\"7",
      .pushType: "alert",
    ]
    selection.filter.values = [
      try #require(.init(#"/order/id=7"#)), try #require(.init(#"/a~1b=text"#)), try #require(.init(#"/c={"d":[1]}"#)),
    ]
    var part = ReplayedPartition(3, 10..<20, end: 99)
    part.lastTimestamp = 1_769_860_800_000
    selection.published.from = 5
    let plan = ReplayPlan(
      run: "0a1b", cluster: "east", brokers: "", selection: selection, partitions: [part, ReplayedPartition(4, 0..<0, end: 0)])
    let read = try ReplayPlan(Array(plan.json.text.utf8))
    #expect(read.json == plan.json)
    #expect(read.filter == selection.filter)
    #expect(read.partitions.map(\.lastTimestamp) == [1_769_860_800_000, nil])
    #expect(read.published == plan.published && !read.isNew)
    // An earlier program would go on with it as with a replay.
    selection.isNew = true
    let new = ReplayPlan(run: "0a1b", cluster: "east", brokers: "", selection: selection, partitions: [part])
    #expect(new.json["carillonReplay"] == 2 && plan.json["carillonReplay"] == 1)
    #expect(try ReplayPlan(Array(new.json.text.utf8)).isNew)
  }

  @Test(arguments: [
    ("", "not the file of a replay"), ("[]", "not the file of a replay"), ("{}", "not the file of a replay"),
    (#"{"carillonReplay":3}"#, "another version"), (#"{"carillonReplay":1}"#, "'run'"),
    (#"{"carillonReplay":1,"run":"../x","cluster":"","brokers":"","topic":"","destination":""}"#, "'run'"),
    (#"{"carillonReplay":1,"run":"a","cluster":"","brokers":"","topic":"","destination":"","filter":[]}"#, "'filter'"),
    (
      #"{"carillonReplay":1,"run":"a","cluster":"","brokers":"","topic":"","destination":"","filter":{},"onlyUnfinished":false,"from":"x"}"#,
      "'from'"
    ),
    (
      #"{"carillonReplay":1,"run":"a","cluster":"","brokers":"","topic":"","destination":"","filter":{},"onlyUnfinished":false}"#,
      "'partitions'"
    ),
    (
      #"{"carillonReplay":1,"run":"a","cluster":"","brokers":"","topic":"","destination":"","filter":{},"onlyUnfinished":false,"partitions":[{"partition":0,"from":5,"to":2,"done":5,"written":0}]}"#,
      "'partitions'"
    ),
    (
      #"{"carillonReplay":1,"run":"a","cluster":"","brokers":"","topic":"","destination":"","filter":{},"onlyUnfinished":false,"partitions":[{"partition":0,"from":0,"to":9,"done":99,"written":0,"counts":{}}]}"#,
      "'partitions'"
    ),
  ])
  func whatIsNoPlanIsRefusedWithItsFault(_ text: String, _ fault: String) {
    do {
      _ = try ReplayPlan(Array(text.utf8))
      Issue.record("it was read: \(text)")
    } catch { #expect(error.description.contains(fault), "\(error)") }
  }

  @Test func aConditionOnThePayloadIsAPointerAndAValue() throws {
    #expect(ReplayFilter.PayloadValue("") == nil)
    #expect(ReplayFilter.PayloadValue("/a") == nil)
    #expect(ReplayFilter.PayloadValue("a=1") == nil)
    #expect(try #require(ReplayFilter.PayloadValue("/a=1")).value == .integer(1))
    #expect(try #require(ReplayFilter.PayloadValue(#"/a="1""#)).value == .string("1"))
    #expect(try #require(ReplayFilter.PayloadValue("/a=b=c")).value == .string("b=c"))
    #expect(try #require(ReplayFilter.PayloadValue("/a=")).value == .string(""))
  }
}
