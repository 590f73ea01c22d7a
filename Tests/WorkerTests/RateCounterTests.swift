import JSON
import Notifications
import TestSupport
import Testing

@testable import Worker

/// The requests of a partition, counted by the rate limits of their applications.
@Suite struct RateCounterTests {
  /// A record of the requests.
  struct Record {
    enum Kind: CaseIterable { case request, removal, replay, firing, broken }

    var application: String
    var target: String
    var kind = Kind.request
    var time: Int64
    var offset: Int64 = 100

    var counts: Bool { kind != .replay && kind != .firing }

    /// The headers of a firing that keeps every rule.
    static let firing: [(String, String)] = {
      let schedule = JournalReference(revision: Revision(timestamp: 1, partition: 0, offset: 1), id: NotificationID(high: 1, low: 2))
      let firing = FiringHeader(schedule: schedule, .init(zone: "", due: 2, name: 1))
      var json = JSONWriter()
      firing.write(to: &json)
      return [("carillon-firing", json.text), ("apns-id", firing.occurrence.description)]
    }()

    /// Passes the record's headers to `body`, as a lane reads them.
    func read<Result>(_ body: (RequestEnvelope) -> Result) -> Result {
      let topic = "requests"
      let origin =
        #"{"cluster":"c","topic":"requests","partition":0,"offset":\#(offset - 1),"timestamp":\#(max(0, time - 10)),"why":"replay"}"#
      let texts: [(String, String)] =
        [("apns-topic", application), ("target", target)] + (kind == .replay ? [("carillon-origin", origin)] : [])
        + (kind == .firing ? Self.firing : []) + (kind == .broken ? [("carillon-firing", "{}")] : [])
        + (kind == .removal ? [("operation", "remove")] : [])
      let bytes = texts.map { (Array($0.0.utf8), Array($0.1.utf8)) }
      return withPointers(bytes, RequestHeaders()) { headers in
        withBytes(topic) { topic in
          let none = UnsafeRawBufferPointer(start: nil, count: 0)
          let position = SourcePosition(partition: 0, offset: offset, timestamp: time)
          return body(RequestEnvelope(RequestRecord(key: none, value: none, headers: headers, topic: topic, position: position)))
        }
      }
    }

    private func withPointers<Result>(
      _ texts: [([UInt8], [UInt8])], _ headers: RequestHeaders, _ body: (RequestHeaders) -> Result
    ) -> Result {
      guard let (name, value) = texts.first else { return body(headers) }
      return name.withUnsafeBytes { name in
        value.withUnsafeBytes { value in
          var headers = headers
          headers.take(name: name, value: value)
          return withPointers(Array(texts.dropFirst()), headers, body)
        }
      }
    }

    private func withBytes<Result>(_ text: String, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
      var text = text
      return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
  }

  /// A history of limits, as the lanes read it.
  struct Limits {
    var table = StoppedApplications()
    private var stops: [String: ApplicationStops] = [:]

    mutating func set(_ application: String, _ limit: RateLimit?, at time: Int64) throws {
      guard let value = stops[application, default: ApplicationStops()].value(.limit(limit, by: "ada"), forgettingBefore: 0) else { return }
      stops[application] = try value.withUnsafeBytes { try ApplicationStops($0, timestamp: time) }
      var application = application
      let change = application.withUTF8 { key in
        value.withUnsafeBytes { table.take(key: UnsafeRawBufferPointer(key), value: $0, timestamp: time) }
      }
      #expect(change == .nothing)
    }

    func period(_ application: String, at time: Int64) -> LimitPeriod? { stops[application]?.limits.period(at: time) }
  }

  private static func token(_ number: Int) -> String { String(repeating: "0", count: 56) + "abcdef" + "0\(number % 10)" }

  private func verdict(_ record: Record, _ counter: inout RateCounter, _ limits: Limits) -> RateExcess? {
    record.read { counter.count($0, at: record.time, limits.table) }
  }

  /// By the words of the documentation: for each record all that came before it is looked through.
  struct Model {
    let log: [Record]
    let limits: Limits
    let maximumTargets: Int

    /// The latest time of each record, and how often the partition began anew before it.
    private var clock: [(latest: Int64, era: Int)] {
      var (latest, era): (Int64, Int) = (-1, 0)
      return log.map { record in
        if record.time > latest {
          latest = record.time
        } else if latest - record.time > 60_000 {
          (latest, era) = (record.time, era + 1)
        }
        return (latest, era)
      }
    }

    func verdicts() -> [RateExcess?] {
      let clock = clock
      return log.indices.map { index in
        let record = log[index]
        guard record.counts, let period = limits.period(record.application, at: record.time),
          let limit = period.limit
        else {
          return nil
        }
        let number = clock[index].latest / limit.window
        // Those of the same window and limit, this one included.
        let same = log.indices.prefix(through: index).filter { other in
          log[other].counts && (log[other].kind == .removal) == (record.kind == .removal) && log[other].application == record.application
            && clock[other].era == clock[index].era
            && clock[other].latest / limit.window == number
            && limits.period(record.application, at: log[other].time).map { ($0.from, $0.limit) == (period.from, limit) } == true
        }
        let excess = { (scope: RateExcess.Scope, number: Int64?) in
          RateExcess(
            scope: scope, limit: number ?? 0, window: limit.window, retryAfter: (clock[index].latest / limit.window + 1) * limit.window)
        }
        if let most = limit.perTarget, Self.isTarget(record.target) {
          var known: [String] = []
          for other in same.map({ log[$0].target.lowercased() }) where Self.isTarget(other) && !known.contains(other) {
            known.append(other)
          }
          let count = same.count { log[$0].target.lowercased() == record.target.lowercased() }
          if known.prefix(maximumTargets).contains(record.target.lowercased()), count > most { return excess(.target, most) }
        }
        if let most = limit.perApplication, same.count > most { return excess(.application, most) }
        return nil
      }
    }

    private static func isTarget(_ target: String) -> Bool {
      target.hasPrefix("user:") || target.hasPrefix("device:") && target.count == 71
    }
  }

  private struct History {
    var log: [Record] = []
    var limits = Limits()

    init(seed: UInt64) throws {
      var random = SeededRandom(seed: seed)
      let applications = ["a", "b", "c"]
      let targets =
        (0..<3).map { "device:" + token($0) } + [("device:" + token(1)).replacing("abcdef", with: "ABCDEF"), "user:x", "device:broken", ""]
      var time: Int64 = 1_000_000
      for offset in 0..<Int64.random(in: 1...120, using: &random) {
        switch Int.random(in: 0..<40, using: &random) {
        case 0: time += Int64.random(in: 5_000...90_000, using: &random)
        case 1: time = max(1_000_000, time - Int64.random(in: 5_000...90_000, using: &random))
        default: time += Int64.random(in: -700...1_000, using: &random)
        }
        if Int.random(in: 0..<12, using: &random) == 0 {
          let number = { Int64.random(in: 1...6, using: &random) }
          let limit = RateLimit(
            perTarget: Bool.random(using: &random) ? number() : nil, perApplication: number() * 2,
            window: [100, 700, 1_000, 3_000, 10_000].randomElement(using: &random) ?? 100)
          // So long before that it is in force now, or soon.
          let at = time - Int64.random(in: 3_000...6_000, using: &random)
          try limits.set(
            applications.randomElement(using: &random) ?? "a", Int.random(in: 0..<5, using: &random) == 0 ? nil : limit, at: at)
        }
        let kind = Int.random(in: 0..<8, using: &random)
        log.append(
          Record(
            application: applications.randomElement(using: &random) ?? "a", target: targets.randomElement(using: &random) ?? "",
            kind: kind == 0 ? .replay : kind == 1 ? .firing : kind == 2 ? .removal : kind == 3 ? .broken : .request, time: time,
            offset: offset + 1))
      }
    }

    private func token(_ number: Int) -> String { RateCounterTests.token(number) }
  }

  @Test func `the verdicts are those of the log alone, wherever a lane begins to read it`() throws {
    var (beyond, within) = (0, 0)
    for seed in 0..<(isComplete ? 150 : 100) as Range<UInt64> {
      let history = try History(seed: seed)
      let maximum = seed % 3 == 0 ? 2 : 100
      let expected = Model(log: history.log, limits: history.limits, maximumTargets: maximum).verdicts()
      beyond += expected.count { $0 != nil }
      within += expected.count { $0 == nil }
      var counter = RateCounter(maximumTargets: maximum)
      #expect(history.log.map { verdict($0, &counter, history.limits) } == expected, "seed \(seed)")
      // A lane begins at any offset, and knows the timestamp of the record below it.
      for begin in history.log.indices.dropFirst() {
        let below = history.log[begin - 1].time
        let first = history.log.firstIndex { $0.time >= below - RateCounter.historyMilliseconds } ?? 0
        var counter = RateCounter(maximumTargets: maximum)
        for record in history.log[first..<begin] { _ = verdict(record, &counter, history.limits) }
        let verdicts = history.log[begin...].map { verdict($0, &counter, history.limits) }
        #expect(verdicts == Array(expected[begin...]), "seed \(seed), from \(begin)")
      }
    }
    #expect(beyond > 100 && within > 100, "the histories have both: \(beyond), \(within)")
  }

  /// The test above is no test if a lane that reads less of the log came to the same verdicts.
  @Test func `a lane that begins without the records of the last window comes to other verdicts`() throws {
    var differing = 0
    for seed in 0..<(isComplete ? 30 : 6) as Range<UInt64> {
      let history = try History(seed: seed)
      let expected = Model(log: history.log, limits: history.limits, maximumTargets: 100).verdicts()
      for begin in history.log.indices.dropFirst() {
        var counter = RateCounter()
        if history.log[begin...].map({ verdict($0, &counter, history.limits) }) != Array(expected[begin...]) { differing += 1 }
      }
    }
    #expect(differing > 0)
  }

  @Test func `a window ends at a multiple of its length, and says so`() throws {
    var limits = Limits()
    try limits.set("a", RateLimit(perTarget: 2, perApplication: nil, window: 1_000), at: 0)
    var counter = RateCounter()
    func next(_ time: Int64) -> RateExcess? { verdict(Record(application: "a", target: "user:x", time: time), &counter, limits) }
    #expect([4_990, 4_991, 4_992, 4_993].map(next) == [nil, nil, nil, nil], "the limit begins five seconds after its record")
    #expect([10_100, 10_200].map(next) == [nil, nil])
    let excess = RateExcess(scope: .target, limit: 2, window: 1_000, retryAfter: 11_000)
    #expect([10_999, 10_000].map(next) == [excess, excess])
    #expect([11_000, 10_999].map(next) == [nil, nil], "a timestamp that steps back stays in the open window")
    #expect(next(10_998)?.retryAfter == 12_000)
  }

  @Test func `a record without a timestamp counts in the present window`() throws {
    var limits = Limits()
    try limits.set("a", RateLimit(perTarget: 1, perApplication: nil, window: 1_000), at: 0)
    var counter = RateCounter()
    #expect(verdict(Record(application: "a", target: "user:x", time: 10_000), &counter, limits) == nil)
    #expect(verdict(Record(application: "a", target: "user:x", time: -1), &counter, limits) != nil)
    #expect(verdict(Record(application: "a", target: "user:x", time: 10_001), &counter, limits) != nil)
  }

  @Test func `windows that are over take no memory`() throws {
    var limits = Limits()
    for number in 0..<100 { try limits.set("a\(number)", RateLimit(perTarget: 1, perApplication: nil, window: 1_000), at: 0) }
    var counter = RateCounter()
    for number in 0..<100 { _ = verdict(Record(application: "a\(number)", target: "user:x", time: 10_000), &counter, limits) }
    #expect(counter.keptWindows == 100)
    _ = verdict(Record(application: "other", target: "user:x", time: 25_000), &counter, limits)
    #expect(counter.keptWindows == 0)
  }

  @Test func `a target is one device or person in whatever case its token is written`() throws {
    var limits = Limits()
    try limits.set("a", RateLimit(perTarget: 1, perApplication: 3, window: 1_000), at: 0)
    var counter = RateCounter()
    func next(_ target: String, _ application: String = "a") -> RateExcess.Scope? {
      verdict(Record(application: application, target: target, time: 10_000), &counter, limits)?.scope
    }
    #expect(next("device:" + Self.token(1)) == nil)
    #expect(next("device:" + Self.token(1).uppercased()) == .target)
    #expect(next("device:no token") == nil, "it counts for its application alone")
    #expect(next("device:no token") == .application)
    #expect(next("user:y") == .application)
    #expect(next("user:y", "b") == nil && next("user:y", "no application!") == nil)
  }
}
