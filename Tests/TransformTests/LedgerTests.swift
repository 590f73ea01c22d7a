import TestSupport
import Testing

@testable import Transform

/// The ledger of the in-flight records, by random histories beside a naive model.
@Suite struct LedgerTests {
  /// A record as the model knows it.
  private struct Model {
    let number: Int
    /// Calls that have not answered.
    var outstanding = 0
    var hasFailed = false
    var faults = 0

    var isDeadLetter: Bool { faults >= 3 }
  }

  /// A ledger, the model of each of its records, and the notes that it owes.
  private struct History {
    let ledger = Ledger<Int>(tries: 3)
    var random: SeededRandom
    var records: [Slot: Model] = [:]
    var begun = 0
    var ended: Set<Int> = []
    /// Records whose last answer has arrived, and whose notes are not taken.
    var endNotes: Set<Slot> = []
    var failNotes: Set<Slot> = []
    var retrying: Set<Slot> = []

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    mutating func one(in count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

    mutating func start(_ slot: Slot) throws {
      let calls = Int.random(in: 1...3, using: &random)
      #expect(ledger.isDeadLetter(slot) == (try #require(records[slot]).isDeadLetter))
      records[slot]?.outstanding = calls + 1
      records[slot]?.hasFailed = false
      ledger.expect(calls, of: slot)
      try answer(slot, .done)  // It has been read.
    }

    mutating func begin() throws {
      let slot = ledger.begin(begun)
      #expect(records[slot] == nil, "a slot is given twice")
      #expect(ledger.order(of: slot) == UInt64(begun))
      records[slot] = Model(number: begun)
      begun += 1
      try start(slot)
    }

    mutating func answer(_ slot: Slot, _ conclusion: Conclusion) throws {
      #expect(try #require(records[slot]).outstanding > 0)
      records[slot]?.outstanding -= 1
      switch conclusion {
      case .done: break
      case .failed: records[slot]?.hasFailed = true
      case .poisoned:
        records[slot]?.hasFailed = true
        records[slot]?.faults += 1
      }
      ledger.conclude(ledger.answer(slot), conclusion)
      let model = try #require(records[slot])
      #expect(ledger.hasFailed(slot) == model.hasFailed && ledger.faults(slot) == model.faults)
      guard model.outstanding == 0 else { return }
      if model.hasFailed { failNotes.insert(slot) } else { endNotes.insert(slot) }
    }

    /// The owner takes the notes: each record is named once, when its last answer has arrived.
    mutating func drain() throws {
      let (ended, failed) = (ledger.takeEnded(), ledger.takeFailed())
      #expect(ended.count == endNotes.count && Set(ended) == endNotes, "a record ends with its last answer")
      #expect(failed.count == failNotes.count && Set(failed) == failNotes, "a failed record is started again after its last answer")
      for slot in ended { remove(slot) }
      retrying.formUnion(failed)
      (endNotes, failNotes) = ([], [])
    }

    mutating func retry(failedBefore count: Int = .max) throws {
      for slot in ledger.takeRetries(failedBefore: count) {
        #expect(retrying.remove(slot) != nil)
        try start(slot)
      }
    }

    mutating func remove(_ slot: Slot) {
      let number = ledger.remove(slot)
      #expect(number == records.removeValue(forKey: slot)?.number && ended.insert(number).inserted, "a record ends once")
    }
  }

  @Test func `each record ends once, and none is forgotten`() throws {
    for seed in 0..<(isComplete ? 60 : 12) as Range<UInt64> {
      var history = History(seed: seed)
      for _ in 0..<400 {
        let slots = history.records.keys.sorted()
        switch Int.random(in: 0..<10, using: &history.random) {
        case 0..<3: try history.begin()
        case 3..<7:
          if let slot = slots.filter({ history.records[$0]?.outstanding ?? 0 > 0 }).randomElement(using: &history.random) {
            let conclusions: [Conclusion] = [.failed, .poisoned("an error"), .done, .done, .done, .done, .done, .done, .done, .done]
            try history.answer(slot, conclusions.randomElement(using: &history.random) ?? .done)
          }
        case 7: try history.retry(failedBefore: Int.random(in: 0...2, using: &history.random))
        case 8:
          // A partition is revoked: some retries are over.
          let over = Set(slots.filter { _ in history.one(in: 3) })
          let revoked = history.ledger.takeRevokedRetries { over.contains($0) }
          #expect(Set(revoked) == history.retrying.intersection(over))
          for slot in revoked {
            history.retrying.remove(slot)
            history.remove(slot)
          }
        default: try history.drain()
        }
        #expect(history.ledger.count == history.records.count)
      }
      try end(&history)
      #expect(history.ended.count == history.begun && history.ledger.count == 0, "seed \(seed): forgotten")
    }
  }

  /// When nothing fails, everything ends.
  private func end(_ history: inout History) throws {
    for _ in 0..<100 where !history.records.isEmpty {
      for slot in history.records.keys.sorted() {
        while history.records[slot]?.outstanding ?? 0 > 0 { try history.answer(slot, .done) }
      }
      try history.drain()
      try history.retry()
    }
  }

  @Test func `a record that has failed for the first time is not kept back by those that fail again and again`() {
    let ledger = Ledger<Int>(tries: 100)
    let refused = (0..<300).map { ledger.begin($0) }
    for _ in 0..<2 {
      for slot in refused { ledger.failed(ledger.answer(slot)) }
      #expect(ledger.takeFailed() == refused && ledger.takeRetries() == refused)
    }
    for slot in refused { ledger.failed(ledger.answer(slot)) }
    let sound = ledger.begin(300)
    ledger.failed(ledger.answer(sound))
    #expect(ledger.takeFailed().count == 301 && ledger.retries == 301 && ledger.firstRetries == 1)
    #expect(ledger.takeRetries(failedBefore: 2) == [sound] + refused.prefix(2))
    #expect(ledger.takeRetries(failedBefore: 2) == Array(refused[2..<4]), "those that have waited longest")
  }

  @Test func `a record is dead-lettered after its permanent errors, with the reason of the last`() {
    let ledger = Ledger<Int>(tries: 2)
    let slot = ledger.begin(0)
    for (reason, isLast) in [("one", false), ("two", true)] {
      ledger.poisoned(ledger.answer(slot), reason)
      #expect(ledger.isDeadLetter(slot) == isLast && ledger.reason(slot) == reason)
      #expect(ledger.takeFailed() == [slot] && ledger.takeEnded().isEmpty)
      #expect(ledger.takeRetries() == [slot])
    }
    #expect(ledger.remove(slot) == 0)
    let next = ledger.begin(1)
    #expect(next == slot && !ledger.isDeadLetter(next) && ledger.faults(next) == 0 && ledger.reason(next) != "two")
  }

  @Test func `a check explains the errors that came before it began, of records that are still in flight`() {
    let ledger = Ledger<Int>(tries: 3)
    let slots = (0..<4).map { ledger.begin($0) }
    var errors = UnexplainedErrors()
    func note(_ slot: Slot) { errors.note(slot, order: ledger.order(of: slot), "strange") }
    func checkEnded() -> (explained: [Slot], isAnotherDue: Bool) {
      let (explained, isAnotherDue) = errors.checkEnded { ledger.has($0, order: $1) }
      return (explained.map(\.slot), isAnotherDue)
    }
    for slot in slots.prefix(2) { note(slot) }
    errors.checkBegins()
    for slot in slots.suffix(2) { note(slot) }
    for slot in [slots[1], slots[3]] { #expect(ledger.remove(slot) == Int(slot.number)) }
    #expect(ledger.begin(4) == slots[3], "the slot's next record has no error")
    let first = checkEnded()
    #expect(first.explained == [slots[0]] && first.isAnotherDue)
    errors.checkBegins()
    let second = checkEnded()
    #expect(second.explained == [slots[2]] && !second.isAnotherDue)
    note(slots[0])
    #expect(ledger.remove(slots[0]) == 0)
    #expect(!checkEnded().isAnotherDue, "nobody asks any more")
  }

  @Test func `a slot's next record is not taken for the one before`() {
    let ledger = Ledger<Int>(tries: 1)
    let slot = ledger.begin(0)
    let order = ledger.order(of: slot)
    #expect(ledger.has(slot, order: order) && ledger.remove(slot) == 0 && !ledger.has(slot, order: order))
    let next = ledger.begin(1)
    #expect(next == slot && !ledger.has(slot, order: order) && ledger.has(slot, order: order + 1))
  }

  @Test func `a letter and its event are written once for one fault, and once more for one that comes later`() {
    var progress = LetterProgress()
    func begin(isPoison: Bool) -> [Int] {
      let missing = progress.begin(isPoison: isPoison)
      return [missing.letter ? 1 : 0, missing.event ? 1 : 0, missing.refusals]
    }
    let (first, again) = (begin(isPoison: false), begin(isPoison: false))
    #expect([first, again] == [[1, 1, 0], [0, 0, 0]])
    progress.written()
    progress.restart()
    let rest = begin(isPoison: false)
    #expect(rest == [0, 1, 0], "Kafka has the letter, and has not taken the event")
    progress.refused()
    progress.restart()
    let poison = begin(isPoison: true)
    #expect(poison == [1, 1, 0], "the letter of the rule says nothing of what the record ends for now")
    progress.refused()
    progress.restart()
    let smaller = begin(isPoison: true)
    #expect(smaller == [1, 1, 1])
  }

  @Test func `the first note of a turn is told, and no other`() {
    let ledger = Ledger<Int>(tries: 3)
    var told = 0
    ledger.onNote = { told += 1 }
    let slots = (0..<3).map { ledger.begin($0) }
    ledger.done(ledger.answer(slots[0]))
    ledger.failed(ledger.answer(slots[1]))
    #expect(told == 1)
    #expect(ledger.takeEnded() == [slots[0]] && ledger.takeFailed() == [slots[1]])
    ledger.done(ledger.answer(slots[2]))
    #expect(told == 2)
  }

  @Test func `an answer that is forgotten ends the process`() async {
    await #expect(processExitsWith: .failure) {
      let ledger = Ledger<Int>(tries: 3)
      let slot = ledger.begin(0)
      if ledger.answer(slot).slot == slot { print("forgotten") }
    }
  }

  @Test func `an answer that arrives twice ends the process`() async {
    await #expect(processExitsWith: .failure) {
      let ledger = Ledger<Int>(tries: 3)
      let slot = ledger.begin(0)
      for _ in 0..<2 { ledger.done(ledger.answer(slot)) }
    }
  }
}
