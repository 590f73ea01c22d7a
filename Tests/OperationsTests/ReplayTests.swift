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
        let plan = ReplayPlan(run: "a", cluster: "c", brokers: "b", topic: "t", selection: ReplaySelection(), partitions: [part])
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
          part.read(offset, isMeant[Int(offset)] ? .written : .passedOver, isAwaited: isMeant[Int(offset)])
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
            part.found(broker.log[Int(place)], at: place)
          }
        }
      }
      let wanted = (0..<count).filter { isMeant[Int($0)] }
      #expect(broker.log == wanted, "seed \(seed)")
      #expect(part.counts[.written] == wanted.count, "seed \(seed)")
    }
  }

  @Test func aPlanIsReadAsItWasWritten() throws {
    var selection = ReplaySelection()
    selection.filter[.application] = "com.example"
    selection.filter[.target] = "user:ada"
    selection.filter[.id] = "6f0c1a2e-0a4b-4c8e-9d52-3f6f6a9b1c11"
    selection.filter[.collapseID] = "order\"7"
    selection.filter.values = [.init(try #require(JSONPointer("/order/a~1b")), ["n": 7])]
    var part = ReplayedPartition(3, 10..<20, end: 99)
    part.lastTimestamp = 1_769_860_800_000
    (selection.published.from, selection.isNew) = (5, true)
    let plan = ReplayPlan(
      run: "0a1b", cluster: "east", brokers: "", topic: "requests", selection: selection,
      partitions: [part, ReplayedPartition(4, 0..<0, end: 0)])
    let read = try ReplayPlan(Array(plan.json.text.utf8))
    #expect(read.json == plan.json)
    #expect(read.selection.filter == selection.filter && read.topic == "requests")
    #expect(read.partitions.map(\.lastTimestamp) == [1_769_860_800_000, nil])
    #expect(read.selection.published == selection.published && read.selection.isNew && !read.selection.isOfUnfinished)
  }

  @Test(arguments: [
    ("", "not the file of a replay"), ("[]", "not the file of a replay"), ("{}", "not the file of a replay"),
    (#"{"carillonReplay":2}"#, "another version"), (#"{"carillonReplay":3}"#, "'run'"),
    (#"{"carillonReplay":3,"run":"../x","cluster":"","brokers":"","topic":""}"#, "'run'"),
    (#"{"carillonReplay":3,"run":"a","cluster":"","brokers":"","topic":"","filter":[]}"#, "'filter'"),
    (
      #"{"carillonReplay":3,"run":"a","cluster":"","brokers":"","topic":"","filter":{},"onlyUnfinished":false,"asNew":false,"from":"x"}"#,
      "'from'"
    ),
    (
      #"{"carillonReplay":3,"run":"a","cluster":"","brokers":"","topic":"","filter":{},"onlyUnfinished":false,"asNew":false}"#,
      "'partitions'"
    ),
    (
      #"{"carillonReplay":3,"run":"a","cluster":"","brokers":"","topic":"","filter":{},"onlyUnfinished":false,"asNew":false,"partitions":[{"partition":0,"from":5,"to":2,"done":5,"written":0}]}"#,
      "'partitions'"
    ),
    (
      #"{"carillonReplay":3,"run":"a","cluster":"","brokers":"","topic":"","filter":{},"onlyUnfinished":false,"asNew":false,"partitions":[{"partition":0,"from":0,"to":9,"done":99,"written":0,"counts":{}}]}"#,
      "'partitions'"
    ),
  ])
  func whatIsNoPlanIsRefusedWithItsFault(_ text: String, _ fault: String) {
    do {
      _ = try ReplayPlan(Array(text.utf8))
      Issue.record("it was read: \(text)")
    } catch { #expect(error.description.contains(fault), "\(error)") }
  }
}
