import JSON
import Notifications
import TestSupport
import Testing

@testable import Operations

/// What the processes of a run write into the topic `load`, and what they make of anything else there.
@Suite struct LoadRecordTests {
  private static func histogram(_ random: inout SeededRandom, _ layout: HistogramLayout, highest: Int64 = 12) -> Histogram {
    var histogram = Histogram(layout)
    for _ in 0..<Int.random(in: 0...50, using: &random) {
      histogram.record(
        Int64.random(in: 0...(1 << Int64.random(in: 1...highest, using: &random)), using: &random),
        count: Int64.random(in: 1...9, using: &random))
    }
    return histogram
  }

  private static func numbers(_ random: inout SeededRandom) -> LoadNumbers {
    var numbers = LoadNumbers()
    (numbers.offered, numbers.kept, numbers.duplicates, numbers.isStopped) = (7, 6, 1, Bool.random(using: &random))
    (numbers.totals.published, numbers.totals.expected, numbers.totals.reached, numbers.totals.untold) = (6, 12, 11, 2)
    numbers.totals.outcomes = [.delivered: 9, .duplicate: 1]
    numbers.totals.violations = [.outOfOrder: 3]
    numbers.stages = numbers.stages.map { _ in histogram(&random, LoadMeasures.fine) }
    numbers.delays = [LoadMeasures.Delay(due: 5...6_000_000_000, longest: 2_000_000_000, count: 4)]
    (numbers.processorSeconds, numbers.processorIntervals) = (1.5, [0.5, 0.25])
    return numbers
  }

  private static func contents(_ random: inout SeededRandom) -> [LoadRecord.Content] {
    let agreement = LoadAgreement(processes: 3, silenceMilliseconds: 30_000, plan: "rate = 5\n")
    let intervals = (0..<3).map { _ in
      var interval = LoadMeasures.Interval()
      (interval.counts, interval.arrival) = ([1, 2, 3, 4], histogram(&random, LoadMeasures.coarse))
      return interval
    }
    let token = LoadNames(run: "a", series: 5).token(3)
    return [
      .plan(agreement, by: "host/1"), .join(by: "höst/2"), .ready, .left(reason: "\"so\""), .removed(process: .max),
      .start(at: 1_800_000_000_000), .stop, .pulse, .numbers(numbers(&random), isFinal: true), .intervals(first: 20, intervals),
      .violation(LoadFinding(.stale, NotificationID(high: 5, low: 6), token, "user:load-a-1", atMilliseconds: 99), number: 2),
      .end(reason: "x"),
    ]
  }

  private func read(_ key: String, _ value: [UInt8]?, run: String = "big") -> LoadRecord.Reading {
    Array(key.utf8).withUnsafeBytes { key in
      guard let value else { return LoadRecord.read(run, key: key, value: nil) }
      return value.withUnsafeBytes { LoadRecord.read(run, key: key, value: $0) }
    }
  }

  @Test(arguments: 0..<(isComplete ? 8 : 4) as Range<UInt64>) func `each record is read as it was written, and by no other run`(
    seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    for content in Self.contents(&random) {
      let record = LoadRecord(run: 4, process: 0xABC, content: content)
      let key = record.key("big")
      #expect(read(key, record.value) == .record(record))
      for other in ["bi", "bigger", "big-2", ""] { #expect(read(key, record.value, run: other) == .other) }
    }
  }

  @Test(arguments: 0..<(isComplete ? 8 : 4) as Range<UInt64>)
  func `a record with a changed byte is another one or unreadable, and traps nobody`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    for content in Self.contents(&random) {
      let record = LoadRecord(run: 4, process: 0xABC, content: content)
      for _ in 0..<30 {
        var value = record.value ?? []
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          let place = Int.random(in: 0..<value.count, using: &random)
          if Bool.random(using: &random) { value.remove(at: place) } else { value[place] = UInt8.random(in: 0x20...0x7F, using: &random) }
        }
        guard case .record(let changed) = read(record.key("big"), value) else { continue }
        var shares = LoadShares(observer: 4)
        _ = shares.take(
          LoadRecord(run: 4, process: 4, content: .plan(LoadAgreement(processes: 2, silenceMilliseconds: 1, plan: ""), by: "a")))
        _ = shares.take(LoadRecord(run: 4, process: changed.process, content: .join(by: "b")))
        _ = shares.take(changed)
      }
    }
  }

  private static let unreadable =
    [
      ("big/pulse/0000000000000001", "no JSON"), ("big/pulse/0000000000000001", "{}"), ("big/dance/0000000000000001", "{\"version\":1}"),
      ("big/", "{}"), ("big/start/1", #"{"version":1,"run":"0000000000000001","process":"0000000000000001","at":-5}"#),
      (
        "big/plan/0000000000000001",
        #"{"version":1,"run":"0000000000000001","process":"0000000000000001","name":"a","processes":1e9,"pulseMs":100,"pulseLimit":4,"plan":""}"#
      ),
      (
        "big/plan/0000000000000001",
        #"{"version":1,"run":"0000000000000001","process":"0000000000000001","name":"a","processes":2,"pulseMs":0,"pulseLimit":4,"plan":""}"#
      ),
      ("big/pulse/1", #"{"version":2,"run":"0000000000000001","process":"0000000000000001"}"#), ("big/plan/x", #"{"version":2}"#),
      ("big/plan/x", nil),
    ] as [(String, String?)]

  @Test func `garbage in the topic is unreadable, and a plan of another version is told as that`() {
    for (key, value) in Self.unreadable { #expect(read(key, value.map { Array($0.utf8) }) == .unreadable, "\(key) \(value ?? "")") }
    #expect(read("carillon:end", nil) == .other && read("big", []) == .other && read("big/pulse/0000000000000001", nil) == .other)
    let foreign = read("big/plan/000000000000000a", Array(#"{"version":2,"anything":[]}"#.utf8))
    #expect(foreign == .record(LoadRecord(run: 10, process: 10, content: .foreignPlan(version: 2))))
    #expect(read("big/plan/000000000000000a", nil) == .record(LoadRecord(run: 10, process: 10, content: .cleaned)))
  }

  @Test(arguments: 0..<(isComplete ? 20 : 4) as Range<UInt64>) func `a histogram is the same after its text, and sums stay exact`(
    seed: UInt64
  ) {
    var random = SeededRandom(seed: seed)
    let (one, other) = (Self.histogram(&random, LoadMeasures.fine, highest: 33), Self.histogram(&random, LoadMeasures.fine, highest: 33))
    #expect(Histogram(text: one.text, LoadMeasures.fine) == one)
    var sum = one
    sum.merge(other)
    var read = Histogram(text: one.text, LoadMeasures.fine)
    if let other = Histogram(text: other.text, LoadMeasures.fine) { read?.merge(other) }
    #expect(read == sum)
    for percentile in [0, 50, 99, 99.9, 100] { #expect(read?.value(atPercentile: percentile) == sum.value(atPercentile: percentile)) }
  }

  @Test(arguments: [
    " ", "1", "1 2", "1 2 1", "5 3 3 1", "0 0 0 0", "0 0 0 -1", "0 0 1 1", "1 1 1 9223372036854775807", "0 9223372036854775807 0 1",
    "0 5 0 1 0 1", "0 5 0 1 4 1", "0 5 0 1 6 1", "2 5 0 1 5 1", "0 0 0 1 ", "a b c d", "0 5 0 1125899906842624 5 1125899906842624",
  ])
  func `a text that no histogram writes is refused`(text: String) { #expect(Histogram(text: text, LoadMeasures.fine) == nil) }
}

/// How several processes divide a plan.
@Suite struct LoadShareTests {
  private static func plan(_ seed: UInt64) -> LoadPlan {
    var (random, plan) = (SeededRandom(seed: seed), LoadPlan())
    plan.devices.perUser = Int.random(in: 1...5, using: &random)
    plan.devices.count = Int.random(in: 40...300, using: &random)
    plan.requests.rate = Int.random(in: 10...200, using: &random)
    plan.devices.connectRate = Int.random(in: 1...200, using: &random)
    return plan
  }

  @Test(arguments: 0..<(isComplete ? 100 : 20) as Range<UInt64>)
  func `all shares together are the plan, and no two have a device, a person or a request in common`(seed: UInt64) throws {
    let plan = Self.plan(seed)
    let count = Int(seed % 8) + 1
    try plan.check(processes: count)
    let shares = (0..<count).map { plan.share($0, of: count) }
    let names = shares.enumerated().map { $1.names(run: "big", series: UInt64($0 + 1)) }
    let tokens = zip(shares, names).flatMap { share, names in (0..<share.plan.devices.count).map { names.token($0).text } }
    let people = zip(shares, names).flatMap { share, names in (0..<share.plan.users).map { names.user($0) } }
    let whole = LoadNames(run: "big", series: 9)
    #expect(tokens == (0..<plan.devices.count).map { whole.token($0).text })
    #expect(people == (0..<plan.users).map { whole.user($0) })
    #expect(shares.reduce(0) { $0 + LoadSchedule($1.plan.requests).total } == LoadSchedule(plan.requests).total)
    for (share, names) in zip(shares, names) {
      for device in 0..<share.plan.devices.count {
        #expect(names.user(share.plan.user(of: device)) == whole.user(plan.user(of: share.firstDevice + device)))
        #expect(Array(names.token(device).text.utf8).withUnsafeBytes { names.device(ofToken: $0) } == device)
      }
      for other in shares where other.number < share.number {
        let token = Array(whole.token(other.firstDevice).text.utf8)
        #expect(token.withUnsafeBytes { names.device(ofToken: $0) } == nil)
      }
    }
    #expect(Set(shares.map(\.plan.seed)).count == count)
    #expect(plan.share(0, of: 1) == LoadShare(all: plan))
  }

  @Test func `processes that would get nothing are refused by the flag and the rule`() {
    func problem(_ processes: Int, _ change: (inout LoadPlan) -> Void) -> String? {
      var plan = LoadPlan()
      change(&plan)
      do throws(LoadPlan.Problem) { try plan.check(processes: processes) } catch { return "--\(error.flag) \(error.rule)" }
      return nil
    }
    #expect(
      problem(5) { ($0.devices.count, $0.devices.perUser) = (8, 2) }?.hasPrefix("--processes must not be more than the people") == true)
    #expect(problem(5) { $0.requests.rate = 4 } == "--processes must not be more than --rate, which they divide")
    #expect(problem(5) { ($0.requests.rate, $0.requests.durationMilliseconds) = (5, 900) }?.contains("--duration is too short") == true)
    #expect(problem(5) { _ in } == nil)
  }
}
