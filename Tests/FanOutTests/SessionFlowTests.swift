import Notifications
import TestSupport
import Testing

@testable import FanOut

/// A mailbox, a lane's live records and a device, as a model: what the flow must hold together.
private struct Model {
  var flow: SessionFlow
  /// What lies in the mailbox, oldest first.
  var mailbox: [Revision] = []
  /// What the device got, by number.
  var sent: [UInt64: Revision] = [:]
  var unacknowledged: [UInt64] = []
  var settling: [UInt64] = []
  /// What Redis was asked and has not done yet, in order.
  var calls: [Call] = []
  let window: Int

  enum Call: Equatable {
    case page(count: Int)
    case delete(UInt64)

    var isPage: Bool { if case .page = self { true } else { false } }
  }

  init(window: Int) {
    flow = SessionFlow(first: 1000, window: window)
    self.window = window
    perform(flow.resync())
  }

  mutating func perform(_ action: SessionFlow.Action) {
    if case .page(let count) = action {
      let hasPage = calls.contains { $0.isPage }
      #expect(!hasPage, "two pages at a time")
      calls.append(.page(count: count))
    }
  }

  mutating func note(_ number: UInt64, _ revision: Revision) {
    #expect(sent[number] == nil, "a number is given once")
    sent[number] = revision
    unacknowledged.append(number)
    #expect(unacknowledged.count <= window)
  }

  /// The transform stage puts an entry into the mailbox and sends its record, which may be lost.
  mutating func publish(_ revision: Revision, isLost: Bool) {
    mailbox.append(revision)
    mailbox.sort()
    if !isLost, let number = flow.live(revision, .init(), now: 0, head: { [] }) { note(number, revision) }
  }

  /// Redis does what it was asked first, and says so.
  mutating func answer() {
    guard !calls.isEmpty else { return }
    switch calls.removeFirst() {
    case .page(let count):
      let page = mailbox.prefix(count)
      for revision in page {
        if let number = flow.paged(revision, .init(), now: 0, head: { [] }) { note(number, revision) }
      }
      perform(flow.pageEnded(isComplete: page.count < count))
    case .delete(let number):
      mailbox.removeAll { $0 == sent[number] }
      flow.deleted(number)
      perform(flow.afterDeletions())
    }
  }

  mutating func acknowledge(_ index: Int) {
    let number = unacknowledged.remove(at: index)
    #expect(flow.acknowledge(number) != nil)
    #expect(flow.acknowledge(number) == nil, "an acknowledgement counts once")
    settling.append(number)
    perform(flow.afterAcknowledgements())
  }

  /// One that was held back under its number is not sent under it after all.
  mutating func withdraw(_ index: Int) {
    let number = unacknowledged.remove(at: index)
    #expect(flow.unacknowledged(number)?.revision == sent[number])
    flow.withdraw(number)
    #expect(flow.unacknowledged(number) == nil && flow.acknowledge(number) == nil)
    sent[number] = nil
    perform(flow.resync())
  }

  /// Kafka has the event, so the entry may go.
  mutating func settle(_ index: Int) { calls.append(.delete(settling.remove(at: index))) }

  /// Everything that was asked is answered, acknowledged and deleted, until nothing happens any more.
  mutating func finish() {
    while !calls.isEmpty || !unacknowledged.isEmpty || !settling.isEmpty {
      while !calls.isEmpty { answer() }
      while !unacknowledged.isEmpty { acknowledge(0) }
      while !settling.isEmpty { settle(0) }
    }
  }
}

@Suite struct SessionFlowTests {
  private func revision(_ number: Int) -> Revision { Revision(timestamp: UInt64(number), partition: 0, offset: UInt64(number)) }

  @Test func anIdleSessionTakesLiveRecordsAfterItsFirstPage() {
    var flow = SessionFlow(first: 5, window: 4)
    #expect(flow.live(revision(1), .init(), now: 0, head: { [] }) == nil)
    #expect(flow.resync() == .page(count: 4))
    #expect(flow.pageEnded(isComplete: true) == .nothing)
    #expect(flow.live(revision(2), .init(), now: 0, head: { [] }) == 5)
    #expect(flow.live(revision(2), .init(), now: 0, head: { [] }) == nil, "the same record is not sent twice")
  }

  @Test func aLiveRecordDuringAPageMakesItReadAgain() {
    var flow = SessionFlow(first: 0, window: 4)
    _ = flow.resync()
    #expect(flow.live(revision(1), .init(), now: 0, head: { [] }) == nil)
    #expect(flow.pageEnded(isComplete: true) == .page(count: 4))
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
    #expect(flow.afterAcknowledgements() == .page(count: 6))
    flow.deleted(0)
    flow.deleted(1)
    for number in 3...6 { _ = flow.paged(revision(number), .init(), now: 0, head: { [] }) }
    #expect(flow.paged(revision(7), .init(), now: 0, head: { [] }) == nil)
    #expect(flow.pageEnded(isComplete: true) == .nothing)
    for number in 2..<6 as Range<UInt64> { _ = flow.acknowledge(number) }
    #expect(flow.afterAcknowledgements() != .nothing, "the seventh is still in the mailbox")
  }

  /// - Parameter losesRecords: some never come live, and now and then the session resyncs with its mailbox.
  @Test(arguments: 0..<100 as Range<UInt64>, [false, true])
  func everythingIsSentOnceAndNeverMoreThanTheWindowWhateverTheOrder(seed: UInt64, losesRecords: Bool) {
    var random = SeededRandom(seed: seed)
    var model = Model(window: Int.random(in: 1...8, using: &random))
    var next = 0
    let total = 120
    for _ in 0..<4000 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0...2 where next < total:
        next += 1
        model.publish(revision(next), isLost: losesRecords && Int.random(in: 0..<10, using: &random) == 0)
      case 3...4: model.answer()
      case 5...6 where !model.unacknowledged.isEmpty: model.acknowledge(Int.random(in: model.unacknowledged.indices, using: &random))
      case 7...8 where !model.settling.isEmpty: model.settle(Int.random(in: model.settling.indices, using: &random))
      case 9 where losesRecords && random.next() % 4 == 0 && !model.unacknowledged.isEmpty:
        model.withdraw(Int.random(in: model.unacknowledged.indices, using: &random))
      case 9 where losesRecords: model.perform(model.flow.resync())
      default: break
      }
    }
    model.finish()
    if losesRecords {
      model.perform(model.flow.resync())
      model.finish()
    }
    #expect(model.mailbox.isEmpty, "seed \(seed)")
    #expect(model.sent.values.count == next, "seed \(seed): each is sent exactly once")
    #expect(Set(model.sent.values).count == next, "seed \(seed)")
  }
}
