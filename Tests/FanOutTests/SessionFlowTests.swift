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
  /// A page that was asked for and not yet answered.
  var asked: Int?
  let window: Int

  init(window: Int) {
    flow = SessionFlow(first: 1000, window: window)
    self.window = window
    perform(flow.look())
  }

  mutating func perform(_ action: SessionFlow.Action) {
    if case .page(let count) = action {
      #expect(asked == nil, "two pages at a time")
      asked = count
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
    if !isLost, let number = flow.live(revision, now: 0, head: { [] }) { note(number, revision) }
  }

  mutating func answerPage() {
    guard let count = asked else { return }
    asked = nil
    let page = mailbox.prefix(count)
    for revision in page {
      if let number = flow.paged(revision, now: 0, head: { [] }) { note(number, revision) }
    }
    perform(flow.pageEnded(isWhole: page.count < count))
  }

  mutating func acknowledge(_ index: Int) {
    let number = unacknowledged.remove(at: index)
    #expect(flow.acknowledge(number) != nil)
    #expect(flow.acknowledge(number) == nil, "an acknowledgement counts once")
    settling.append(number)
    perform(flow.afterAcknowledgements())
  }

  /// Kafka has the event, and the entry is gone from the mailbox.
  mutating func settle(_ index: Int) {
    let number = settling.remove(at: index)
    mailbox.removeAll { $0 == sent[number] }
    flow.deleted(number)
  }
}

@Suite struct SessionFlowTests {
  private func revision(_ number: Int) -> Revision { Revision(timestamp: UInt64(number), partition: 0, offset: UInt64(number)) }

  @Test func anIdleSessionTakesLiveRecordsAfterItsFirstPage() {
    var flow = SessionFlow(first: 5, window: 4)
    #expect(flow.live(revision(1), now: 0, head: { [] }) == nil)
    #expect(flow.look() == .page(count: 4))
    #expect(flow.pageEnded(isWhole: true) == .nothing)
    #expect(flow.live(revision(2), now: 0, head: { [] }) == 5)
    #expect(flow.live(revision(2), now: 0, head: { [] }) == nil, "the same record is not sent twice")
  }

  @Test func aLiveRecordDuringAPageMakesItReadAgain() {
    var flow = SessionFlow(first: 0, window: 4)
    _ = flow.look()
    #expect(flow.live(revision(1), now: 0, head: { [] }) == nil)
    #expect(flow.pageEnded(isWhole: true) == .page(count: 4))
  }

  @Test func numbersOfAnotherSessionMeanNothing() {
    var flow = SessionFlow(first: 100, window: 4)
    _ = flow.look()
    _ = flow.paged(revision(1), now: 0, head: { [] })
    #expect(flow.acknowledge(99) == nil)
    #expect(flow.acknowledge(101) == nil)
    #expect(flow.acknowledge(.max) == nil)
    #expect(flow.acknowledge(100) != nil)
  }

  @Test(arguments: 0..<100 as Range<UInt64>)
  func everythingIsSentOnceAndNeverMoreThanTheWindowWhateverTheOrder(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var model = Model(window: Int.random(in: 1...8, using: &random))
    var next = 0
    let total = 120
    for _ in 0..<4000 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0...2 where next < total:
        next += 1
        model.publish(revision(next), isLost: Int.random(in: 0..<10, using: &random) == 0)
      case 3...4: model.answerPage()
      case 5...6 where !model.unacknowledged.isEmpty: model.acknowledge(Int.random(in: model.unacknowledged.indices, using: &random))
      case 7...8 where !model.settling.isEmpty: model.settle(Int.random(in: model.settling.indices, using: &random))
      case 9: model.perform(model.flow.look())
      default: break
      }
    }
    // Then all answers come, and the session looks once more after what was lost on the way.
    var rounds = 0
    while rounds < 1000, model.asked != nil || !model.unacknowledged.isEmpty || !model.settling.isEmpty || !model.mailbox.isEmpty {
      rounds += 1
      model.answerPage()
      while !model.unacknowledged.isEmpty { model.acknowledge(0) }
      while !model.settling.isEmpty { model.settle(0) }
      model.perform(model.flow.look())
    }
    #expect(model.mailbox.isEmpty, "seed \(seed)")
    #expect(model.sent.values.count == next, "seed \(seed): each is sent exactly once")
    #expect(Set(model.sent.values).count == next, "seed \(seed)")
  }
}
