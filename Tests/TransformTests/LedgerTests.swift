import TestSupport
import Testing

@testable import Transform

/// The ledger of the in-flight records, by random histories beside a naive model: a list of what was begun, in its order.
@Suite struct LedgerTests {
  /// A record as the model knows it.
  private struct Model {
    let number: Int
    let target: UInt64
    var parked: ParkedRecord?
    var isAtStage = false
    var isJudged = false
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

    /// The stages have let a record go on: no earlier record of its target may still be at a stage.
    mutating func judge(_ slot: Slot) throws {
      let model = try #require(records[slot])
      let before = records.values.filter { $0.target == model.target && $0.number < model.number && $0.parked != nil && !$0.isJudged }
      #expect(before.isEmpty, "\(model.number) is judged before \(before.map(\.number))")
      #expect(!model.isJudged)
      records[slot]?.isJudged = true
      let calls = Int.random(in: 1...3, using: &random)
      records[slot]?.outstanding += calls
      ledger.expect(calls, of: slot)
    }

    mutating func start(_ slot: Slot) throws {
      let model = try #require(records[slot])
      records[slot]?.outstanding = 1
      records[slot]?.hasFailed = false
      records[slot]?.isJudged = false
      records[slot]?.parked = nil
      #expect(ledger.isDeadLetter(slot) == model.isDeadLetter)
      if model.isDeadLetter {
        ledger.expect(1, of: slot)
        records[slot]?.outstanding += 1
      } else {
        let isParked = one(in: 4)
        if ledger.pass(slot, target: model.target, at: isParked ? 0 : nil) {
          #expect(!isParked)
          try judge(slot)
        } else {
          records[slot]?.parked = ledger.parked(slot, at: 0)
          records[slot]?.isAtStage = isParked
          records[slot]?.outstanding += 1
        }
      }
      try answer(slot, .done)  // It has been read.
    }

    mutating func begin() throws {
      let slot = ledger.begin(begun)
      #expect(records[slot] == nil, "a slot is given twice")
      records[slot] = Model(number: begun, target: .random(in: 0..<3, using: &random))
      begun += 1
      try start(slot)
    }

    mutating func judge(_ slots: [Slot]) throws {
      for slot in slots {
        try judge(slot)
        try answer(slot, .done)
      }
    }

    mutating func stage(_ parked: ParkedRecord) throws {
      let slots = ledger.stageAnswered(parked)
      if records[parked.slot]?.parked == parked { records[parked.slot]?.isAtStage = false }
      try judge(slots)
    }

    /// A stage cannot answer: the record is started again, and the next records of its target do not wait for that.
    mutating func fail(_ parked: ParkedRecord) throws {
      let slots = ledger.stageFailed(parked)
      records[parked.slot]?.isAtStage = false
      records[parked.slot]?.parked = nil
      try answer(parked.slot, .failed)
      try judge(slots)
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
      for slot in ended {
        let model = try #require(records[slot])
        #expect(model.isJudged || model.isDeadLetter)
        remove(slot)
      }
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

  @Test func `each record ends once, in the order of its target, and none is forgotten`() throws {
    for seed in 0..<(isComplete ? 60 : 12) as Range<UInt64> {
      var history = History(seed: seed)
      var late: [ParkedRecord] = []
      for _ in 0..<400 {
        let slots = history.records.keys.sorted()
        switch Int.random(in: 0..<13, using: &history.random) {
        case 0..<4: try history.begin()
        case 4, 5:
          let atStage = slots.compactMap { history.records[$0] }.filter(\.isAtStage).compactMap(\.parked)
          if let parked = atStage.randomElement(using: &history.random) {
            if history.one(in: 4) { try history.fail(parked) } else { try history.stage(parked) }
          }
        case 6..<9:
          let working = slots.filter { slot in
            history.records[slot].map { $0.outstanding > 0 && ($0.isJudged || history.ledger.isDeadLetter(slot)) } ?? false
          }
          if let slot = working.randomElement(using: &history.random) {
            let conclusions: [Conclusion] = [.failed, .poisoned("an error"), .done, .done, .done, .done, .done, .done, .done, .done]
            try history.answer(slot, conclusions.randomElement(using: &history.random) ?? .done)
          }
        case 9: try history.retry(failedBefore: Int.random(in: 0...2, using: &history.random))
        case 10:
          // A partition is revoked: some parked records and retries are over, and stages answer for them later all the same.
          let over = Set(slots.filter { _ in history.one(in: 3) })
          let (revoked, _, released) = history.ledger.takeRevoked { over.contains($0) }
          for slot in revoked {
            let model = try #require(history.records[slot])
            #expect(over.contains(slot) && !model.isJudged || history.retrying.contains(slot))
            if let parked = model.parked { late.append(parked) }
            history.retrying.remove(slot)
            history.remove(slot)
          }
          try history.judge(released)
        case 11: try history.drain()
        default:
          if let parked = late.popLast() {
            let judged = history.ledger.stageAnswered(parked) + history.ledger.stageFailed(parked)
            #expect(judged.isEmpty, "a late answer changes nothing")
          }
        }
        #expect(history.ledger.count == history.records.count)
      }
      try end(&history)
      #expect(history.ended.count == history.begun, "seed \(seed): forgotten")
      #expect(history.ledger.count == 0 && history.ledger.parked == 0)
    }
  }

  /// When nothing fails and every stage answers, everything ends.
  private func end(_ history: inout History) throws {
    for _ in 0..<100 where !history.records.isEmpty {
      for parked in history.records.values.filter(\.isAtStage).compactMap(\.parked) { try history.stage(parked) }
      for slot in history.records.keys.sorted() {
        while let model = history.records[slot], model.outstanding > 0, model.isJudged || history.ledger.isDeadLetter(slot) {
          try history.answer(slot, .done)
        }
      }
      try history.drain()
      try history.retry()
    }
  }

  @Test func `a parked record delays no other target`() {
    let ledger = Ledger<Int>(tries: 3)
    let slots = (0..<3).map { ledger.begin($0) }
    let isJudged = [
      ledger.pass(slots[0], target: 1, at: 0), ledger.pass(slots[1], target: 2, at: nil), ledger.pass(slots[2], target: 1, at: nil),
    ]
    #expect(isJudged == [false, true, false])
    #expect(ledger.stageAnswered(ledger.parked(slots[0], at: 0)) == [slots[0], slots[2]])
  }

  @Test func `records of a target pass their stages side by side`() {
    let ledger = Ledger<Int>(tries: 3)
    let slots = (0..<2).map { ledger.begin($0) }
    for slot in slots { _ = ledger.pass(slot, target: 1, at: 0) }
    #expect(ledger.stageAnswered(ledger.parked(slots[1], at: 0)).isEmpty, "it has passed, and waits for the earlier one")
    #expect(ledger.stageAnswered(ledger.parked(slots[0], at: 0)) == slots)
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

  @Test func `an unexplained error counts towards a dead letter only where a later check finds Redis sound`() {
    for isSound in [false, true] {
      let ledger = Ledger<Int>(tries: 1)
      let slots = (0..<3).map { ledger.begin($0) }
      ledger.failed(ledger.answer(slots[0]), unexplained: "strange")
      ledger.failed(ledger.answer(slots[1]), unexplained: "strange")
      ledger.checkBegins()
      ledger.failed(ledger.answer(slots[2]), unexplained: "strange")
      _ = ledger.takeFailed()
      _ = ledger.remove(slots[1])
      let next = ledger.begin(3)
      #expect(next == slots[1])
      #expect(ledger.checkEnded(passed: isSound), "the last error has come since the check began")
      #expect(ledger.isDeadLetter(slots[0]) == isSound && !ledger.isDeadLetter(slots[2]))
      ledger.checkBegins()
      #expect(!ledger.checkEnded(passed: isSound))
      #expect(ledger.isDeadLetter(slots[2]) == isSound)
      #expect(!ledger.isDeadLetter(next), "a slot's next record is not to blame")
    }
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
