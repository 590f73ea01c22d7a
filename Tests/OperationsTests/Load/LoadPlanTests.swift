import Operations
import Testing

/// What a plan promises: due times and requests that follow from it alone, and rules that name the setting to change.
@Suite struct LoadPlanTests {
  static func plan(_ change: (inout LoadPlan) -> Void = { _ in }) -> LoadPlan {
    var plan = LoadPlan()
    change(&plan)
    return plan
  }

  @Test(arguments: [(1, 0, 10_000, 10), (50, 0, 20_000, 1000), (100, 10_000, 10_000, 500), (100, 10_000, 30_000, 2500), (3, 0, 1000, 3)])
  func `a schedule has as many requests as rate, ramp and duration make`(rate: Int, ramp: Int, duration: Int, total: Int) {
    let plan = Self.plan {
      ($0.requests.rate, $0.requests.rampMilliseconds, $0.requests.durationMilliseconds) = (rate, ramp, duration)
    }
    let schedule = LoadSchedule(plan.requests)
    #expect(schedule.total == total)
    var former: Int64 = -1
    for number in 0..<total {
      let due = schedule.due(number)
      #expect(due > former && due < Int64(duration) * 1_000_000)
      #expect(schedule.count(dueBy: due) == number + 1)
      #expect(schedule.count(dueBy: due - 1) == number)
      former = due
    }
    #expect(schedule.count(dueBy: .max / 2) == total)
    #expect(schedule.count(dueBy: -1) == 0)
  }

  @Test func `without a ramp the distance of two requests is the same everywhere`() {
    let schedule = LoadSchedule(Self.plan { $0.requests.rate = 40 }.requests)
    #expect((0..<100).allSatisfy { abs(schedule.due($0 + 1) - schedule.due($0) - 25_000_000) <= 1 })
  }

  @Test func `requests have the shares of the plan`() {
    let plan = Self.plan {
      ($0.devices.count, $0.devices.perUser, $0.requests.sizes) = (101, 2, [100, 200, 300])
      ($0.requests.toUsers, $0.requests.collapsing, $0.requests.duplicate, $0.requests.mutable) = (0.25, 0.4, 0.1, 0.05)
      ($0.devices.slow, $0.requests.scheduled) = (0.3, 0.2)
    }
    let requests = (0..<20_000).map { plan.request($0) }
    func share(_ isIncluded: (LoadRequest) -> Bool) -> Double { Double(requests.count(where: isIncluded)) / 20_000 }
    #expect(abs(share { if case .user = $0.target { true } else { false } } - 0.25) < 0.02)
    #expect(abs(share { $0.isScheduled } - 0.2) < 0.02)
    #expect(abs(share { $0.slot != nil } - 0.4 * 0.8) < 0.02 && !requests.contains { $0.isScheduled && $0.slot != nil })
    #expect(abs(share { $0.isDuplicated } - 0.1) < 0.02)
    #expect(abs(share { $0.isMutable } - 0.05) < 0.02)
    for size in [100, 200, 300] { #expect(abs(share { $0.size == size } - 1 / 3) < 0.02) }
    #expect(Set(requests.compactMap(\.slot)) == Set(0..<LoadPlan.slots))
    var (users, devices): (Set<Int>, Set<Int>) = ([], [])
    for request in requests {
      switch request.target {
      case .user(let user): users.insert(user)
      case .device(let device): devices.insert(device)
      }
    }
    #expect(users == Set(0..<51) && devices == Set(0..<101))
    #expect((15...45).contains((0..<101).count { plan.isSlow($0) }))
  }

  @Test func `a plan and its seed always make the same requests`() {
    var plan = Self.plan { ($0.requests.collapsing, $0.requests.duplicate) = (0.5, 0.5) }
    let requests = (0..<100).map { plan.request($0) }
    #expect(requests == (0..<100).map { plan.request($0) })
    plan.seed = 2
    #expect(requests != (0..<100).map { plan.request($0) })
  }

  private static let broken: [(String, LoadPlan)] = [
    ("ramp", plan { $0.requests.rampMilliseconds = 20_001 }),
    ("rate", plan { ($0.requests.rate, $0.requests.durationMilliseconds) = (1_000_000, 86_400_000) }),
    ("duration", plan { ($0.requests.rate, $0.requests.durationMilliseconds) = (1, 999) }),
    ("devices-per-user", plan { ($0.devices.count, $0.devices.perUser) = (1, 2) }),
    ("patience", plan { ($0.devices.slow, $0.patienceMilliseconds) = (0.1, 2_000) }),
  ]

  @Test func `a plan that cannot be carried out names the setting to change`() throws {
    for (flag, plan) in Self.broken {
      let problem = #expect(throws: LoadPlan.Problem.self) { try plan.check() }
      #expect(problem?.flag == flag && problem?.rule.isEmpty == false)
    }
    try LoadPlan().check()
    try Self.plan { ($0.devices.count, $0.devices.perUser, $0.requests.rampMilliseconds) = (1, 1, 20_000) }.check()
  }
}

/// What the measures of a run tell of times in which a cluster was slow.
@Suite struct LoadMeasuresTests {
  @Test func `requests that took long are one delay if they were due together, and two if not`() {
    var measures = LoadMeasures(durationMilliseconds: 20_000)
    let second: Int64 = 1_000_000_000
    func arrive(due: Double, after: Double) { measures.record(.arrived, due: Int64(due * 1e9), at: Int64((due + after) * 1e9)) }
    for tenth in 0..<200 {
      let due = Double(tenth) / 10
      // It stands still from 4 to 10 s, and from 15 to 17 s.
      let stall = (4.0..<10).contains(due) ? 10 - due : (15.0..<17).contains(due) ? 17 - due : 0
      arrive(due: due, after: stall + 0.01)
    }
    #expect(measures.delays.count == 2)
    #expect(measures.delays[0].due.lowerBound == 4 * second && abs(measures.delays[0].longest - 6_010_000_000) < 1000)
    #expect(measures.delays[0].due.upperBound == 9 * second && measures.delays[0].count == 51)
    #expect(measures.delays[1].due == (15 * second)...(16 * second))
    #expect(measures[.arrived].value(atPercentile: 50) < 11_000 && measures[.arrived].maximum >= 6_000_000)
    #expect(measures.intervals[4].arrival.value(atPercentile: 0) >= 5_000_000)
    #expect(measures.intervals[4][.arrived] == 0 && measures.intervals[10][.arrived] == 70)
  }

  @Test func `two delays become one when a request between them arrives late as well`() {
    var measures = LoadMeasures(durationMilliseconds: 20_000)
    for due in [5_000_000_000, 6_900_000_000, 0] as [Int64] { measures.record(.arrived, due: due, at: 12_000_000_000) }
    #expect(measures.delays.map(\.due.lowerBound) == [0, 5_000_000_000, 6_900_000_000])
    measures.record(.arrived, due: 6_000_000_000, at: 14_000_000_000)
    #expect(measures.delays.map(\.due) == [0...0, 5_000_000_000...6_900_000_000])
    #expect(measures.delays[1].count == 3 && measures.delays[1].longest == 8_000_000_000)
  }

  @Test func `a late record outside of the run is counted in the histogram alone`() {
    var measures = LoadMeasures(durationMilliseconds: 1500)
    #expect(measures.intervals.count == 2)
    measures.record(.told, due: 1_400_000_000, at: 90_000_000_000)
    measures.record(.arrived, due: 0, at: -5)
    #expect(measures[.told].count == 1 && measures.intervals.allSatisfy { $0[.told] == 0 })
  }
}
