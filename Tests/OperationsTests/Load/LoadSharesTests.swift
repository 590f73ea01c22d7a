import Notifications
import TestSupport
import Testing

@testable import Operations

/// Which process of a run has which share, when all begin, and which is silent: by random histories of processes that read one log.
@Suite struct LoadSharesTests {
  private static let agreement = LoadAgreement(processes: 3, pulseMilliseconds: 100, pulseLimit: 4, plan: "")
  private static let plan: LoadPlan = {
    var plan = LoadPlan()
    (plan.devices.count, plan.devices.perUser, plan.requests.rate, plan.requests.durationMilliseconds) = (6, 1, 12, 1000)
    return plan
  }()

  // MARK: The naive model

  /// What a log says, found by looking through all of it.
  private struct Model: Equatable {
    var holders: [UInt64?] = []
    var isReady: [Bool] = []
    var isFinished: [Bool] = []
    var hasLeft: [Bool] = []
    var start: Int64?
    var isOver = false
    var silent: Set<Int> = []

    init(_ log: ArraySlice<LoadRecord>, observer: UInt64) {
      guard let begin = log.firstIndex(where: { if case .plan = $0.content { $0.run == $0.process } else { false } }) else { return }
      let first = log[begin].process
      var records = Array(log[(begin + 1)...].filter { $0.run == first })
      func isEnd(_ record: LoadRecord) -> Bool { if case .end = record.content { record.process == first } else { false } }
      if let end = records.firstIndex(where: isEnd) { (records, isOver) = (Array(records[..<end]), true) }
      func isStart(_ record: LoadRecord) -> Bool { if case .start = record.content { record.process == first } else { false } }
      let started = records.firstIndex(where: isStart)
      if let started, case .start(let time) = records[started].content { start = time }

      defer { if isOver { start = nil } }
      holders = [first] + Array(repeating: nil, count: LoadSharesTests.agreement.processes - 1)
      var (asked, since): (Set<UInt64>, [Int]) = ([first], Array(repeating: -1, count: holders.count))
      for (index, record) in records[..<(started ?? records.count)].enumerated() {
        var leaving: UInt64?
        switch record.content {
        case .join:
          if asked.insert(record.process).inserted, let free = holders.firstIndex(of: nil) {
            (holders[free], since[free]) = (record.process, index)
          }
        case .left: leaving = record.process
        case .removed(let process): if record.process == first { leaving = process }
        default: break
        }
        if let leaving, let share = holders.firstIndex(of: leaving), share > 0 { holders[share] = nil }
      }
      for (share, holder) in holders.enumerated() {
        func own(_ range: Range<Int>, _ matches: (LoadRecord.Content) -> Bool) -> Int? {
          records[range].firstIndex { $0.process == holder && matches($0.content) }
        }
        let (from, now) = (since[share] + 1, records.count)
        let ready = own(from..<(started ?? now)) { $0 == .ready }
        let final = own(from..<now) { if case .numbers(_, isFinal: true) = $0 { true } else { false } }
        let left = own((started ?? now)..<now) { if case .left = $0 { true } else { false } }
        let isIn = holder != nil && (started == nil || ready != nil)
        isFinished.append(isIn && final != nil && final! < left ?? .max)
        hasLeft.append(started != nil && !isIn || isIn && left != nil && left! < final ?? .max)
        isReady.append(holder != nil && ready != nil && !isFinished[share] && !hasLeft[share])
        guard let holder, isIn, !isFinished[share], !hasLeft[share], holder != observer else { continue }
        let heard = records.lastIndex { $0.process == holder } ?? -1
        let pulses = records[(max(heard, since[share]) + 1)...].count {
          $0.process == observer && $0.content == .pulse && Self.isMember(observer, in: holders)
        }
        if pulses >= LoadSharesTests.agreement.pulseLimit { silent.insert(share) }
      }
    }

    private static func isMember(_ process: UInt64, in holders: [UInt64?]) -> Bool { holders.contains(process) }

    init(_ shares: LoadShares) {
      switch shares.phase {
      case .absent, .foreign: return
      case .waiting: break
      case .running(let start): self.start = start
      case .over: isOver = true
      }
      for (index, share) in shares.shares.enumerated() {
        holders.append(share.state == .free ? nil : share.process?.id)
        isFinished.append(share.state == .finished)
        let hasGone = if case .left = share.state { true } else { false }
        hasLeft.append(hasGone)
        isReady.append(share.state == .ready)
        if shares.isSilent(index) { silent.insert(index) }
      }
    }
  }

  // MARK: The processes

  private struct Process {
    let id: UInt64
    var shares: LoadShares
    var read = 0
    var isAlive = true
    var steps = 0
    var hasJoined = false
    var isReady = false
    /// How many records it still publishes before its share is done.
    var left: Int
    var final: LoadNumbers?
    var pulsesWritten = 0
    var pulsesRead = 0

    init(_ id: UInt64, left: Int) { (self.id, shares, self.left) = (id, LoadShares(observer: id), left) }
  }

  /// One topic, its writers, and what has come of them.
  private struct Meeting {
    var random: SeededRandom
    var log: [LoadRecord] = []
    var processes: [Process]
    /// The final numbers of each process that has sent them.
    var finals: [UInt64: LoadNumbers] = [:]
    /// The number of the first process' pulse at which it stops waiting for others.
    let patience = 30
    var hasEnded = false
    var sum: LoadResult?

    init(_ seed: UInt64, processes count: Int) {
      random = SeededRandom(seed: seed)
      processes = []
      for id in 1...UInt64(count) { processes.append(Process(id, left: Int.random(in: 1...8, using: &random))) }
    }

    func record(_ index: Int, _ content: LoadRecord.Content) -> LoadRecord {
      LoadRecord(run: 1, process: processes[index].id, content: content)
    }

    mutating func write(_ index: Int, _ content: LoadRecord.Content) { log.append(record(index, content)) }

    mutating func read(_ index: Int, _ count: Int) {
      for record in log[processes[index].read...].prefix(count) {
        let news = processes[index].shares.take(record)
        if record.process == processes[index].id, record.content == .pulse { processes[index].pulsesRead += 1 }
        processes[index].read += 1
        for case .silent(let share) in news where index == 0 && processes[0].shares.phase == .waiting {
          write(0, .removed(process: processes[0].shares.shares[share].process!.id))
        }
      }
    }

    /// Does what a process does next by itself.
    mutating func act(_ index: Int) {
      let process = processes[index]
      guard process.isAlive else { return }
      // One pulse is on its way at a time.
      if process.shares.own != nil, process.pulsesWritten == process.pulsesRead {
        processes[index].pulsesWritten += 1
        write(index, .pulse)
      }
      switch process.shares.phase {
      case .absent:
        if index == 0, !process.hasJoined {
          processes[0].hasJoined = true
          write(0, .plan(LoadSharesTests.agreement, by: "first"))
        }
      case .foreign: break
      case .waiting: wait(index)
      case .running: publish(index)
      case .over: processes[index].isAlive = false
      }
    }

    private mutating func wait(_ index: Int) {
      let process = processes[index]
      if index > 0, !process.hasJoined {
        processes[index].hasJoined = true
        return write(index, .join(by: Name("process \(process.id)")))
      }
      let hasRead = log[..<process.read].contains {
        $0.process == process.id && ($0.content == .join(by: Name("process \(process.id)")) || index == 0)
      }
      guard process.shares.own != nil else {
        // It was refused, or its share was taken back.
        if hasRead { processes[index].isAlive = false }
        return
      }
      if index > 0, process.shares.isSilent(0) { return processes[index].isAlive = false }
      if !process.isReady {
        processes[index].isReady = true
        write(index, .ready)
      } else if index == 0, process.shares.areAllReady {
        write(0, .start(at: 77))
      } else if index == 0, process.pulsesRead > patience {
        write(0, .end(reason: "not all were ready"))
      }
    }

    private mutating func publish(_ index: Int) {
      let process = processes[index]
      guard let own = process.shares.own, process.shares.shares[own].state == .ready else { return processes[index].isAlive = index == 0 }
      if index > 0, process.shares.isSilent(0) { return processes[index].isAlive = false }
      processes[index].left -= 1
      if process.left > 0 { return index > 0 ? write(index, .numbers(numbers(), isFinal: false)) : () }
      if index > 0 {
        finals[process.id] = numbers()
        write(index, .numbers(finals[process.id]!, isFinal: true))
        processes[index].isAlive = false
      } else if process.shares.unfinished.isEmpty, !hasEnded {
        hasEnded = true
        sum = process.shares.sum(LoadSharesTests.result(numbers()), of: LoadSharesTests.plan, isOver: true)
        write(0, .end(reason: "done"))
      }
    }

    mutating func numbers() -> LoadNumbers { LoadSharesTests.numbers(&random) }

    /// Writes what no honest process writes.
    mutating func meddle() {
      let someone = processes[Int.random(in: 0..<processes.count, using: &random)].id
      let stranger: UInt64 = 99
      let records: [LoadRecord] = [
        LoadRecord(run: stranger, process: stranger, content: .plan(LoadSharesTests.agreement, by: "another first")),
        LoadRecord(run: 2, process: someone, content: .numbers(numbers(), isFinal: true)),
        LoadRecord(run: 1, process: stranger, content: .end(reason: "mischief")), LoadRecord(run: 1, process: stranger, content: .ready),
        LoadRecord(run: 1, process: stranger, content: .start(at: 5)),
        LoadRecord(run: 1, process: someone == 1 ? stranger : someone, content: .removed(process: 2)),
        LoadRecord(run: 7, process: 7, content: .cleaned), LoadRecord(run: 7, process: 7, content: .foreignPlan(version: 2)),
      ]
      // A plan before the first one's, or after the end, would begin another run.
      let isOver = log.contains { if case .end = $0.content { $0.process == 1 } else { false } }
      guard let record = records.randomElement(using: &random), !log.isEmpty, !isOver else { return }
      log.append(record)
    }
  }

  private static func numbers(_ random: inout SeededRandom) -> LoadNumbers {
    var numbers = LoadNumbers()
    (numbers.offered, numbers.kept) = (4, Int.random(in: 0...4, using: &random))
    (numbers.totals.expected, numbers.totals.reached) = (3, Int.random(in: 0...3, using: &random))
    numbers.totals.violations[.lost] = Int.random(in: 0...2, using: &random)
    for stage in numbers.stages.indices { numbers.stages[stage].record(Int64.random(in: 0...500, using: &random)) }
    return numbers
  }

  private static func result(_ numbers: LoadNumbers) -> LoadResult {
    var measures = LoadMeasures(durationMilliseconds: plan.requests.durationMilliseconds)
    measures.stages = numbers.stages
    return LoadResult(
      plan: plan.share(0, of: agreement.processes).plan, startedAt: 77, elapsed: 1, offered: numbers.offered, kept: numbers.kept,
      duplicates: 0, totals: numbers.totals, measures: measures, connected: 0, connections: 0, responses: 0, acceptedResponses: 0,
      servers: LoadServers(startedAt: 0, measures), isStopped: false)
  }

  // MARK: Tests

  @Test(arguments: 0..<(isComplete ? 60 : 12) as Range<UInt64>)
  func `all processes agree with a naive reader of the log, and no run waits for ever`(seed: UInt64) throws {
    var meeting = Meeting(seed, processes: 5)
    let kills = Int.random(in: 0...2, using: &meeting.random)
    var killed = 0
    for step in 0..<1_500 {
      let index = Int.random(in: 0..<meeting.processes.count, using: &meeting.random)
      // Later processes are slow sometimes, for a while: they neither read nor write.
      let sleeps = (step / 150 + index) % 7 == 0 && seed % 3 == 0
      if !sleeps {
        meeting.read(index, Int.random(in: 0...6, using: &meeting.random))
        if Int.random(in: 0..<3, using: &meeting.random) == 0 { meeting.act(index) }
      }
      if seed % 2 == 0, Int.random(in: 0..<40, using: &meeting.random) == 0 { meeting.meddle() }
      if killed < kills, index > 0, Int.random(in: 0..<120, using: &meeting.random) == 0 {
        meeting.processes[index].isAlive = false
        killed += 1
      }
      let process = meeting.processes[index]
      guard Int.random(in: 0..<6, using: &meeting.random) == 0 else { continue }
      let (known, model) = (Model(process.shares), Model(meeting.log[..<process.read], observer: process.id))
      try #require(known == model, "step \(step)")
    }
    // Everything that was written is read, and those that are alive go on.
    for _ in 0..<600 where meeting.processes.contains(where: \.isAlive) {
      for index in meeting.processes.indices {
        meeting.read(index, .max)
        meeting.act(index)
      }
    }
    let first = meeting.processes[0]
    guard case .over = first.shares.phase else {
      Issue.record("the first process still waits: \(first.shares.phase)")
      return
    }
    #expect(meeting.processes.allSatisfy { !$0.isAlive }, "no process waits for one that is gone")
    if let sum = meeting.sum { Self.check(sum, first.shares, meeting) }
  }

  /// The sum has the final numbers of each share that has sent them, and names the others.
  private static func check(_ sum: LoadResult, _ shares: LoadShares, _ meeting: Meeting) {
    var (reached, expected, arrivals) = (0, 0, Int64(1))
    for (index, share) in shares.shares.enumerated() where index > 0 {
      let isFinal = share.state == .finished
      #expect((sum.shares[index].gap == nil) == isFinal, "\(sum.shares[index])")
      if isFinal, let id = share.process?.id { #expect(share.numbers == meeting.finals[id]) }
      reached += share.numbers?.totals.reached ?? 0
      arrivals += share.numbers?.stages[1].count ?? 0
      expected += isFinal ? 3 : plan.share(index, of: 3).plan.pairs
    }
    #expect(sum.totals.reached - reached <= 3 && sum.totals.expected == expected + 3)
    #expect(sum.measures[.arrived].count == arrivals)
    #expect(sum.offered == 12 && sum.plan == plan && sum.shares.map(\.number) == [1, 2, 3])
    if sum.shares.contains(where: { $0.gap != nil }) { #expect(!sum.isGood && sum.reach < 1) }
  }

  @Test(arguments: 0..<(isComplete ? 60 : 12) as Range<UInt64>)
  func `a process that reads only the newest record of each key knows the same shares`(seed: UInt64) {
    var meeting = Meeting(seed, processes: 4)
    for _ in 0..<Int.random(in: 50...600, using: &meeting.random) {
      let index = Int.random(in: 0..<meeting.processes.count, using: &meeting.random)
      meeting.read(index, Int.random(in: 0...6, using: &meeting.random))
      if Int.random(in: 0..<3, using: &meeting.random) == 0 { meeting.act(index) }
    }
    func shares(_ log: [LoadRecord]) -> Model {
      var shares = LoadShares(observer: 50)
      for record in log { _ = shares.take(record) }
      return Model(shares)
    }
    var keys: Set<String> = []
    let compacted = Array(meeting.log.reversed().filter { keys.insert($0.key("run")).inserted }.reversed())
    #expect(shares(compacted) == shares(meeting.log))
  }

  private func shares(_ observer: UInt64, _ contents: [(UInt64, LoadRecord.Content)]) -> LoadShares {
    var shares = LoadShares(observer: observer)
    for (process, content) in contents { _ = shares.take(LoadRecord(run: 1, process: process, content: content)) }
    return shares
  }

  private static let begun: [(UInt64, LoadRecord.Content)] = [
    (1, .plan(agreement, by: "a")), (2, .join(by: "b")), (3, .join(by: "c")), (1, .ready), (2, .ready), (3, .ready), (1, .start(at: 9)),
  ]

  @Test func `the second of two plans, a process too many and one that comes too late get no share`() {
    #expect(shares(8, [(1, .plan(Self.agreement, by: "a")), (8, .join(by: "x"))]).own == 1)
    let full = shares(8, [(1, .plan(Self.agreement, by: "a")), (2, .join(by: "b")), (3, .join(by: "c")), (8, .join(by: "x"))])
    #expect(full.own == nil && full.phase == .waiting)
    #expect(shares(8, Self.begun + [(8, .join(by: "x"))]).own == nil)
    var second = shares(8, [(1, .plan(Self.agreement, by: "a"))])
    _ = second.take(LoadRecord(run: 8, process: 8, content: .plan(Self.agreement, by: "x")))
    #expect(!second.isFirst && second.number == 1)
  }

  @Test func `a share that was given back before the start goes to the next process, and its former one gets none`() {
    let given = shares(4, Self.begun.prefix(3) + [(2, .left(reason: "tired")), (4, .join(by: "d")), (2, .join(by: "b"))])
    #expect(given.own == 1 && given.share(of: 2) == nil)
  }

  @Test func `a silent process is named, is no longer so when it is heard, and what it said last counts`() {
    var shares = shares(1, Self.begun)
    var random = SeededRandom(seed: 1)
    let numbers = Self.numbers(&random)
    func take(_ process: UInt64, _ content: LoadRecord.Content) -> [LoadShares.News] {
      shares.take(LoadRecord(run: 1, process: process, content: content))
    }
    _ = take(2, .numbers(numbers, isFinal: false))
    for _ in 1..<4 { #expect(take(1, .pulse) == []) }
    _ = take(3, .pulse)
    #expect(take(1, .pulse) == [.silent(share: 1)] && shares.isSilent(1) && !shares.isSilent(2))
    #expect(shares.unfinished == [2])
    #expect(take(2, .pulse) == [.heard(share: 1)] && !shares.isSilent(1))
    _ = take(3, .numbers(numbers, isFinal: true))
    for _ in 0..<4 { _ = take(1, .pulse) }
    let sum = shares.sum(Self.result(numbers), of: Self.plan, isOver: true)
    #expect(sum.shares.map(\.gap) == [nil, "it fell silent", nil])
    #expect(sum.totals.reached == 3 * numbers.totals.reached)
    // Its share has 4 requests to one device each, and told of 3.
    #expect(sum.totals.expected == 3 + 4 + 3 && sum.totals.unfinished == 1 && !sum.isGood)
  }

  @Test func `a run does not start with a process that has ended while it waited, and its share is free when it is silent`() {
    var shares = shares(1, Self.begun.dropLast(1))
    func take(_ process: UInt64, _ content: LoadRecord.Content) { _ = shares.take(LoadRecord(run: 1, process: process, content: content)) }
    for _ in 0..<4 {
      #expect(!shares.areAllReady)
      take(3, .pulse)
      take(1, .pulse)
    }
    #expect(!shares.areAllReady && shares.isSilent(1))
    take(1, .removed(process: 2))
    take(4, .join(by: "d"))
    take(4, .ready)
    for process in [1, 3, 4] as [UInt64] {
      #expect(!shares.areAllReady)
      take(process, .pulse)
    }
    #expect(shares.areAllReady && shares.share(of: 4) == 1 && shares.share(of: 2) == nil)
  }

  @Test func `a start that is not near is a difference of clocks`() {
    for left in [-9_999, 0, 5_000, 14_999] as [Int64] {
      #expect(SharedRun.problem(ofStart: 1_800_000_000_000 + left, now: 1_800_000_000_000) == nil)
    }
    for left in [-10_001, 15_001, 3_600_000] as [Int64] {
      #expect(SharedRun.problem(ofStart: 1_800_000_000_000 + left, now: 1_800_000_000_000) == .clocksDiffer(milliseconds: left))
    }
  }

  @Test func `a process stays with its run, whatever begins under the same name afterwards`() {
    var shares = shares(2, Self.begun + [(1, .end(reason: "done"))])
    let over = shares.phase
    for content in [LoadRecord.Content.plan(Self.agreement, by: "x"), .foreignPlan(version: 2)] {
      _ = shares.take(LoadRecord(run: 8, process: 8, content: content))
      #expect(shares.phase == over && shares.own == 1)
    }
    _ = shares.take(LoadRecord(run: 1, process: 1, content: .cleaned))
    #expect(shares.phase == over)
  }

  @Test func `a run that clean has removed is over for its processes, and its name is free`() {
    var (shares, other) = (shares(2, Self.begun), shares(9, Self.begun))
    _ = shares.take(LoadRecord(run: 1, process: 1, content: .cleaned))
    guard case .over = shares.phase else {
      Issue.record("it goes on: \(shares.phase)")
      return
    }
    for _ in 1...2 { _ = other.take(LoadRecord(run: 1, process: 1, content: .cleaned)) }
    #expect(other.phase == .absent)
  }
}
