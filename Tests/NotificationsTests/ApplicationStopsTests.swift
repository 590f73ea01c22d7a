import JSON
import TestSupport
import Testing

@testable import Notifications

/// The stops of an application, as its records say them.
@Suite struct ApplicationStopsTests {
  private func read(_ text: String, at timestamp: Int64 = 1_000) throws -> ApplicationStops {
    try withBytes(text) { try ApplicationStops($0, timestamp: timestamp) }
  }

  private func read(_ value: [UInt8], at timestamp: Int64) throws -> ApplicationStops {
    try value.withUnsafeBytes { try ApplicationStops($0, timestamp: timestamp) }
  }

  /// What a person would work out of the changes alone.
  private struct Model {
    var changes: [(time: Int64, isStop: Bool)] = []

    mutating func change(_ isStop: Bool, at timestamp: Int64) {
      // Where a clock has gone back nothing happens before what happened before.
      changes.append((max(timestamp, changes.last?.time ?? 0), isStop))
    }

    var isStopped: Bool { changes.last?.isStop ?? false }

    func isDuringStop(_ time: Int64) -> Bool { changes.last { $0.time <= time }?.isStop ?? false }

    func isEnded(_ time: Int64) -> Bool { isStopped || changes.contains { !$0.isStop && $0.time > time } }
  }

  @Test func theStopsAreThoseOfTheChangesWhateverTheHistory() throws {
    for seed in 0..<(isComplete ? 300 : 60) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var (stops, model) = (ApplicationStops(), Model())
      var clock: Int64 = 0
      for _ in 0..<Int.random(in: 1...40, using: &random) {
        clock = max(0, clock + Int64.random(in: -3...12, using: &random))
        let isStop = Bool.random(using: &random)
        let change: ApplicationStops.Change = isStop ? .stop(by: "ada", reason: clock % 2 == 0 ? "r" : nil) : .start(by: "bob")
        let value = stops.value(change, forgettingBefore: 0)
        #expect((value == nil) == (isStop == model.isStopped), "a change that changes nothing is not written")
        if let value {
          stops = try read(value, at: clock)
          model.change(isStop, at: clock)
          #expect(try read(value, at: clock) == stops, "a record says the same whenever it is read")
        }
        #expect((stops.open != nil) == model.isStopped)
        for time in 0..<(clock + 15) {
          #expect((stops.during(time) != nil) == model.isDuringStop(time), "seed \(seed): at \(time) of \(model.changes)")
          #expect((stops.ending(time) != nil) == model.isEnded(time), "seed \(seed): before the end at \(time) of \(model.changes)")
        }
      }
    }
  }

  @Test func `the limit of a time is that of the last change five seconds before it, whatever the history`() throws {
    for seed in 0..<(isComplete ? 200 : 40) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var (stops, clock) = (ApplicationStops(), 10_000 as Int64)
      var changes: [(from: Int64, limit: RateLimit?)] = []
      for _ in 0..<Int.random(in: 1...30, using: &random) {
        clock += Int64.random(in: -300...2_000, using: &random)
        if Int.random(in: 0..<4, using: &random) == 0 {
          if let value = stops.value(stops.open == nil ? .stop(by: "ada", reason: nil) : .start(by: "ada"), forgettingBefore: 0) {
            stops = try read(value, at: clock)
          }
          continue
        }
        let limit: RateLimit? =
          Bool.random(using: &random)
          ? nil : RateLimit(perTarget: Int64.random(in: 1...3, using: &random), perApplication: nil, window: 1_000)
        let value = stops.value(.limit(limit, by: "ada"), forgettingBefore: 0)
        #expect((value == nil) == (limit == changes.last?.limit), "a change that changes nothing is not written")
        if let value {
          stops = try read(value, at: clock)
          changes.append((max(clock + 5_000, changes.last?.from ?? 0), limit))
        }
        for time in stride(from: 10_000, through: clock + 12_000, by: 97) {
          #expect(stops.limits.period(at: time)?.limit == changes.last { $0.from <= time }?.limit, "seed \(seed): at \(time) of \(changes)")
        }
      }
    }
  }

  @Test func `a limit is kept as long as it says something of the time that is kept`() throws {
    let limit = RateLimit(perTarget: 1, perApplication: 2, window: 100)
    var stops = ApplicationStops()
    func change(_ limit: RateLimit?, at time: Int64, forgettingBefore oldest: Int64 = 0) throws {
      let value = try #require(stops.value(.limit(limit, by: "ada"), forgettingBefore: oldest))
      stops = try read(value, at: time)
    }
    try change(limit, at: 1_000)
    try change(nil, at: 2_000)
    try change(limit, at: 3_000, forgettingBefore: 7_000)
    #expect(stops.limits.periods.map(\.from) == [6_000, 7_000, 8_000], "the first was in force until 7,000")
    try change(nil, at: 4_000, forgettingBefore: 7_500)
    #expect(stops.limits.periods.map(\.from) == [8_000, 9_000])
    for round in 0..<40 as Range<Int64> { try change(round % 2 == 0 ? limit : nil, at: 10_000 + round) }
    #expect(stops.limits.periods.count == LimitHistory.maximumPeriods && stops.limits.mayBeCut && stops.limits.end == 15_039)
  }

  @Test(arguments: [
    #"{"perTarget":0,"window":1000,"by":"x"}"#, #"{"perTarget":1,"window":99,"by":"x"}"#, #"{"perTarget":1,"window":10001,"by":"x"}"#,
    #"{"perTarget":1,"by":"x"}"#, #"{"perTarget":1,"window":1000}"#, #"{"perApplication":1000000001,"window":1000,"by":"x"}"#,
    #"{"from":-1,"perTarget":1,"window":1000,"by":"x"}"#, #"{"from":9223372036854775807,"by":"x"}"#,
    #"{"perTarget":1,"window":1000,"by":"x"},{"by":"x"}"#, #"{"from":5,"by":"x"},{"from":4,"by":"x"}"#, "1",
  ])
  func `a limit that breaks a rule is refused`(limits: String) {
    #expect(throws: FieldError.self) { try read(#"{"state":"started","limits":[\#(limits)],"stops":[]}"#) }
  }

  /// Grants and stops of an application are changed by different people, in any order.
  @Test func `a change of the grants leaves the stops alone, and a stop the grants`() throws {
    for seed in 0..<(isComplete ? 300 : 60) as Range<UInt64> {
      var random = SeededRandom(seed: seed)
      var (both, stops, granted, clock) = (ApplicationStops(), ApplicationStops(), GrantedLevels(), 0 as Int64)
      for _ in 0..<Int.random(in: 1...40, using: &random) {
        clock += Int64.random(in: 1...12, using: &random)
        let levels = GrantedLevels(rawValue: .random(in: 0...3, using: &random))
        let change: ApplicationStops.Change =
          switch random.next() % 4 {
          case 0: .stop(by: "ada", reason: nil)
          case 1: .start(by: "bob")
          case 2: .allow(levels)
          default: .disallow(levels)
          }
        let value = both.value(change, forgettingBefore: 0)
        switch change {
        case .stop, .start:
          let alone = stops.value(change, forgettingBefore: 0)
          #expect((alone == nil) == (value == nil))
          if let alone { stops = try read(alone, at: clock) }
        case .allow(let levels):
          #expect((value == nil) == granted.isSuperset(of: levels))
          granted.formUnion(levels)
        case .disallow(let levels):
          #expect((value == nil) == granted.isDisjoint(with: levels))
          granted.subtract(levels)
        case .limit: Issue.record("no limit is set here")
        }
        if let value { both = try read(value, at: clock) }
        #expect(both.stops == stops.stops && both.granted == granted, "seed \(seed)")
      }
    }
    #expect(try read(#"{"state":"started","stops":[],"allowed":["critical","telepathy"]}"#).granted == .critical)
    #expect(throws: FieldError.self) { try read(#"{"state":"started","stops":[],"allowed":"critical"}"#) }
    #expect(throws: FieldError.self) { try read(#"{"state":"started","stops":[],"allowed":[1]}"#) }
  }

  @Test func theNewestChangeHasTheTimeOfItsRecordAndTheNextRecordKeepsIt() throws {
    let stopped = try read(try #require(ApplicationStops().value(.stop(by: "ada", reason: "prices"), forgettingBefore: 0)), at: 50)
    #expect(stopped.stops == [ApplicationStop(from: 50, by: "ada", reason: "prices")])
    let started = try read(try #require(stopped.value(.start(by: "bob"), forgettingBefore: 0)), at: 70)
    #expect(started.stops == [ApplicationStop(from: 50, to: 70, by: "ada", reason: "prices", endedBy: "bob")])
    let again = try read(try #require(started.value(.stop(by: "eve", reason: nil), forgettingBefore: 0)), at: 90)
    #expect(again.stops == started.stops + [ApplicationStop(from: 90, by: "eve")])
    #expect(again.during(49) == nil && again.during(50)?.by == "ada" && again.during(70) == nil && again.during(90)?.by == "eve")
    #expect(again.ending(10)?.by == "ada" && again.ending(70)?.by == "eve" && started.ending(70) == nil)
  }

  @Test func oldStopsAreForgottenAndTheNewestNever() throws {
    var stops = ApplicationStops()
    for round in 0..<100 as Range<Int64> {
      stops = try read(try #require(stops.value(.stop(by: "a", reason: nil), forgettingBefore: 0)), at: round * 10)
      if round < 99 { stops = try read(try #require(stops.value(.start(by: "a"), forgettingBefore: 0)), at: round * 10 + 5) }
    }
    #expect(stops.stops.count == ApplicationStops.maximumStops && stops.stops.last?.from == 990 && stops.open != nil)
    let later = try read(try #require(stops.value(.start(by: "a"), forgettingBefore: 2_000)), at: 3_000)
    #expect(later.stops.map(\.from) == [990], "those that ended before are forgotten")
  }

  @Test func theLongestTextsFit() throws {
    // Each of its bytes takes two in JSON.
    let text = String(repeating: "\"", count: ApplicationStop.textBytes)
    var stops = ApplicationStops()
    for round in 0..<40 as Range<Int64> {
      let stop = try #require(stops.value(.stop(by: text, reason: text), forgettingBefore: 0))
      stops = try read(stop, at: round)
      let start = try #require(stops.value(.start(by: text), forgettingBefore: 0))
      stops = try read(start, at: round)
      #expect(max(stop.count, start.count) <= ApplicationStops.valueBytes)
    }
    #expect(
      ApplicationStop.isText(text) && !ApplicationStop.isText(text + "a") && !ApplicationStop.isText("") && !ApplicationStop.isText("a\n"))
    #expect(ApplicationStop.cut("ä" + text).utf8.count == ApplicationStop.textBytes && ApplicationStop.cut("a") == "a")
  }

  /// What is refused, with the field that the error names.
  static let mistakes: [(String, String)] = [
    ("", ""), ("[]", ""), ("{}", "state"), (#"{"state":"paused","stops":[]}"#, "state"), (#"{"state":"started"}"#, "stops"),
    (#"{"state":"stopped","stops":[]}"#, "stops"), (#"{"state":"started","stops":{}}"#, "stops"),
    (#"{"state":"stopped","stops":[7]}"#, "stops[0]"), (#"{"state":"stopped","stops":[{}]}"#, "stops[0].by"),
    (#"{"state":"stopped","stops":[{"by":7}]}"#, "stops[0].by"), (#"{"state":"stopped","stops":[{"by":""}]}"#, "stops[0].by"),
    (#"{"state":"stopped","stops":[{"by":"a","from":-1}]}"#, "stops[0].from"),
    (#"{"state":"stopped","stops":[{"by":"a","from":"1"}]}"#, "stops[0].from"),
    (#"{"state":"stopped","stops":[{"by":"a","from":9223372036854775807}]}"#, "stops[0].from"),
    (#"{"state":"stopped","stops":[{"by":"a","from":1,"to":2}]}"#, "stops[0].to"),
    (#"{"state":"started","stops":[{"by":"a","to":2}]}"#, "stops[0].from"),
    (#"{"state":"started","stops":[{"by":"a","from":3,"to":2}]}"#, "stops[0].to"),
    (#"{"state":"started","stops":[{"by":"a","from":1},{"by":"a","from":3,"to":4}]}"#, "stops[0].to"),
    (#"{"state":"started","stops":[{"by":"a","from":1,"to":4},{"by":"a","from":3,"to":5}]}"#, "stops[1].from"),
    (#"{"state":"stopped","stops":[{"by":"a","reason":"b\u0000c"}]}"#, "stops[0].reason"),
  ]

  @Test(arguments: mistakes) func whatBreaksARuleIsRefusedWithItsField(text: String, field: String) {
    #expect { try read(text) } throws: { ($0 as? FieldError)?.field == field }
  }

  @Test func whatIsTooMuchIsRefused() {
    let stop = #"{"by":"a","from":1,"to":1}"#
    let many = Array(repeating: stop, count: ApplicationStops.maximumStops + 1).joined(separator: ",")
    #expect { try read(#"{"state":"started","stops":[\#(many)]}"#) } throws: { ($0 as? FieldError)?.field == "stops" }
    let long = String(repeating: " ", count: ApplicationStops.valueBytes)
    #expect(throws: FieldError.self) { try read(#"{"state":"started","stops":[]}"# + long) }
  }

  @Test func whatIsNotKnownIsPassedOver() throws {
    let stops = try read(#"{"state":"stopped","stops":[{"by":"a","ticket":7,"reason":null}],"more":{}}"#)
    #expect(stops.stops == [ApplicationStop(from: 1_000, by: "a")])
  }

  @Test func noBytesTrapAndWhatIsReadKeepsItsOrder() {
    let corpus = [
      #"{"state":"stopped","stops":[{"from":5,"to":9,"by":"a","reason":"r","endedBy":"b"},{"by":"c","reason":"x"}]}"#,
      #"{"state":"started","stops":[{"from":5,"by":"a","endedBy":"b"}]}"#,
    ].map { Array($0.utf8) }
    let failures = Fuzz("application stops", corpus: corpus, tokens: ["from", "to", "null", "-1", "1e9", "stopped"]).run { bytes, random in
      guard let stops = try? ApplicationStops(bytes, timestamp: Int64.random(in: -1...20, using: &random)) else { return nil }
      var last: Int64 = 0
      for (index, stop) in stops.stops.enumerated() {
        guard stop.from >= last, stop.to.map({ $0 >= stop.from }) ?? (index == stops.stops.count - 1) else { return "\(stops)" }
        last = stop.to ?? .max
      }
      return nil
    }
    #expect(failures.isEmpty, "\(failures)")
  }
}
