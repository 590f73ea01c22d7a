import TestSupport
import Testing

@testable import Transform

/// The records in flight, by random histories beside a naive model: a list of what was begun, in its order.
@Suite struct FlowTests {
  /// A record as the model knows it.
  private struct Model {
    let number: Int
    let target: UInt64
    /// Its place in the order: one that is started again comes behind those that have begun meanwhile.
    var order = 0
    var parked: Flow.Parked?
    var isAtStage = false
    var isJudged = false
    var outstanding = 0
    var faults = 0
  }

  private struct History {
    var flow = Flow(tries: 3)
    var random: SeededRandom
    var records: [Flow.Slot: Model] = [:]
    var begun = 0
    var starts = 0
    var ended: Set<Int> = []
    var retrying: Set<Flow.Slot> = []

    /// The stages have let a record go on: no earlier one of its target may still be at a stage.
    mutating func judge(_ slot: Flow.Slot) throws {
      let model = try #require(records[slot])
      let before = records.values.filter { $0.target == model.target && $0.order < model.order && $0.parked != nil && !$0.isJudged }
      #expect(before.isEmpty, "\(model.number) is judged before \(before.map(\.number))")
      #expect(!model.isJudged)
      records[slot]?.isJudged = true
      let calls = Int.random(in: 1...3, using: &random)
      records[slot]?.outstanding += calls
      flow.expect(calls, of: slot)
    }

    mutating func start(_ slot: Flow.Slot) throws {
      let model = try #require(records[slot])
      starts += 1
      records[slot]?.order = starts
      records[slot]?.outstanding = 1
      records[slot]?.isJudged = false
      records[slot]?.parked = nil
      if flow.isDeadLetter(slot) {
        #expect(model.faults >= 3)
        flow.expect(1, of: slot)
        records[slot]?.outstanding += 1
      } else {
        let isParked = Int.random(in: 0..<4, using: &random) == 0
        switch flow.pass(slot, target: model.target, at: isParked ? 0 : nil) {
        case .judge:
          #expect(!isParked)
          try judge(slot)
        case .wait:
          records[slot]?.parked = flow.parked(slot, at: 0)
          records[slot]?.isAtStage = isParked
          records[slot]?.outstanding += 1
        }
      }
      try answer(slot)  // It has been read.
    }

    mutating func begin() throws {
      let slot = flow.begin()
      #expect(records[slot] == nil, "a slot is given twice")
      records[slot] = Model(number: begun, target: .random(in: 0..<3, using: &random))
      begun += 1
      try start(slot)
    }

    mutating func stage(_ parked: Flow.Parked) throws {
      let slots = flow.stageAnswered(parked)
      if records[parked.slot]?.parked == parked { records[parked.slot]?.isAtStage = false }
      for slot in slots {
        try judge(slot)
        try answer(slot)
      }
    }

    /// A stage cannot answer: the record is started again, and those behind it need not wait for that.
    mutating func fail(_ parked: Flow.Parked) throws {
      let slots = flow.stageFailed(parked)
      records[parked.slot]?.isAtStage = false
      records[parked.slot]?.parked = nil
      flow.fail(parked.slot)
      try answer(parked.slot)
      for slot in slots {
        try judge(slot)
        try answer(slot)
      }
    }

    mutating func answer(_ slot: Flow.Slot) throws {
      let model = try #require(records[slot])
      #expect(model.outstanding > 0)
      records[slot]?.outstanding -= 1
      switch flow.answered(slot) {
      case .wait: #expect(model.outstanding > 1)
      case .finish:
        #expect(model.outstanding == 1 && ended.insert(model.number).inserted, "finished twice, or too early")
        #expect(model.isJudged || flow.isDeadLetter(slot))
        remove(slot)
      case .retry:
        #expect(model.outstanding == 1)
        retrying.insert(slot)
      }
    }

    mutating func remove(_ slot: Flow.Slot) {
      flow.remove(slot)
      records[slot] = nil
    }
  }

  @Test func eachRecordEndsOnceInTheOrderOfItsTargetAndNoneIsForgotten() throws {
    for seed in 0..<60 as Range<UInt64> {
      var history = History(random: SeededRandom(seed: seed))
      var late: [Flow.Parked] = []
      for _ in 0..<400 {
        let slots = history.records.keys.sorted()
        switch Int.random(in: 0..<12, using: &history.random) {
        case 0..<4: try history.begin()
        case 4, 5:
          let atStage = slots.compactMap { history.records[$0] }.filter(\.isAtStage).compactMap(\.parked)
          if let parked = atStage.randomElement(using: &history.random) {
            if Int.random(in: 0..<4, using: &history.random) == 0 { try history.fail(parked) } else { try history.stage(parked) }
          }
        case 6..<9:
          let working = slots.filter { slot in
            history.records[slot].map { $0.outstanding > 0 && ($0.isJudged || history.flow.isDeadLetter(slot)) } ?? false
          }
          if let slot = working.randomElement(using: &history.random) {
            if Int.random(in: 0..<5, using: &history.random) == 0 {
              history.flow.fail(slot)
              if Bool.random(using: &history.random) {
                history.records[slot]?.faults += 1
                _ = history.flow.fault(slot)
              }
            }
            try history.answer(slot)
          }
        case 9:
          for slot in history.flow.takeRetries() {
            #expect(history.retrying.remove(slot) != nil)
            try history.start(slot)
          }
        case 10:
          // A partition is revoked: some of what waits is over, and stages answer for it later all the same.
          let over = Set(slots.filter { _ in Int.random(in: 0..<3, using: &history.random) == 0 })
          let (ended, judged) = history.flow.takeEnded { over.contains($0) }
          for slot in ended {
            let model = try #require(history.records[slot])
            #expect(over.contains(slot) && !model.isJudged || history.retrying.contains(slot))
            if let parked = model.parked { late.append(parked) }
            history.retrying.remove(slot)
            history.ended.insert(model.number)
            history.remove(slot)
          }
          for slot in judged {
            try history.judge(slot)
            try history.answer(slot)
          }
        default:
          if let parked = late.popLast() {
            let judged = history.flow.stageAnswered(parked) + history.flow.stageFailed(parked)
            #expect(judged.isEmpty, "a late answer is nothing")
          }
        }
      }
      try drain(&history)
      #expect(history.ended.count == history.begun, "seed \(seed): forgotten")
      #expect(history.flow.count == 0 && history.flow.parked == 0)
    }
  }

  /// When nothing fails and every stage answers, everything ends.
  private func drain(_ history: inout History) throws {
    for _ in 0..<100 where !history.records.isEmpty {
      for parked in history.records.values.filter(\.isAtStage).compactMap(\.parked) { try history.stage(parked) }
      for slot in history.records.keys.sorted() {
        while let model = history.records[slot], model.outstanding > 0, model.isJudged || history.flow.isDeadLetter(slot) {
          try history.answer(slot)
        }
      }
      for slot in history.flow.takeRetries() {
        history.retrying.remove(slot)
        try history.start(slot)
      }
    }
  }

  @Test func aParkedRecordDelaysNobodyElsesTarget() {
    var flow = Flow(tries: 3)
    let slots = (0..<3).map { _ in flow.begin() }
    let passages = [
      flow.pass(slots[0], target: 1, at: 0), flow.pass(slots[1], target: 2, at: nil),
      flow.pass(slots[2], target: 1, at: nil),
    ]
    #expect(passages == [.wait, .judge, .wait])
    let judged = flow.stageAnswered(flow.parked(slots[0], at: 0))
    #expect(judged == [slots[0], slots[2]])
  }

  @Test func recordsOfATargetPassTheirStagesSideBySide() {
    var flow = Flow(tries: 3)
    let slots = (0..<2).map { _ in flow.begin() }
    for slot in slots { _ = flow.pass(slot, target: 1, at: 0) }
    let later = flow.stageAnswered(flow.parked(slots[1], at: 0))
    #expect(later.isEmpty, "it has passed, and waits for the earlier one")
    let both = flow.stageAnswered(flow.parked(slots[0], at: 0))
    #expect(both == slots)
  }

  @Test func whatFailsForGoodIsDeadLetteredAfterItsTries() {
    var flow = Flow(tries: 2)
    let slot = flow.begin()
    let first = flow.fault(slot)
    #expect(!first)
    flow.fail(slot)
    let step = flow.answered(slot)
    #expect(step == .retry)
    _ = flow.takeRetries()
    let (second, third) = (flow.fault(slot), flow.fault(slot))
    #expect(second && flow.isDeadLetter(slot))
    #expect(!third, "it is one already")
  }
}
