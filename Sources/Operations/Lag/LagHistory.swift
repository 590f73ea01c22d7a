import Kafka
import Store
package import Worker

/// Judges samples: rates, time to catch up, owners, and problems. A value.
package struct LagHistory: Sendable {
  private let topics: Topics
  private let group: String
  private let laneLifetime: Int64
  private let window: Int64
  /// The samples of the window, oldest first.
  private var samples: [LagSample] = []

  /// Younger records are in progress: offsets are committed once a second.
  static let steadyMilliseconds: Int64 = 3_000

  /// Makes it without samples.
  ///
  /// - Parameters:
  ///   - laneLifetimeMilliseconds: how long a silent lane counts as alive.
  ///   - windowMilliseconds: the longest time over which rates are measured.
  package init(_ topics: Topics, group: String, laneLifetimeMilliseconds: Int, windowMilliseconds: Int = 30_000) {
    (self.topics, self.group) = (topics, group)
    (laneLifetime, window) = (Int64(laneLifetimeMilliseconds), Int64(windowMilliseconds))
  }

  /// Takes a sample, which must be newer than all before.
  package mutating func take(_ sample: LagSample) {
    samples.append(sample)
    // The last sample that is older than the window begins it.
    while samples.count > 2, sample.moment - samples[1].moment >= window { samples.removeFirst() }
  }

  /// The result of the samples; nil before the first.
  package var report: LagReport? {
    guard let last = samples.last else { return nil }
    let rates = rates
    let owners = owners(last)
    let lanes = last.lanes.map { $0.filter { $0.silentMilliseconds < laneLifetime } }
    var report = LagReport(
      time: last.time, group: group, members: last.members, topics: [], logs: [], lanes: lanes, problems: [], gaps: last.gaps)
    for topic in topics.ofGroup {
      let states = last.lags.filter { $0.partition.topic == topic }.map { lag in
        let (behind, rates) = (lag.behind(at: last.time), rates[lag.partition])
        return PartitionState(
          lag: lag, behind: behind, rates: rates, catchUp: Self.catchUp(lag, behind, rates),
          owner: owners.map { $0[lag.partition].map { .member($0) } ?? .nobody } ?? .unknown)
      }
      if !states.isEmpty { report.topics.append(TopicLag(topic: topic, partitions: states)) }
    }
    for topic in topics.ofNoGroup {
      let isRead = topic == topics.deliveries
      let partitions = last.logs.filter { $0.partition.topic == topic }.map { log in
        let readers = isRead ? lanes?.filter { $0.partition == log.partition.partition }.map(\.name) : nil
        let lags = isRead ? last.laneLags.filter { $0.partition == log.partition.partition } : []
        return TopicLog.Partition(log: log, rate: rates[log.partition]?.in, readers: readers, lags: lags)
      }
      if !partitions.isEmpty { report.logs.append(TopicLog(topic: topic, partitions: partitions)) }
    }
    let still = lanes.map { FanOutLag.still(last.laneLags, living: $0, lifetimeMilliseconds: laneLifetime) } ?? []
    report.problems = Self.problems(report, deliveries: topics.deliveries, still)
    report.problems += last.openTransactions.filter { last.time - $0.since >= Self.transactionMilliseconds }.map { .openTransaction($0) }
    let requests = last.lags.map(\.partition).filter { $0.topic == topics.requests }.map(\.partition)
    if let problem = LagProblem(topics, requests: requests, journal: last.journalPartitions) { report.problems.append(problem) }
    return report
  }

  /// An older open transaction is a problem, since its producer is probably gone.
  private static let transactionMilliseconds: Int64 = 10_000

  // MARK: Rates

  /// The rates of each partition that the newest sample and an earlier one have.
  private var rates: [TopicPartition: LagRates] {
    var counted: [TopicPartition: (written: Int64, finished: Int64, since: Int64)] = [:]
    for (sample, next) in zip(samples, samples.dropFirst()) {
      let before = sample.places
      for (partition, place) in next.places {
        // Samples from before a topic was made again do not count.
        guard let old = before[partition], place.log.upperBound >= old.log.upperBound else {
          counted[partition] = nil
          continue
        }
        var sum = counted[partition] ?? (0, 0, sample.moment)
        sum.written += place.log.upperBound - old.log.upperBound
        // Missed records were not finished. A partition that rewinds finishes none meanwhile.
        sum.finished += max(0, (place.committed ?? 0) - max(old.committed ?? 0, old.log.lowerBound))
        counted[partition] = sum
      }
    }
    guard let now = samples.last?.moment else { return [:] }
    return counted.compactMapValues { sum in
      let seconds = Double(now - sum.since) / 1000
      return seconds > 0 ? LagRates(in: Double(sum.written) / seconds, out: Double(sum.finished) / seconds) : nil
    }
  }

  private static func catchUp(_ lag: PartitionLag, _ behind: Int64, _ rates: LagRates?) -> CatchUp {
    if lag.records == 0 || lag.oldest == nil { return .atEnd }
    if behind < steadyMilliseconds { return .keepsUp }
    guard let rates else { return .unknown }
    guard rates.out > rates.in else { return .never }
    return .after(milliseconds: Int64(saturating: (Double(lag.records) / (rates.out - rates.in) * 1000).rounded(.up)))
  }

  // MARK: Owners

  /// The owners of the group's partitions; nil if unknown.
  ///
  /// The group assigns only the requests. A partition of devices belongs to the owner of the requests of the same number, modulo the
  /// partitions of requests that the journal has.
  private func owners(_ sample: LagSample) -> [TopicPartition: GroupMembers.Member]? {
    guard let members = sample.members, !members.isForming else { return nil }
    var owners: [TopicPartition: GroupMembers.Member] = [:]
    for member in members.members {
      for partition in member.partitions { owners[partition] = member }
    }
    let all = sample.lags.count { $0.partition.topic == topics.requests }
    let requests = min(all, max(1, sample.journalPartitions ?? all))
    for lag in sample.lags where lag.partition.topic == topics.devices && requests > 0 {
      owners[lag.partition] = owners[TopicPartition(topics.requests, lag.partition.partition % Int32(requests))]
    }
    return owners
  }

  // MARK: Problems

  private static func problems(_ report: LagReport, deliveries: String, _ still: [FanOutLag]) -> [LagProblem] {
    var problems: [LagProblem] = []
    for topic in report.topics {
      let ownerless = topic.ownerless
      if !ownerless.isEmpty { problems.append(.ownerless(topic: topic.topic, partitions: ownerless)) }
      for state in topic.partitions {
        if let missed = state.missed { problems.append(.missed(state.lag.partition, missed)) }
        if let committed = state.lag.committed, committed > state.lag.log.upperBound {
          problems.append(.beyondEnd(state.lag.partition, committed: committed, end: state.lag.log.upperBound))
        }
      }
    }
    if report.lanes?.isEmpty == true { problems.append(.noLane) }
    problems += still.map { .laneStands(topic: deliveries, $0) }
    let unread =
      report.logs.first { $0.topic == deliveries }?.partitions.filter { each in
        each.readers?.isEmpty == true && each.rate ?? 0 > 0 && !still.contains { $0.partition == each.log.partition.partition }
      } ?? []
    if !unread.isEmpty { problems.append(.unread(topic: deliveries, partitions: unread.map(\.log.partition.partition))) }
    return problems
  }
}

extension LagSample {
  /// The offsets of each partition.
  fileprivate var places: [TopicPartition: (log: Range<Int64>, committed: Int64?)] {
    var places: [TopicPartition: (log: Range<Int64>, committed: Int64?)] = [:]
    for lag in lags { places[lag.partition] = (lag.log, lag.committed) }
    for log in logs { places[log.partition] = (log.offsets, nil) }
    return places
  }
}
