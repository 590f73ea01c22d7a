package import JSON
import Notifications

/// The exact numbers of one share, as its result file has them. ``LoadSum`` adds those of all shares.
package struct LoadShareResult: Sendable {
  /// The name of the run.
  package let run: String
  /// The plan of the whole run, as a profile.
  package let plan: String
  /// The share.
  package let share: LoadShare
  /// The numbers.
  package let result: LoadResult
  /// The violations, of which a process keeps a limited number. The numbers count all.
  package let findings: [LoadFinding]

  /// Makes it from its parts.
  package init(run: String, plan: String, share: LoadShare, result: LoadResult, findings: [LoadFinding]) {
    (self.run, self.plan, self.share, self.result, self.findings) = (run, plan, share, result, findings)
  }

  /// Why a file has no numbers of a share, as the end of a sentence that begins with the file.
  package struct Problem: Error, Sendable, Hashable {
    /// The text.
    package let text: String

    /// Makes it from its text.
    package init(_ text: String) { self.text = text }
  }

  /// The version of the form.
  private static let version: Int64 = 2
  /// The most bytes of the plan and of a run's name.
  private static let (maximumPlan, maximumName) = (1 << 16, 40)
  /// The most violations that a share tells one by one.
  package static let maximumFindings = 1_000

  // MARK: Writing

  /// The numbers as JSON.
  package var json: JSONValue {
    let object = JSONValue.object([
      "version": Self.version, "run": run, "number": share.number, "of": share.count, "plan": plan,
    ])
    .appending(contentsOf: .object(result.exactMembers)).appending(["findings": findings.map(\.json)])
    return object.appending(["checksum": Self.checksum(object.members ?? [])])
  }

  /// Shows whether the file was changed by accident.
  static func checksum(_ members: [JSONValue.Member]) -> String { String(StableHash.hash(JSONValue.object(members).text), radix: 16) }

  // MARK: Reading

  /// Reads the numbers.
  ///
  /// - Parameter readPlan: makes a plan of its text, or throws.
  package init(_ json: JSONValue, readPlan: (String) throws -> LoadPlan) throws(Problem) {
    let fields = LoadFields(json)
    let version = try fields.count("version")
    guard version == Self.version else {
      throw Problem("has version \(version) of the numbers, and this program knows version \(Self.version): use the same carillon for all")
    }
    guard let last = json.members?.last, last.key == "checksum", let text = last.value.stringValue,
      text == Self.checksum(json.members?.dropLast() ?? [])
    else { throw Problem("was changed after it was written: its checksum does not hold") }
    run = try fields.text("run", most: Self.maximumName)
    plan = try fields.text("plan", most: Self.maximumPlan)
    let (number, count) = (try fields.count("number"), try fields.count("of"))
    guard (1...LoadPlan.maximumShares).contains(count), (1...count).contains(number) else {
      throw Problem("is share \(number) of \(count), and there are at most \(LoadPlan.maximumShares)")
    }
    let whole: LoadPlan
    do {
      whole = try readPlan(plan)
      try whole.check(shares: count)
    } catch {
      let reason = (error as? LoadPlan.Problem).map { "--\($0.flag) \($0.rule)" } ?? "\(error)"
      throw Problem("has a plan that cannot be carried out: \(reason)")
    }
    share = whole.share(number, of: count)
    result = try LoadResult(exact: fields, share.plan)
    findings = try fields.elements("findings", most: Self.maximumFindings).map { json throws(Problem) in
      guard let finding = LoadFinding(json) else { throw LoadFields.problem("findings", "a list of violations") }
      return finding
    }
  }
}

/// Reads members of an object from outside; each error names the member and its rule.
struct LoadFields {
  typealias Problem = LoadShareResult.Problem
  private let json: JSONValue

  init(_ json: JSONValue) { self.json = json }

  /// The greatest number that is read, so that sums cannot overflow.
  static let maximum: Int64 = 1 << 50

  static func problem(_ name: String, _ rule: String) -> Problem {
    Problem("is damaged: the member '\(name)' of its share must be \(rule)")
  }

  /// A number that a run can count; nil for anything else.
  static func count(_ value: JSONValue?) -> Int? { value?.integerValue.flatMap { (0...maximum).contains($0) ? Int($0) : nil } }

  func count(_ name: String) throws(Problem) -> Int {
    guard let count = Self.count(json[name]) else { throw Self.problem(name, "a whole number from 0 to \(Self.maximum)") }
    return count
  }

  func text(_ name: String, most: Int) throws(Problem) -> String {
    guard let text = json[name]?.stringValue, text.utf8.count <= most else { throw Self.problem(name, "a text of at most \(most) bytes") }
    return text
  }

  func elements(_ name: String, most: Int) throws(Problem) -> [JSONValue] {
    guard let elements = json[name]?.elements, elements.count <= most else { throw Self.problem(name, "a list of at most \(most)") }
    return elements
  }

  /// Counts by the names of something that this program knows.
  func counts<Key: Hashable>(_ name: String, _ key: (String) -> Key?) throws(Problem) -> [Key: Int] {
    var counts: [Key: Int] = [:]
    for member in json[name]?.members ?? [.init("", nil)] {
      guard let key = key(member.key), let count = Self.count(member.value), counts.updateValue(count, forKey: key) == nil else {
        throw Self.problem(name, "an object of known names with whole numbers")
      }
    }
    return counts
  }

  func object(_ name: String) throws(Problem) -> JSONValue {
    guard let value = json[name], value.members != nil else { throw Self.problem(name, "an object") }
    return value
  }
}

extension LoadResult {
  private typealias Count = (name: String, path: any WritableKeyPath<LoadResult, Int> & Sendable)

  private static let counts: [Count] = [
    ("offered", \.offered), ("kept", \.kept), ("duplicates", \.duplicates), ("connected", \.connected), ("connections", \.connections),
    ("responses", \.responses), ("acceptedResponses", \.acceptedResponses), ("stopped", \.stopped),
  ]

  private var stopped: Int {
    get { isStopped ? 1 : 0 }
    set { isStopped = newValue > 0 }
  }

  /// All numbers, from which the same result can be made.
  fileprivate var exactMembers: [JSONValue.Member] {
    // In one order, so that equal results are equal files.
    let events = totals.outcomes.map { ($0.key.name, $0.value) }.sorted { $0.0 < $1.0 }
    let violations = totals.violations.map { ($0.key.rawValue, $0.value) }.sorted { $0.0 < $1.0 }
    return [.init("startedAt", startedAt), .init("elapsed", elapsed)] + Self.counts.map { .init($0.name, self[keyPath: $0.path]) }
      + totals.members(LoadLedger.Totals.counts) + [
        .init("events", JSONValue.object(events.map { .init($0.0, $0.1) })),
        .init("violations", JSONValue.object(violations.map { .init($0.0, $0.1) })),
      ] + measures.exactMembers + [.init("servers", servers.json)]
  }

  /// Reads the numbers of a share with this plan.
  fileprivate init(exact fields: LoadFields, _ plan: LoadPlan) throws(LoadFields.Problem) {
    let measures = try LoadMeasures(exact: fields, durationMilliseconds: plan.requests.durationMilliseconds)
    self.init(
      plan: plan, startedAt: Int64(try fields.count("startedAt")), elapsed: Int64(try fields.count("elapsed")), measures: measures,
      servers: try LoadServers(LoadFields(try fields.object("servers")), measures))
    for (name, path) in Self.counts { self[keyPath: path] = try fields.count(name) }
    for (name, path) in LoadLedger.Totals.counts { totals[keyPath: path] = try fields.count(name) }
    totals.outcomes = try fields.counts("events") { Outcome(name: $0) }
    totals.violations = try fields.counts("violations") { LoadViolation.Kind(rawValue: $0) }
    let total = LoadSchedule(plan.requests).total
    guard offered <= total else { throw LoadFields.problem("offered", "at most \(total), as the plan of the share has it") }
    guard kept <= offered else { throw LoadFields.problem("kept", "at most 'offered'") }
    guard totals.reached <= totals.expected else { throw LoadFields.problem("reached", "at most 'expected'") }
    guard totals.published <= total, totals.completed <= totals.published else {
      throw LoadFields.problem("published", "at most \(total), and at least 'completed'")
    }
  }

  /// Adds the numbers of another share.
  mutating func add(_ other: LoadResult) {
    for (_, path) in Self.counts { self[keyPath: path] += other[keyPath: path] }
    elapsed = max(elapsed, other.elapsed)
    totals += other.totals
    measures.add(other.measures)
    servers.add(other.servers)
  }
}

extension LoadMeasures {
  fileprivate var exactMembers: [JSONValue.Member] {
    [
      .init("stages", stages.map(\.text)),
      .init("intervals", intervals.map { $0.counts.map(\.json) + [.string($0.arrival.text)] }),
      .init("delays", delays.map { [$0.due.lowerBound, $0.due.upperBound, $0.longest, Int64($0.count)] }),
    ]
  }

  fileprivate init(exact fields: LoadFields, durationMilliseconds: Int) throws(LoadFields.Problem) {
    self.init(durationMilliseconds: durationMilliseconds)
    let histograms = try fields.elements("stages", most: stages.count).compactMap { json in
      json.stringValue.flatMap { Histogram(text: $0, Self.fine) }
    }
    guard histograms.count == stages.count else { throw LoadFields.problem("stages", "\(stages.count) histograms") }
    stages = histograms
    let parts = try fields.elements("intervals", most: intervals.count).compactMap { Interval($0) }
    guard parts.count == intervals.count else {
      throw LoadFields.problem("intervals", "\(intervals.count) lists of counts and a histogram")
    }
    intervals = parts
    delays = try fields.elements("delays", most: Self.maximumDelays).map { json throws(LoadFields.Problem) in
      let numbers = (json.elements ?? []).compactMap { LoadFields.count($0).map(Int64.init) }
      guard numbers.count == 4, numbers[0] <= numbers[1] else {
        throw LoadFields.problem("delays", "lists of two times, a time and a count")
      }
      return Delay(due: numbers[0]...numbers[1], longest: numbers[2], count: Int(numbers[3]))
    }
  }

  /// Adds the measures of another share. The sum of histograms is exact, since all have one layout.
  fileprivate mutating func add(_ other: LoadMeasures) {
    for (index, histogram) in other.stages.enumerated() { stages[index].merge(histogram) }
    for (index, part) in other.intervals.enumerated() {
      for (stage, count) in part.counts.enumerated() { intervals[index].counts[stage] += count }
      intervals[index].arrival.merge(part.arrival)
    }
    for delay in other.delays { note(delay) }
  }
}

extension LoadMeasures.Interval {
  fileprivate init?(_ json: JSONValue) {
    self.init()
    let elements = json.elements ?? []
    let numbers = elements.dropLast().compactMap { LoadFields.count($0) }
    guard elements.count == counts.count + 1, numbers.count == counts.count,
      let arrival = elements.last?.stringValue.flatMap({ Histogram(text: $0, LoadMeasures.coarse) })
    else { return nil }
    (self.counts, self.arrival) = (numbers, arrival)
  }
}
