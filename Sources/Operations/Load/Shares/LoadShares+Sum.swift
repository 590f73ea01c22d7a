public import Notifications

/// A row of a report's table of processes.
public struct LoadShareRow: Sendable, Hashable {
  /// The number of the process, from 1 on.
  public var number: Int
  /// The name of the process; nil if none has taken the share.
  public var name: Name?
  /// Its devices.
  public var devices: Int
  /// Its requests that were due.
  public var offered: Int
  /// Its requests that Kafka has acknowledged.
  public var published: Int
  /// The share of its notifications that should have arrived that has arrived.
  public var reach: Double
  /// The share of its schedule that was kept.
  public var schedule: Double
  /// Why the numbers are not complete; nil if they are.
  public var gap: String?
}

extension LoadShares {
  /// Adds the numbers of all other shares to those of the observer.
  ///
  /// The sum of histograms is exact, since all have one layout.
  ///
  /// - Parameters:
  ///   - own: the numbers of the observer's share.
  ///   - plan: the plan of the whole run.
  ///   - isOver: whether no more numbers are waited for. All that is missing of a share then counts as not arrived. Before that the sum has no
  ///     intervals of the others.
  public func sum(_ own: LoadResult, of plan: LoadPlan, isOver: Bool) -> LoadResult {
    var sum = own
    sum.plan = plan
    sum.shares = []
    for (index, share) in shares.enumerated() {
      let part = plan.share(index, of: shares.count)
      guard index != self.own else {
        sum.shares.append(LoadShareRow(part, share, LoadNumbers(own), gap: nil))
        continue
      }
      var numbers = share.numbers ?? LoadNumbers()
      let gap = isOver ? gap(index) : nil
      if gap != nil { numbers.countMissing(of: part.plan) }
      // While the run goes on nobody looks at the intervals, and this process has a schedule to keep.
      sum.add(numbers, isOver ? share.intervals : [:])
      sum.shares.append(LoadShareRow(part, share, numbers, gap: gap))
    }
    return sum
  }

  /// Why the numbers of another share are not complete.
  private func gap(_ share: Int) -> String? {
    switch shares[share].state {
    case .finished: nil
    case .free: "no process took part"
    case .left(let reason): reason
    case .taken, .ready: "it fell silent"
    }
  }
}

extension LoadShareRow {
  fileprivate init(_ part: LoadShare, _ share: LoadShares.Share, _ numbers: LoadNumbers, gap: String?) {
    let totals = numbers.totals
    self.init(
      number: part.number + 1, name: share.process?.name, devices: part.plan.devices.count, offered: numbers.offered,
      published: totals.published, reach: LoadResult.share(totals.reached, of: totals.expected),
      schedule: LoadResult.share(numbers.kept, of: numbers.offered), gap: gap)
  }
}

extension LoadNumbers {
  /// Counts all that these numbers do not tell of a share as due, and as not arrived.
  fileprivate mutating func countMissing(of plan: LoadPlan) {
    let missing = max(0, plan.pairs - totals.expected - totals.replaced)
    totals.expected += missing
    totals.unfinished += missing
    offered = max(offered, LoadSchedule(plan.requests).total)
  }
}

extension LoadResult {
  fileprivate mutating func add(_ numbers: LoadNumbers, _ intervals: [Int: LoadMeasures.Interval]) {
    offered += numbers.offered
    kept += numbers.kept
    duplicates += numbers.duplicates
    connected += numbers.connected
    connections += numbers.connections
    responses += numbers.responses
    acceptedResponses += numbers.acceptedResponses
    isStopped = isStopped || numbers.isStopped
    totals += numbers.totals
    measures.add(numbers, intervals)
    servers.addProcess(numbers.processorSeconds, intervals: numbers.processorIntervals)
  }
}

extension LoadMeasures {
  fileprivate mutating func add(_ numbers: LoadNumbers, _ parts: [Int: Interval]) {
    for (index, histogram) in numbers.stages.enumerated() { stages[index].merge(histogram) }
    for delay in numbers.delays { note(delay) }
    for (index, part) in parts where intervals.indices.contains(index) {
      for (stage, count) in part.counts.enumerated() { intervals[index].counts[stage] += count }
      intervals[index].arrival.merge(part.arrival)
    }
  }
}
