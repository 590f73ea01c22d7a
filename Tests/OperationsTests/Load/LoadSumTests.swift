import JSON
import Notifications
import TestSupport
import Testing

@testable import Operations

/// The sum of all shares of a run: by random histories of shares, and by files that are missing, changed or made up.
@Suite struct LoadSumTests {
  /// What happened in a run, as each share has it, and as one list of everything.
  private struct History {
    let plan: LoadPlan
    let shares: [LoadShare]
    private let names: [LoadNames]
    private var random: SeededRandom
    private(set) var results: [LoadShareResult] = []
    // The naive model.
    private(set) var totals = LoadLedger.Totals()
    private(set) var latencies: [(stage: LoadMeasures.Stage, due: Int64, at: Int64)] = []
    private(set) var findings: Set<LoadFinding> = []
    private(set) var (offered, kept, elapsed) = (0, 0, Int64(0))

    init(seed: UInt64, run: String = "big", start: Int64 = 1_800_000_000_000, shares count: Int? = nil) {
      var (random, plan) = (SeededRandom(seed: seed), LoadPlan())
      plan.devices.perUser = Int.random(in: 1...4, using: &random)
      plan.devices.count = Int.random(in: 20...60, using: &random)
      plan.requests.rate = Int.random(in: 8...60, using: &random)
      plan.requests.durationMilliseconds = Int.random(in: 2_000...6_000, using: &random)
      plan.seed = seed
      let count = count ?? Int(seed % 4) + 1
      shares = (1...count).map { [plan] in plan.share($0, of: count) }
      names = shares.map { $0.names(run: run, series: 77) }
      (self.plan, self.random) = (plan, random)
      for index in shares.indices { play(index, run, start) }
    }

    private mutating func play(_ index: Int, _ run: String, _ start: Int64) {
      let (share, own) = (shares[index], names[index])
      let schedule = LoadSchedule(share.plan.requests)
      var ledger = LoadLedger(share.plan, requestsOfRun: share.requestsOfRun)
      var measures = LoadMeasures(durationMilliseconds: share.plan.requests.durationMilliseconds)
      var found: [LoadFinding] = []
      for device in 0..<share.plan.devices.count { ledger.connected(device, at: 0) }

      func note(_ stage: LoadMeasures.Stage, _ due: Int64) -> Int64 {
        let time = due + Int64.random(in: 0...(1 << Int64.random(in: 20...31, using: &random)), using: &random)
        latencies.append((stage, due, time))
        measures.record(stage, due: due, at: time)
        return time
      }
      func wrong(
        _ kind: LoadViolation.Kind, _ id: NotificationID, _ device: Int, _ target: Name, _ time: Int64, _ violation: LoadViolation?
      ) {
        totals.violations[kind, default: 0] += 1
        findings.insert(LoadFinding(kind: kind, id: id, device: own.token(device), target: target, atMilliseconds: time / 1_000_000))
        if let violation { found.append(LoadFinding(violation, own, share)) }
      }
      func revision(_ number: Int) -> Revision { Revision(timestamp: 1, partition: 0, offset: UInt64(number)) }
      func tell(_ number: Int, _ device: Int, _ due: Int64) -> (Int64, LoadViolation?) {
        totals.outcomes[.delivered, default: 0] += 1
        let time = note(.told, due)
        return (time, ledger.told(.delivered, of: number, at: device, time: time).violation)
      }

      for number in 0..<schedule.total {
        let (due, target) = (schedule.due(number), share.plan.request(number).target)
        ledger.produced(number)
        ledger.published(number, at: note(.published, due))
        totals.published += 1
        var hasAll = true
        for device in share.plan.devices(of: target) {
          totals.expected += 1
          let chance = Int.random(in: 0..<12, using: &random)
          if chance < 2 { hasAll = false }
          if chance == 0 {
            totals.unfinished += 1
          } else if chance == 1 {
            let (time, violation) = tell(number, device, due)
            wrong(.lost, own.id(number), device, own.target(target), time, violation)
          } else {
            totals.reached += 1
            let time = note(.arrived, due)
            _ = ledger.arrived(number, at: device, revision: revision(number), time: time, isPast: false)
            if chance == 2 {
              let again = ledger.arrived(number, at: device, revision: revision(number), time: time, isPast: false)
              wrong(.repeated, own.id(number), device, own.target(target), time, again.violation)
            }
            if chance == 3 { totals.untold += 1 } else { _ = tell(number, device, due) }
          }
        }
        if hasAll { totals.completed += 1 }
        guard shares.count > 1, Int.random(in: 0..<10, using: &random) == 0 else { continue }
        // A device gets a request of another share.
        let other = (index + Int.random(in: 1..<shares.count, using: &random)) % shares.count
        let request = Int.random(in: 0..<LoadSchedule(shares[other].plan.requests).total, using: &random)
        let (id, device) = (names[other].id(request), Int.random(in: 0..<share.plan.devices.count, using: &random))
        let arrival = ledger.arrived(own.request(of: id) ?? .max, at: device, revision: revision(request), time: due, isPast: false)
        wrong(.misdirected, id, device, names[other].target(shares[other].plan.request(request).target), due, arrival.violation)
      }
      ledger.finish(at: 60_000_000_000)

      var servers = LoadServers(startedAt: 0, measures)
      servers.take(1.5, of: LoadServers.ownGroup, at: 1_000_000_000)
      if index == 0 {
        let ages = LoadAges(cumulative: [0.1: 3, .infinity: 5])
        servers.take(WorkerReading(startedAt: 1, processorSeconds: 2, role: "transform", ages: [.transformed: ages]), of: "w", at: 5)
        servers.missed("x", "no answer")
      }
      var result = LoadResult(plan: share.plan, startedAt: start, elapsed: 0, measures: measures, servers: servers)
      (result.totals, result.offered, result.connected) = (ledger.totals, schedule.total, share.plan.devices.count)
      result.kept = Int.random(in: 0...schedule.total, using: &random)
      result.elapsed = Int64.random(in: 0...90_000_000_000, using: &random)
      (offered, kept, elapsed) = (offered + result.offered, kept + result.kept, max(elapsed, result.elapsed))
      results.append(LoadShareResult(run: run, plan: "seed = \(plan.seed)\n", share: share, result: result, findings: found))
    }

    /// The results, as their files are read.
    func read() throws -> [LoadSum.Part] {
      try results.map { ("\($0.share.number).json", try LoadSumTests.read($0.json, plan)) }
    }
  }

  private static func read(_ json: JSONValue, _ plan: LoadPlan) throws -> LoadShareResult {
    try LoadShareResult(try JSONValue(parsing: json.text)) { _ in plan }
  }

  @Test(arguments: 0..<(isComplete ? 60 : 12) as Range<UInt64>)
  func `the sum has every number of a naive list of all that happened, and each violation`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let history = History(seed: seed)
    let parts = try history.read()
    let sum = try LoadSum.sum(parts.shuffled(using: &random))
    #expect(sum.totals == history.totals)
    #expect(sum.offered == history.offered && sum.kept == history.kept && sum.elapsed == history.elapsed && sum.plan == history.plan)
    #expect(sum.connected == history.plan.devices.count)

    var all = LoadMeasures(durationMilliseconds: history.plan.requests.durationMilliseconds)
    for latency in history.latencies.shuffled(using: &random) { all.record(latency.stage, due: latency.due, at: latency.at) }
    #expect(sum.measures.stages == all.stages && sum.measures.intervals == all.intervals && sum.measures.delays == all.delays)
    for stage in LoadMeasures.Stage.allCases {
      #expect(sum.measures[stage].count == Int64(history.latencies.count { $0.stage == stage }), "\(stage)")
    }

    #expect(Set(parts.flatMap(\.share.findings)) == history.findings)
    #expect(sum.servers.groups[LoadServers.ownGroup]?.processes == history.shares.count)
    #expect(sum.servers.groups[LoadServers.ownGroup]?.seconds == 1.5 * Double(history.shares.count))
    let worker = sum.servers.groups["transform"]
    #expect(worker?.processes == 1 && worker?.seconds == 2 && sum.servers.ages == history.results[0].result.servers.ages)
    #expect(sum.silentServers == ["x did not answer: no answer"])
    #expect(sum.shares.map(\.share.number) == Array(1...history.shares.count))
    #expect(sum.shares.reduce(0) { $0 + $1.result.totals.published } == history.totals.published)
  }

  private static func refusal(_ parts: [LoadSum.Part]) -> String? {
    do throws(LoadShareResult.Problem) { _ = try LoadSum.sum(parts) } catch { return error.text }
    return nil
  }

  @Test func `a missing share, two of one, and shares of different runs are refused with the reason`() throws {
    let parts = try History(seed: 3, shares: 3).read()
    #expect(Self.refusal(parts) == nil)
    #expect(Self.refusal([parts[0], parts[2]]) == "of 3 shares the file of share 2 is missing")
    #expect(Self.refusal([parts[1]]) == "of 3 shares the file of share 1, 3 is missing")
    #expect(Self.refusal(parts + [("again.json", parts[1].share)]) == "2.json and again.json are both share 2")
    #expect(Self.refusal([]) == "no file was given")
    for (other, reason) in [
      (History(seed: 3, run: "other", shares: 3), "their names (--run)"),
      (History(seed: 3, start: 5, shares: 3), "when they began (--start)"),
      (History(seed: 3, shares: 2), "how many shares they have (--share)"),
      (History(seed: 4, shares: 3), "their plans (--seed, --profile, …)"),
    ] {
      let other = try other.read()
      #expect(Self.refusal([parts[0], other[1], parts[2]]) == "1.json and 2.json are of different runs: \(reason)")
    }
  }

  @Test(arguments: 0..<(isComplete ? 200 : 40) as Range<UInt64>) func `a file with changed bytes is refused, or says the same`(seed: UInt64)
  {
    var random = SeededRandom(seed: seed)
    let history = History(seed: seed, shares: 2)
    let original = history.results[0].json.text
    var bytes = Array(original.utf8)
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let place = Int.random(in: 0..<bytes.count, using: &random)
      if Bool.random(using: &random) { bytes.remove(at: place) } else { bytes[place] = UInt8.random(in: 0x20...0x7E, using: &random) }
    }
    guard let json = bytes.withUnsafeBytes({ try? JSONValue(parsing: $0) }),
      let changed = try? LoadShareResult(json, readPlan: { _ in history.plan })
    else { return }
    #expect(changed.json.text == original)
  }

  /// What is put in the place of a member, and what is said of it.
  private static let hostile: [(String, JSONValue, String)] = [
    ("version", 3, "has version 3 of the numbers"), ("number", 9, "is share 9 of 2"), ("of", 101, "of 101, and there are at most 100"),
    ("run", .string(String(repeating: "x", count: 41)), "the member 'run'"), ("plan", "bad", "has a plan that cannot be carried out"),
    ("offered", -1, "'offered' of its share must be a whole number"), ("offered", .integer(.max), "'offered'"),
    ("kept", 1_000_000, "'kept'"),
    ("reached", .integer(1 << 50), "'reached'"), ("published", .integer(1 << 50), "'published'"), ("failed", "1", "'failed'"),
    ("stages", [""], "'stages'"), ("stages", ["", "", "", "1 2"], "'stages'"), ("intervals", [], "'intervals'"),
    ("delays", [[5, 1, 0, 0]], "'delays'"), ("violations", ["strange": 1], "'violations'"), ("events", .null, "'events'"),
    ("servers", 1, "'servers'"), ("servers", ["groups": ["x": [1]], "ages": [:], "silent": [:]], "'servers.groups'"),
    ("servers", ["groups": [:], "ages": ["sent": [[1, 1], [1, 1]]], "silent": [:]], "'servers.ages'"),
    ("findings", [1], "'findings'"), ("startedAt", -5, "'startedAt'"),
  ]

  @Test func `numbers that no run has are refused by the member and its rule, also with a checksum that holds`() throws {
    let history = History(seed: 1, shares: 2)
    for (name, value, text) in Self.hostile {
      var members = try #require(history.results[0].json.members).dropLast()
      let index = try #require(members.firstIndex { $0.key == name }, "\(name)")
      members[index].value = value
      let sum = JSONValue.Member(key: "checksum", value: .string(LoadShareResult.checksum(Array(members))))
      do throws(LoadShareResult.Problem) {
        _ = try LoadShareResult(.object(members + [sum])) { text in
          guard text != "bad" else { throw LoadShareResult.Problem("no plan") }
          return history.plan
        }
        Issue.record("\(name) \(value.text) is read")
      } catch { #expect(error.text.contains(text), "\(name) \(value.text): \(error.text)") }
    }
    let none = JSONValue.object(Array(try #require(history.results[0].json.members).dropLast()))
    #expect(throws: LoadShareResult.Problem("was changed after it was written: its checksum does not hold")) {
      _ = try Self.read(none, history.plan)
    }
  }

  @Test func `a start that has passed and a clock that differs by more than ten seconds are refused`() {
    #expect(throws: Never.self) { try LoadRun.checkAhead(1_000, now: 1_000) }
    #expect(throws: LoadRefusal.late(milliseconds: 1)) { try LoadRun.checkAhead(1_000, now: 1_001) }
    for difference in [-10_000, 0, 10_000] as [Int64] { #expect(throws: Never.self) { try LoadRun.checkClock(difference) } }
    for difference in [-10_001, 10_001] as [Int64] {
      #expect(throws: LoadRefusal.clockDiffers(milliseconds: difference)) { try LoadRun.checkClock(difference) }
    }
  }
}
