import Notifications
import TestSupport
import Testing

@testable import FanOut

@Suite struct SessionFlowTests {
  private func revision(_ number: Int) -> Revision { Revision(timestamp: UInt64(number), partition: 0, offset: UInt64(number)) }

  /// A session whose mailbox is empty.
  private func liveFlow(first: UInt64 = 0, window: Int) -> SessionFlow {
    var flow = SessionFlow(first: first, window: window)
    #expect(flow.resync() == .page(count: window))
    #expect(flow.pageEnded(isComplete: true) == .nothing)
    return flow
  }

  @Test func anIdleSessionTakesLiveRecordsAfterItsFirstPage() {
    var flow = SessionFlow(first: 5, window: 4)
    #expect(flow.live(revision(1), .init(), now: 0, head: { [] }) == .leave(.nothing))
    #expect(flow.resync() == .page(count: 4))
    #expect(flow.pageEnded(isComplete: true) == .nothing)
    #expect(flow.live(revision(2), .init(), now: 0, head: { [] }) == .send(number: 5))
    #expect(flow.live(revision(2), .init(), now: 0, head: { [] }) == .leave(.nothing), "the same record is not sent twice")
  }

  @Test func aLiveRecordDuringAPageMakesItReadAgain() {
    var flow = SessionFlow(first: 0, window: 4)
    _ = flow.resync()
    #expect(flow.live(revision(1), .init(), now: 0, head: { [] }) == .leave(.nothing))
    #expect(flow.pageEnded(isComplete: true) == .page(count: 4))
  }

  @Test func `a record that arrives after its entry was settled is left to the mailbox`() {
    var flow = SessionFlow(first: 0, window: 4)
    _ = flow.resync()
    for number in 1...2 { _ = flow.paged(revision(number), .init(), now: 0, head: { [] }) }
    _ = flow.pageEnded(isComplete: true)
    for number in 0...1 as ClosedRange<UInt64> { _ = flow.acknowledge(number) }
    #expect(flow.live(revision(2), .init(), now: 0, head: { [] }) == .leave(.nothing), "it is in flight")
    flow.deleted([0, 1])
    #expect(flow.isIdle)
    #expect(flow.live(revision(2), .init(), now: 0, head: { [] }) == .leave(.page(count: 4)), "only the mailbox knows")
    #expect(flow.pageEnded(isComplete: true) == .nothing)
    #expect(flow.live(revision(3), .init(), now: 0, head: { [] }) == .send(number: 2), "a newer one is sent at once")
    #expect(flow.live(revision(1), .init(), now: 0, head: { [] }) == .leave(.page(count: 4)))
  }

  @Test func numbersOfAnotherSessionMeanNothing() {
    var flow = SessionFlow(first: 100, window: 4)
    _ = flow.resync()
    _ = flow.paged(revision(1), .init(), now: 0, head: { [] })
    #expect(flow.acknowledge(99) == nil)
    #expect(flow.acknowledge(101) == nil)
    #expect(flow.acknowledge(.max) == nil)
    #expect(flow.acknowledge(100) != nil)
  }

  @Test func aPageThatHeldMoreThanThereWasRoomForIsReadAgain() {
    var flow = SessionFlow(first: 0, window: 4)
    #expect(flow.resync() == .page(count: 4))
    for number in 1...4 { #expect(flow.paged(revision(number), .init(), now: 0, head: { [] }) != nil) }
    _ = flow.pageEnded(isComplete: false)
    for number in 0..<2 as Range<UInt64> { _ = flow.acknowledge(number) }
    // Two of the mailbox's are being deleted: they are counted, and gone when Redis reads the page.
    #expect(flow.advance() == .page(count: 6))
    flow.deleted([0, 1])
    for number in 3...6 { _ = flow.paged(revision(number), .init(), now: 0, head: { [] }) }
    #expect(flow.paged(revision(7), .init(), now: 0, head: { [] }) == nil)
    #expect(flow.pageEnded(isComplete: true) == .nothing)
    for number in 2..<6 as Range<UInt64> { _ = flow.acknowledge(number) }
    #expect(flow.advance() != .nothing, "the seventh is still in the mailbox")
  }

  @Test func `what Redis could not delete is not sent again, and is deleted at the next resync`() {
    var flow = SessionFlow(first: 0, window: 4)
    _ = flow.resync()
    for number in 1...2 { _ = flow.paged(revision(number), .init(), now: 0, head: { [] }) }
    _ = flow.pageEnded(isComplete: true)
    for number in 0...1 as ClosedRange<UInt64> { _ = flow.acknowledge(number) }
    flow.notDeleted([0, 1])
    #expect(flow.live(revision(2), .init(), now: 0, head: { [] }) == .leave(.nothing), "the device has it")
    #expect(flow.resync() == .page(count: 6), "both still lie at the front of the mailbox")
    for number in 1...2 { #expect(flow.paged(revision(number), .init(), now: 0, head: { [] }) == nil) }
    #expect(flow.takeUndeleted().map(\.number) == [0, 1])
    #expect(flow.takeUndeleted().isEmpty, "a deletion is under way")
    _ = flow.pageEnded(isComplete: true)
    flow.notDeleted([1])
    flow.deleted([0])
    #expect(flow.takeUndeleted().map(\.revision) == [revision(2)])
    flow.deleted([1])
    #expect(flow.isIdle)
  }

  @Test(arguments: [1, 2, 17, 31])
  func `a notification that is never acknowledged takes one place of the window for ever, and nothing else`(holes: Int) {
    var model = SessionFlowModel(window: 32, maximumHoles: holes)
    for number in 1...200 { model.publish(revision(number), isLost: true) }
    model.work()
    model.hear()
    for index in 0..<holes { model.acknowledge(index, never: true) }
    model.finish()
    #expect(model.sent.count == 200)
    #expect(model.mailbox == (1...holes).map(revision))
    #expect(model.flow.unacknowledged == holes)
    // A session that caught up takes live records again.
    model.publish(revision(201), isLost: false)
    model.arrive(0)
    #expect(model.sent.count == 201)
    #expect(model.calls.isEmpty)
  }

  @Test func `the oldest unacknowledged delivery counts, wherever it is`() {
    var flow = liveFlow(window: 8)
    for number in 1...4 { _ = flow.live(revision(number), .init(), now: UInt32(number), head: { [] }) }
    #expect(flow.oldestUnacknowledged == 1)
    for number in [0, 2] as [UInt64] { _ = flow.acknowledge(number) }
    #expect(flow.oldestUnacknowledged == 2)
    flow.deleted([0, 2])
    #expect(flow.oldestUnacknowledged == 2)
    #expect(flow.acknowledge(1) != nil)
    #expect(flow.oldestUnacknowledged == 4)
    #expect(flow.acknowledge(3) != nil)
    #expect(flow.oldestUnacknowledged == nil)
    flow.deleted([3, 1])
    #expect(flow.isIdle)
  }

  struct History: CustomTestStringConvertible {
    /// Some records never arrive, and now and then the session resyncs with its mailbox.
    var losesRecords = false
    /// The device never acknowledges some deliveries.
    var hasHoles = false
    /// The connection to Redis breaks now and then.
    var breaks = false

    var testDescription: String { "loses records: \(losesRecords), has holes: \(hasHoles), breaks: \(breaks)" }
  }

  @Test(
    arguments: 0..<(isComplete ? 100 : 20) as Range<UInt64>,
    [
      History(), History(losesRecords: true), History(hasHoles: true), History(losesRecords: true, breaks: true),
      History(hasHoles: true, breaks: true),
    ])
  func everythingIsSentOnceAndNeverMoreThanTheWindowWhateverTheOrder(seed: UInt64, history: History) {
    var random = SeededRandom(seed: seed)
    let window = Int.random(in: 1...8, using: &random)
    var model = SessionFlowModel(window: window, maximumHoles: history.hasHoles ? window - 1 : 0)
    var next = 0
    let total = 120
    for _ in 0..<4000 {
      switch Int.random(in: 0..<14, using: &random) {
      case 0...2 where next < total:
        next += 1
        model.publish(revision(next), isLost: history.losesRecords && Int.random(in: 0..<10, using: &random) == 0)
      case 3 where !model.mailbox.isEmpty && random.next() % 4 == 0:
        model.redeliver(Int.random(in: model.mailbox.indices, using: &random))
      // Those of one partition arrive in order. Another may be far behind.
      case 4...6 where !model.records.isEmpty: model.arrive(random.next() % 8 == 0 ? model.records.indices.last! : 0)
      case 7...8 where history.breaks && random.next() % 4 == 0: model.fail(isDone: random.next() % 2 == 0)
      case 7...8: model.work()
      case 9...10: model.hear()
      case 11 where !model.unacknowledged.isEmpty:
        model.acknowledge(Int.random(in: model.unacknowledged.indices, using: &random), never: random.next() % 16 == 0)
      case 12 where !model.settling.isEmpty: model.settle(Int.random(in: model.settling.indices, using: &random))
      case 13 where history.losesRecords && random.next() % 4 == 0 && !model.unacknowledged.isEmpty:
        model.withdraw(Int.random(in: model.unacknowledged.indices, using: &random))
      case 13 where history.losesRecords: model.resync()
      default: break
      }
    }
    model.finish()
    if history.losesRecords {
      model.resync()
      model.finish()
    }
    #expect(next == total && Set(model.sent.values).count == total, "seed \(seed)")
    #expect(
      model.mailbox == model.holes.compactMap { model.sent[$0] }.sorted { $0.isKeptBefore($1) },
      "seed \(seed): the others were acknowledged")
  }
}
