import Notifications
import TestSupport
import Testing

@testable import Store
@testable import Transform

/// Stages that answer at once or later, in any order, for records some of which fail or are revoked meanwhile: by random histories.
@Suite struct StageSequenceTests {
  /// Changes what passes it; answers later where the test says so, and when.
  private final class TestStage: Stage {
    let mark: UInt32
    var isActive = true
    var answersLater = false
    private(set) var waiting: [(record: ParkedRecord, content: RequestContent)] = []
    weak var owner: (any StageOwner)?

    init(_ number: Int) { mark = 1 << UInt32(number) }

    func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
      #expect(content.entry.source & mark == 0, "a record is shown to a stage once")
      if !answersLater { return .pass(changed(content)) }
      waiting.append((record, content))
      return .later
    }

    func drop(_ records: Set<ParkedRecord>) {
      #expect(records.isSubset(of: waiting.map(\.record)), "a stage drops nothing that it does not have")
      waiting.removeAll { records.contains($0.record) }
    }

    private func changed(_ content: RequestContent) -> RequestContent {
      var content = content
      content.entry.source |= mark
      return content
    }

    /// Answers for one of the waiting; once more where `isRepeated`, which is nothing.
    func answer(_ index: Int, isRepeated: Bool) {
      let (record, content) = waiting.remove(at: index)
      owner?.passed([(record, changed(content))])
      if isRepeated { owner?.passed([(record, changed(content))]) }
    }

    static let failure = StoreError(.unavailable, "gone")

    /// Cannot answer for one of the waiting.
    func fail(_ index: Int) { owner?.failed(waiting.remove(at: index).record, Self.failure) }

    /// Answers, or fails, for a record that it was to drop.
    func answer(late record: ParkedRecord, _ content: RequestContent, fails: Bool) {
      if fails { owner?.failed(record, Self.failure) } else { owner?.passed([(record, changed(content))]) }
    }
  }

  private final class History: StageSequenceOwner {
    /// A record as the test knows it.
    struct Known {
      let number: Int
      let target: UInt64
      /// It waits to be started again.
      var hasFailed = false
      var marks: UInt32 = 0
      var isJudged = false
      /// Redis or Kafka has not answered yet.
      var isOutstanding = false
    }

    let ledger = Ledger<Int>(tries: 3)
    let stages = [TestStage(0), TestStage(1)]
    let sequence: StageSequence<Int>
    var random: SeededRandom
    var known: [Slot: Known] = [:]
    var (begun, ended) = (0, 0)
    /// What was revoked while it was at a stage.
    var late: [(stage: TestStage, record: ParkedRecord, content: RequestContent)] = []

    init(seed: UInt64) {
      sequence = StageSequence(stages, ledger)
      random = SeededRandom(seed: seed)
      sequence.owner = self
    }

    func one(in count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

    func begin() {
      let slot = ledger.begin(begun)
      known[slot] = Known(number: begun, target: .random(in: 0..<4, using: &random))
      begun += 1
      start(slot)
    }

    func start(_ slot: Slot) {
      for stage in stages { (stage.isActive, stage.answersLater) = (!one(in: 4), one(in: 3)) }
      sequence.beginTurn()
      known[slot]?.hasFailed = false
      known[slot]?.isJudged = false
      // With no active stage nobody is shown anything, unless somebody is parked.
      let isShown = stages.contains(where: \.isActive) || sequence.parked > 0
      known[slot]?.marks = isShown ? 0b11 : 0
      if let content = sequence.take(slot, .test(number: known[slot]?.number ?? 0), target: known[slot]?.target ?? 0) {
        judge(slot, content)
      }
      answered(slot, .done)
    }

    /// It is started again, and no other record waits for that.
    func failed(_ slot: Slot, _ error: StoreError) {
      known[slot]?.hasFailed = true
      answered(slot, .failed)
    }

    func keep(_ slot: Slot, _ called: CalledExtensions) { Issue.record("no stage has anything to keep") }

    func passed(_ requests: [(slot: Slot, content: RequestContent)]) {
      for (slot, content) in requests {
        judge(slot, content)
        answered(slot, .done)
      }
    }

    /// A record has passed: its content is its own, as all stages have left it, and no earlier one of its target is still waiting.
    private func judge(_ slot: Slot, _ content: RequestContent) {
      guard let record = known[slot] else {
        Issue.record("a record is judged that has ended")
        return
      }
      #expect(content.entry.id == UInt64(record.number) && content.entry.source == record.marks)
      #expect(!record.isJudged, "\(record.number) is judged twice")
      let before = known.values.filter { $0.target == record.target && $0.number < record.number && !$0.isJudged && !$0.hasFailed }
      #expect(before.isEmpty, "\(record.number) is judged before \(before.map(\.number))")
      known[slot]?.isJudged = true
      known[slot]?.isOutstanding = true
      ledger.expect(1, of: slot)
    }

    /// What Redis or Kafka is to answer.
    var outstanding: [Slot] { known.keys.filter { known[$0]?.isOutstanding == true }.sorted() }

    /// An answer of Redis or Kafka has come.
    func applied(_ slot: Slot, _ conclusion: Conclusion = .done) {
      known[slot]?.isOutstanding = false
      answered(slot, conclusion)
    }

    private func answered(_ slot: Slot, _ conclusion: Conclusion) {
      ledger.conclude(ledger.answer(slot), conclusion)
      _ = ledger.takeFailed()
      for slot in ledger.takeEnded() {
        #expect(known[slot]?.isJudged == true)
        remove(slot)
      }
    }

    func remove(_ slot: Slot) {
      #expect(known.removeValue(forKey: slot)?.number == ledger.remove(slot))
      ended += 1
    }

    func revoke() {
      let over = Set(known.keys.filter { _ in one(in: 3) })
      late += stages.flatMap { stage in stage.waiting.filter { over.contains($0.record.slot) }.map { (stage, $0.record, $0.content) } }
      let waiting = stages.map(\.waiting.count)
      let lost = stages.map { $0.waiting.count { over.contains($0.record.slot) } }
      let (revoked, released) = sequence.takeRevoked { over.contains($0) }
      for slot in revoked {
        #expect(over.contains(slot))
        remove(slot)
      }
      passed(released)
      #expect(stages.indices.allSatisfy { stages[$0].waiting.count == waiting[$0] - lost[$0] }, "a stage keeps what is over")
    }

    func retry() { for slot in ledger.takeRetries() { start(slot) } }
  }

  @Test func recordsPassTheirStagesInTheOrderOfTheirTargetsAndNoneIsForgotten() {
    for seed in 0..<(isComplete ? 60 : 12) as Range<UInt64> {
      let history = History(seed: seed)
      for _ in 0..<400 {
        switch Int.random(in: 0..<12, using: &history.random) {
        case 0..<4: history.begin()
        case 4..<7:
          let stage = history.stages[Int.random(in: 0...1, using: &history.random)]
          guard let index = stage.waiting.indices.randomElement(using: &history.random) else { continue }
          for each in history.stages { each.answersLater = history.one(in: 2) }
          if history.one(in: 5) { stage.fail(index) } else { stage.answer(index, isRepeated: history.one(in: 4)) }
        case 7..<9:
          guard let slot = history.outstanding.randomElement(using: &history.random) else { continue }
          history.applied(slot, history.one(in: 4) ? .failed : .done)
        case 9: history.retry()
        case 10: history.revoke()
        default:
          if let (stage, record, content) = history.late.popLast() { stage.answer(late: record, content, fails: history.one(in: 2)) }
        }
      }
      drain(history)
      #expect(history.ended == history.begun && history.ledger.count == 0 && history.sequence.parked == 0, "seed \(seed)")
    }
  }

  /// When nothing fails and every stage answers, everything ends.
  private func drain(_ history: History) {
    for _ in 0..<100 where !history.known.isEmpty {
      for stage in history.stages {
        for _ in stage.waiting.indices { stage.answer(0, isRepeated: false) }
      }
      for slot in history.outstanding { history.applied(slot) }
      history.retry()
    }
  }

  @Test func `a parked record delays no other target`() {
    var queues = TargetQueues()
    let slots = (0..<3).map { Slot(number: $0) }
    let isParked = [
      queues.park(slots[0], target: 1, order: 0, at: 0), queues.park(slots[1], target: 2, order: 1, at: nil),
      queues.park(slots[2], target: 1, order: 2, at: nil),
    ]
    #expect(isParked == [true, false, true])
    let judged = queues.passed(slots[0])
    #expect(judged == [slots[0], slots[2]] && queues.count == 0)
  }

  @Test func `records of a target pass their stages side by side`() {
    var queues = TargetQueues()
    let slots = (0..<2).map { Slot(number: $0) }
    for (order, slot) in slots.enumerated() { _ = queues.park(slot, target: 1, order: UInt64(order), at: 0) }
    let judged = [queues.passed(slots[1]), queues.passed(slots[0])]
    #expect(judged == [[], slots], "the later one has passed, and waits for the earlier one")
  }

  @Test func onlyRequestsForPersonsWaitForTheRegistry() {
    let ledger = Ledger<Int>(tries: 3)
    let state = LaneState()
    let registry = RegistryWait(state)
    let sequence = StageSequence([registry], ledger)
    let judged = Judged()
    sequence.owner = judged
    let person = Receiver.set(RecipientSet(user: ArenaSpan(), application: ArenaSpan()))
    let receivers = [person, .device(ArenaSpan()), person, person]
    weak var arena: Arena?
    func take(_ receiver: Receiver, target: Int) -> (slot: Slot, isJudged: Bool) {
      let (slot, content) = (ledger.begin(target), RequestContent.test(receiver))
      if target == 2 { arena = content.arena }
      return (slot, sequence.take(slot, content, target: UInt64(target)) != nil)
    }
    sequence.beginTurn()
    let taken = receivers.enumerated().map { take($1, target: $0) }
    #expect(taken.map(\.isJudged) == [false, true, false, false])
    let (revoked, released) = sequence.takeRevoked { $0 == taken[2].slot }
    #expect(revoked == [taken[2].slot] && released.isEmpty && arena == nil, "nobody keeps what is over")
    #expect(ledger.remove(taken[2].slot) == 2)
    state.phase = LanePhase(.running)
    registry.restored()
    #expect(judged.slots == [taken[0].slot, taken[3].slot], "in the order in which they came, but for what was revoked")
    sequence.beginTurn()
    #expect(take(person, target: 0).isJudged)
  }

  private final class Judged: StageSequenceOwner {
    var slots: [Slot] = []
    func failed(_ slot: Slot, _ error: StoreError) {}
    func keep(_ slot: Slot, _ called: CalledExtensions) {}
    func passed(_ requests: [(slot: Slot, content: RequestContent)]) { slots += requests.map(\.slot) }
  }
}

extension RequestContent {
  /// A request that is known by its number.
  static func test(_ receiver: Receiver = .device(ArenaSpan()), number: Int = 0) -> RequestContent {
    let entry = RequestEntry(
      span: ArenaSpan(), kind: .notify, collapseID: ArenaSpan(), application: 0, user: 0, time: 0, withdraws: nil, id: UInt64(number),
      source: 0, end: 0, revision: Revision(timestamp: 0, partition: 0, offset: 0))
    return RequestContent(arena: Arena(capacity: 64), entry: entry, receiver: receiver, mutability: .fixed)
  }
}
