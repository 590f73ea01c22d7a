import Notifications
import TestSupport
import Testing

@testable import FanOut

/// A mailbox, the records of a lane's partition, and a device, as a naive model around the flow of one session.
struct SessionFlowModel {
  var flow: SessionFlow
  /// The entries of the mailbox, oldest first.
  var mailbox: [Revision] = []
  /// Delivery records that have not arrived yet.
  var records: [Revision] = []
  /// What the device was sent, by number.
  var sent: [UInt64: Revision] = [:]
  var unacknowledged: [UInt64] = []
  /// Deliveries that the device never acknowledges.
  var holes: Set<UInt64> = []
  var settling: [UInt64] = []
  /// What Redis was asked and has not done yet, in order.
  var calls: [Call] = []
  /// What Redis has done, in order, and the session does not know yet.
  var answers: [Answer] = []
  /// The deletions that failed, and were not asked for again.
  var undeleted = 0
  let window: Int
  let maximumHoles: Int

  enum Call: Equatable {
    case page(count: Int)
    case delete(UInt64)

    var isPage: Bool { if case .page = self { true } else { false } }
  }

  enum Answer {
    case page(ArraySlice<Revision>, isComplete: Bool)
    case deleted(UInt64)
    case notDeleted(UInt64)

    var isPage: Bool { if case .page = self { true } else { false } }
  }

  init(window: Int, maximumHoles: Int = 0) {
    flow = SessionFlow(first: 1000, window: window)
    self.window = window
    self.maximumHoles = maximumHoles
    perform(flow.resync())
  }

  mutating func perform(_ action: SessionFlow.Action) {
    if case .page(let count) = action {
      let hasPage = calls.contains { $0.isPage } || answers.contains { $0.isPage }
      #expect(!hasPage, "two pages at a time")
      calls.append(.page(count: count))
    }
  }

  private mutating func note(_ number: UInt64, _ revision: Revision) {
    #expect(sent[number] == nil, "a number is given once")
    #expect(!sent.values.contains(revision), "a notification is sent once in a session")
    sent[number] = revision
    unacknowledged.append(number)
    #expect(unacknowledged.count <= window)
  }

  /// The transform stage puts an entry into the mailbox, and produces its record unless that is lost.
  mutating func publish(_ revision: Revision, isLost: Bool) {
    mailbox.append(revision)
    mailbox.sort { $0.isKeptBefore($1) }
    if !isLost { records.append(revision) }
  }

  /// The transform stage reads a request again, and routes it again, since its entry lies in the mailbox.
  mutating func redeliver(_ index: Int) { records.append(mailbox[index]) }

  /// A delivery record arrives.
  mutating func arrive(_ index: Int) {
    let revision = records.remove(at: index)
    switch flow.live(revision, .init(), now: 0, head: { [] }) {
    case .send(let number): note(number, revision)
    case .leave(let action): perform(action)
    }
  }

  /// The session reads its mailbox, and deletes again what Redis has not deleted.
  mutating func resync() {
    let again = flow.takeUndeleted()
    undeleted -= again.count
    for entry in again { calls.append(.delete(entry.number)) }
    perform(flow.resync())
  }

  /// The connection to Redis breaks: it has done what it was asked first, or not, and the session is not told.
  mutating func fail(isDone: Bool) {
    guard case .delete(let number) = calls.first else { return }
    if isDone { mailbox.removeAll { $0 == sent[number] } }
    calls.removeFirst()
    answers.append(.notDeleted(number))
  }

  /// Redis does what it was asked first.
  mutating func work() {
    guard !calls.isEmpty else { return }
    switch calls.removeFirst() {
    case .page(let count): answers.append(.page(mailbox.prefix(count), isComplete: mailbox.count < count))
    case .delete(let number):
      mailbox.removeAll { $0 == sent[number] }
      answers.append(.deleted(number))
    }
  }

  /// The session hears what Redis did first.
  mutating func hear() {
    guard !answers.isEmpty else { return }
    switch answers.removeFirst() {
    case .page(let page, let isComplete):
      for revision in page {
        if let number = flow.paged(revision, .init(), now: 0, head: { [] }) { note(number, revision) }
      }
      perform(flow.pageEnded(isComplete: isComplete))
    case .deleted(let number):
      flow.deleted([number])
      perform(flow.advance())
    case .notDeleted(let number):
      flow.notDeleted([number])
      undeleted += 1
    }
  }

  /// The device acknowledges a delivery, or never does.
  mutating func acknowledge(_ index: Int, never: Bool = false) {
    let number = unacknowledged[index]
    if holes.contains(number) { return }
    if never && holes.count < maximumHoles {
      holes.insert(number)
      return
    }
    unacknowledged.remove(at: index)
    #expect(flow.acknowledge(number) != nil)
    #expect(flow.acknowledge(number) == nil, "an acknowledgement counts once")
    settling.append(number)
    perform(flow.advance())
  }

  /// One that was held back under its number is not sent under it after all.
  mutating func withdraw(_ index: Int) {
    let number = unacknowledged.remove(at: index)
    #expect(flow.unacknowledged(number)?.revision == sent[number])
    flow.withdraw(number)
    #expect(flow.unacknowledged(number) == nil && flow.acknowledge(number) == nil)
    sent[number] = nil
    holes.remove(number)
    resync()
  }

  /// Kafka has the event, so the entry may be deleted.
  mutating func settle(_ index: Int) { calls.append(.delete(settling.remove(at: index))) }

  /// Everything that was asked is answered, acknowledged and deleted, until nothing happens any more.
  mutating func finish() {
    while !records.isEmpty || !calls.isEmpty || !answers.isEmpty || unacknowledged.count > holes.count || !settling.isEmpty
      || undeleted > 0
    {
      while !records.isEmpty { arrive(0) }
      while !calls.isEmpty { work() }
      while !answers.isEmpty { hear() }
      for index in unacknowledged.indices.reversed() { acknowledge(index) }
      while !settling.isEmpty { settle(0) }
      if undeleted > 0, calls.isEmpty, answers.isEmpty { resync() }
    }
  }
}
