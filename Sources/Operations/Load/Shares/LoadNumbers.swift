import JSON
import Notifications

/// The numbers of one process of a run so far, without the intervals. A value; the first process adds up those of all.
struct LoadNumbers: Sendable, Hashable {
  var offered = 0
  var kept = 0
  var duplicates = 0
  var connected = 0
  var connections = 0
  var responses = 0
  var acceptedResponses = 0
  var totals = LoadLedger.Totals()
  /// The latencies of each stage, in the order of ``LoadMeasures/Stage``.
  var stages = LoadMeasures.Stage.allCases.map { _ in Histogram(LoadMeasures.fine) }
  var delays: [LoadMeasures.Delay] = []
  /// The processor time of the process, in seconds: all of it, and that of each interval.
  var processorSeconds = 0.0
  var processorIntervals: [Double] = []
  /// Whether somebody has ended this process early.
  var isStopped = false

  init() {}

  init(_ result: LoadResult) {
    (offered, kept, duplicates) = (result.offered, result.kept, result.duplicates)
    (connected, connections) = (result.connected, result.connections)
    (responses, acceptedResponses) = (result.responses, result.acceptedResponses)
    (totals, stages, delays) = (result.totals, result.measures.stages, result.measures.delays)
    let own = result.servers.groups[LoadServers.ownGroup]
    (processorSeconds, processorIntervals) = (own?.seconds ?? 0, own?.intervals ?? [])
    isStopped = result.isStopped
  }

  // MARK: JSON

  /// The greatest number that is read, so that sums cannot overflow.
  private static let maximum: Int64 = 1 << 50
  /// The most intervals of a run, with room for later versions.
  static let maximumIntervals = 1_000

  private static let counts: [(name: String, path: any WritableKeyPath<LoadNumbers, Int> & Sendable)] = [
    ("offered", \.offered), ("kept", \.kept), ("duplicates", \.duplicates), ("connected", \.connected), ("connections", \.connections),
    ("responses", \.responses), ("acceptedResponses", \.acceptedResponses),
  ]

  /// The members of its record.
  var members: [JSONValue.Member] {
    Self.counts.map { .init(key: $0.name, value: .integer(Int64(self[keyPath: $0.path]))) } + totals.members(LoadLedger.Totals.counts) + [
      .init(key: "events", value: .object(totals.outcomes.map { .init(key: $0.key.name, value: .integer(Int64($0.value))) })),
      .init(key: "violations", value: .object(totals.violations.map { .init(key: $0.key.rawValue, value: .integer(Int64($0.value))) })),
      .init(key: "stages", value: .array(stages.map { .string($0.text) })),
      .init(
        key: "delays",
        value: .array(
          delays.map { delay in
            .array([delay.due.lowerBound, delay.due.upperBound, delay.longest, Int64(delay.count)].map { .integer($0) })
          })),
      .init(key: "processorMicroseconds", value: .array(([processorSeconds] + processorIntervals).map(Self.microseconds))),
      .init(key: "stopped", value: .bool(isStopped)),
    ]
  }

  /// Reads the members; nil if one is missing or impossible.
  init?(_ json: JSONValue) {
    for (name, path) in Self.counts {
      guard let count = Self.count(json[name]) else { return nil }
      self[keyPath: path] = count
    }
    for (name, path) in LoadLedger.Totals.counts {
      guard let count = Self.count(json[name]) else { return nil }
      totals[keyPath: path] = count
    }
    // A later version may know more outcomes.
    for member in json["events"]?.members ?? [] {
      guard let count = Self.count(member.value) else { return nil }
      if let outcome = Outcome(name: member.key) { totals.outcomes[outcome] = count }
    }
    for member in json["violations"]?.members ?? [] {
      guard let kind = LoadViolation.Kind(rawValue: member.key), let count = Self.count(member.value) else { return nil }
      totals.violations[kind] = count
    }
    let histograms = (json["stages"]?.elements ?? []).compactMap { $0.stringValue.flatMap { Histogram(text: $0, LoadMeasures.fine) } }
    guard histograms.count == stages.count else { return nil }
    stages = histograms
    for element in json["delays"]?.elements ?? [] {
      let numbers = (element.elements ?? []).compactMap { Self.count($0).map(Int64.init) }
      guard numbers.count == 4, numbers[0] <= numbers[1] else { return nil }
      delays.append(LoadMeasures.Delay(due: numbers[0]...numbers[1], longest: numbers[2], count: Int(numbers[3])))
    }
    let seconds = (json["processorMicroseconds"]?.elements ?? []).compactMap { Self.count($0).map { Double($0) / 1e6 } }
    guard let all = seconds.first, seconds.count <= Self.maximumIntervals else { return nil }
    (processorSeconds, processorIntervals) = (all, Array(seconds.dropFirst()))
    guard let isStopped = json["stopped"]?.boolValue else { return nil }
    self.isStopped = isStopped
  }

  private static func microseconds(_ seconds: Double) -> JSONValue { .integer(Int64(min(max(seconds, 0) * 1e6, 1e15))) }

  /// A number from outside; nil if it is none, negative, or more than any run counts.
  static func count(_ value: JSONValue?) -> Int? {
    value?.integerValue.flatMap { (0...maximum).contains($0) ? Int($0) : nil }
  }
}

extension LoadMeasures.Interval {
  /// The counts and the latencies, as an element of a record.
  var json: JSONValue { .array(counts.map { .integer(Int64($0)) } + [.string(arrival.text)]) }

  /// Reads such an element.
  init?(_ json: JSONValue) {
    self.init()
    guard let elements = json.elements, elements.count == counts.count + 1 else { return nil }
    let numbers = elements.dropLast().compactMap { LoadNumbers.count($0) }
    guard numbers.count == counts.count, let text = elements.last?.stringValue,
      let arrival = Histogram(text: text, LoadMeasures.coarse)
    else { return nil }
    (self.counts, self.arrival) = (numbers, arrival)
  }
}
