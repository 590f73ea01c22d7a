import JSON
package import Notifications

/// What this process, the workers and Redis have taken for a run, by their own numbers. A value: a reading in, sums out.
///
/// Their counters begin with their processes, so only differences count. Times are nanoseconds after the start of the run.
package struct LoadServers: Sendable {
  /// The stages whose times the workers measure by themselves, for the requests of all producers.
  package enum Stage: String, Sendable, CaseIterable {
    /// The outcomes of the request are durable, the journal apart.
    case transformed
    /// The notification was written to a device's socket.
    case sent
  }

  /// The processes of one kind.
  package struct Group: Sendable, Hashable {
    /// The processes that were seen, restarted ones again.
    package var processes = 0
    /// Their processor time, in seconds.
    package var seconds = 0.0
    /// The processor time in each interval of the run, in seconds.
    package var intervals: [Double]
  }

  /// The group of the load run's own process.
  package static let ownGroup = "this run"
  /// The group of Redis.
  package static let redisGroup = "redis"

  /// The groups by their names: ``ownGroup``, ``redisGroup``, and the workers' roles.
  package private(set) var groups: [String: Group] = [:]
  /// The times of the stages since the start; a stage is missing if no worker measures it.
  package private(set) var ages: [Stage: LoadAges] = [:]
  /// Why servers did not answer the last question, by their names.
  package private(set) var silent: [Name: String] = [:]
  private let startedAt: Double
  private let intervalLength: Int64
  private let intervalCount: Int
  private var former: [Name: (reading: WorkerReading, at: Int64)] = [:]

  /// The most servers that did not answer.
  private static let maximumSilent = 20

  /// Begins a run.
  ///
  /// - Parameters:
  ///   - startedAt: milliseconds since 1970.
  ///   - measures: have the intervals of the run.
  package init(startedAt: Int64, _ measures: LoadMeasures) {
    self.startedAt = Double(startedAt) / 1000
    (intervalLength, intervalCount) = (measures.intervalLength, measures.intervals.count)
  }

  /// The processor time of all servers that were seen, without this process, in seconds.
  package var seconds: Double { groups.filter { $0.key != Self.ownGroup }.values.reduce(0) { $0 + $1.seconds } }

  /// The names of the groups in the order of a report: this process, the workers, Redis.
  package var names: [String] {
    func rank(_ name: String) -> Int { name == Self.ownGroup ? 0 : name == Self.redisGroup ? 2 : 1 }
    return groups.keys.sorted { (rank($0), $0) < (rank($1), $1) }
  }

  /// A worker has answered.
  ///
  /// - Parameter server: tells the workers apart.
  mutating func take(_ reading: WorkerReading, of server: Name, at time: Int64) {
    take(reading, of: server, as: reading.role, at: time)
  }

  /// The processor time of a process that is not a worker, since its start.
  mutating func take(_ seconds: Double, of group: String, at time: Int64) {
    // Redis does not say here when it began. A restarted one has used less than before.
    let server = Name(group)
    let last = former[server]?.reading
    let isSame = (last?.processorSeconds ?? 0) <= seconds
    let startedAt = (last?.startedAt ?? 0) + (isSame ? 0 : 1)
    take(WorkerReading(startedAt: startedAt, processorSeconds: min(max(seconds, 0), 1e12)), of: server, as: group, at: time)
  }

  /// Adds the sums of another share.
  mutating func add(_ other: LoadServers) {
    groups.merge(other.groups) { group, other in
      Group(
        processes: group.processes + other.processes, seconds: group.seconds + other.seconds,
        intervals: zip(group.intervals, other.intervals).map { $0 + $1 })
    }
    for (stage, histogram) in other.ages { ages[stage, default: LoadAges()].add(histogram) }
    for (server, reason) in other.silent { missed(server, reason) }
  }

  /// A server has not answered.
  mutating func missed(_ server: Name, _ reason: String) {
    if silent[server] != nil || silent.count < Self.maximumSilent { silent[server] = reason }
  }

  private mutating func take(_ reading: WorkerReading, of server: Name, as name: String, at time: Int64) {
    silent[server] = nil
    let last = former.updateValue((reading, time), forKey: server)
    var group = groups[name] ?? Group(intervals: Array(repeating: 0, count: intervalCount))
    let isSame = last?.reading.startedAt == reading.startedAt
    if !isSame { group.processes += 1 }
    // The first reading of a process that began before the run only shows where it stood. One that began later has used all of it in the run.
    let isNew = last != nil || reading.startedAt >= startedAt
    guard isSame || isNew else {
      groups[name] = group
      return
    }
    let seconds = max(0, reading.processorSeconds - (isSame ? last?.reading.processorSeconds ?? 0 : 0))
    group.seconds += seconds
    spread(seconds, from: last?.at ?? time, to: time, &group.intervals)
    groups[name] = group
    for (stage, present) in reading.ages {
      let observed = isSame ? last?.reading.ages[stage].flatMap(present.since) ?? present : present
      ages[stage, default: LoadAges()].add(observed)
    }
  }

  /// Spreads processor time evenly over the intervals of a stretch of time.
  private func spread(_ seconds: Double, from start: Int64, to end: Int64, _ intervals: inout [Double]) {
    let start = min(start, end - 1)
    for index in intervals.indices {
      let (from, to) = (Int64(index) * intervalLength, Int64(index + 1) * intervalLength)
      let overlap = min(end, to) - max(start, from)
      if overlap > 0 { intervals[index] += seconds * Double(overlap) / Double(end - start) }
    }
  }
}

// MARK: - JSON

extension LoadServers {
  /// The sums, for a result file. Processor times are in microseconds.
  var json: JSONValue {
    func microseconds(_ seconds: Double) -> Int64 { Int64(min(max(seconds * 1e6, 0), 1e15)) }
    let groups = groups.sorted { $0.key < $1.key }.map { name, group in
      JSONValue.Member(name, [Int64(group.processes), microseconds(group.seconds)] + group.intervals.map(microseconds))
    }
    return .object([
      "groups": JSONValue.object(groups),
      "ages": JSONValue.object(ages.sorted { $0.key.rawValue < $1.key.rawValue }.map { .init($0.key.rawValue, $0.value.json) }),
      "silent": JSONValue.object(silent.map { .init($0.key.text, $0.value) }),
    ])
  }

  /// The most groups, and the most bytes of a name or of a reason, that are read.
  private static let (maximumGroups, maximumText) = (50, 1_000)

  /// Reads the sums of a run with these measures.
  init(_ fields: LoadFields, _ measures: LoadMeasures) throws(LoadFields.Problem) {
    self.init(startedAt: 0, measures)
    for member in try fields.object("groups").members?.prefix(Self.maximumGroups) ?? [] {
      let numbers = (member.value.elements ?? []).compactMap { LoadFields.count($0).map(Double.init) }
      guard numbers.count == intervalCount + 2, member.key.utf8.count <= Self.maximumText else {
        throw LoadFields.problem("servers.groups", "lists of a number of processes and \(intervalCount + 1) times")
      }
      groups[member.key] = Group(processes: Int(numbers[0]), seconds: numbers[1] / 1e6, intervals: numbers.dropFirst(2).map { $0 / 1e6 })
    }
    for member in try fields.object("ages").members ?? [] {
      guard let stage = Stage(rawValue: member.key), let histogram = LoadAges(member.value) else {
        throw LoadFields.problem("servers.ages", "the histograms of workers")
      }
      ages[stage] = histogram
    }
    for member in try fields.object("silent").members ?? [] where member.key.utf8.count <= Self.maximumText {
      missed(Name(member.key), String(decoding: (member.value.stringValue ?? "").utf8.prefix(Self.maximumText), as: UTF8.self))
    }
  }
}
