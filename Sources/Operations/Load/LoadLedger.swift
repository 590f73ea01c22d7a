internal import JSON
package import Notifications

/// The outcome of each request at each device, and the broken promises. A value: an event in, a violation out.
///
/// All requests of a target are published in the order of their numbers, by one producer and to one partition. So a greater number is the newer
/// request, whatever the cluster says. Scheduled ones have no order. Times are nanoseconds after the start of the run.
package struct LoadLedger: Sendable {
  /// The sums over all pairs of a request and one of its devices that are decided.
  package struct Totals: Sendable, Hashable {
    /// Requests that Kafka has acknowledged.
    package var published = 0
    /// Requests that Kafka has not taken.
    package var failed = 0
    /// Pairs that should have arrived: those of acknowledged requests, without those that a newer request has replaced.
    package var expected = 0
    /// Expected pairs that have arrived.
    package var reached = 0
    /// Pairs that a newer request of the same collapse id has replaced on the way.
    package var replaced = 0
    /// Requests that have arrived at each of their devices, unless a newer request has replaced them.
    package var completed = 0
    /// Notifications that a device has dropped, since it showed a newer one with the same collapse id.
    package var dropped = 0
    /// Notifications that came again in a later connection, because their acknowledgements were lost with the former one.
    package var resent = 0
    /// Pairs that arrived after they were reported as lost.
    package var recovered = 0
    /// Pairs that had arrived, but had no event when the run ended.
    package var untold = 0
    /// Pairs that were open when the run ended: their devices were not connected for long enough to count as lost.
    package var unfinished = 0
    /// The events about this run's requests, by their outcomes.
    package var outcomes: [Outcome: Int] = [:]
    /// The violations, by their kinds.
    package var violations: [LoadViolation.Kind: Int] = [:]

    /// A count, with its name in JSON.
    typealias Count = (name: String, path: any WritableKeyPath<Totals, Int> & Sendable)

    /// The counts of requests.
    static let ofRequests: [Count] = [("published", \.published), ("failed", \.failed), ("completed", \.completed)]
    /// The counts of requests at one device each.
    static let ofPairs: [Count] = [
      ("expected", \.expected), ("reached", \.reached), ("replaced", \.replaced), ("dropped", \.dropped), ("resent", \.resent),
      ("recovered", \.recovered), ("untold", \.untold), ("unfinished", \.unfinished),
    ]

    /// All counts.
    static let counts = ofRequests + ofPairs

    /// The members of these counts.
    func members(_ counts: [Count]) -> [JSONValue.Member] {
      counts.map { .init($0.name, self[keyPath: $0.path]) }
    }

    static func += (totals: inout Totals, other: Totals) {
      for (_, path) in counts { totals[keyPath: path] += other[keyPath: path] }
      totals.outcomes.merge(other.outcomes) { $0 + $1 }
      totals.violations.merge(other.violations) { $0 + $1 }
    }
  }

  /// The meaning of an arrival, or of a cluster's event, for the measures.
  package struct Arrival: Sendable, Hashable {
    /// Whether the device has it for the first time, or the event is the first to say so.
    package var isFirst: Bool
    /// Why the device drops it; nil if it shows it.
    package var dropped: DropReason?
    /// The violation that it is or shows, if any.
    package var violation: LoadViolation?
  }

  /// The notification that a device shows of a collapse id.
  private struct Shown {
    var number: Int32
    var revision: Revision
  }

  private struct Device {
    /// When the present connection began; nil without one.
    var connectedSince: Int64?
    /// The greatest number that has arrived, for its person and for the device: only requests of one target have an order.
    var newest = InlineArray<2, Int32>(repeating: -1)
    /// The greatest numbers that have arrived in this connection.
    var newestOfConnection = InlineArray<2, Int32>(repeating: -1)
    /// The scheduled ones that have arrived in this connection.
    var scheduledOfConnection: Set<Int32> = []
    /// What it shows of each collapse id, of the person and of the device.
    var shown = [Shown?](repeating: nil, count: 2 * LoadPlan.slots)

    /// Notes an arrival; answers whether the notification has arrived in this connection before, or a later one of its target has.
    mutating func take(_ number: Int32, of kind: Int, isScheduled: Bool) -> Bool {
      if isScheduled { return !scheduledOfConnection.insert(number).inserted }
      defer { newestOfConnection[kind] = max(newestOfConnection[kind], number) }
      return newestOfConnection[kind] >= number
    }
  }

  /// The sums so far.
  package private(set) var totals = Totals()
  private let plan: LoadPlan
  private let schedule: LoadSchedule
  /// The numbers of the requests of all shares; those of others are negative or beyond the plan's.
  private let requestsOfRun: Range<Int>
  private var devices: [Device]
  /// When Kafka has acknowledged a request, in milliseconds after the start and one more; 0 before.
  private var publishedAt: [UInt32]
  // One bit for each device of the request's target.
  private var arrived: [UInt8]
  private var told: [UInt8]
  private var ended: [UInt8]
  private var reported: [UInt8]
  /// The greatest published number of each target and collapse id.
  private var latest: [Int32]
  /// Requests below this number are decided, or in `overdue`.
  private var swept = 0
  private var overdue: [Int] = []
  private var hasFailed: Set<Int> = []

  /// Makes the ledger of a plan.
  ///
  /// - Parameter requestsOfRun: the numbers of the requests of all shares, where the plan is that of one of several.
  package init(_ plan: LoadPlan, requestsOfRun: Range<Int> = 0..<0) {
    (self.plan, self.requestsOfRun) = (plan, requestsOfRun)
    schedule = LoadSchedule(plan.requests)
    devices = Array(repeating: Device(), count: plan.devices.count)
    publishedAt = Array(repeating: 0, count: schedule.total)
    let bits = [UInt8](repeating: 0, count: schedule.total)
    (arrived, told, ended, reported) = (bits, bits, bits, bits)
    latest = Array(repeating: -1, count: plan.targets * LoadPlan.slots)
  }

  /// The clocks of the cluster's machines may differ by this much, so that much too early is in time.
  private static let earlyNanoseconds: Int64 = 1_000_000_000

  private var patience: Int64 { Int64(plan.patienceMilliseconds) * 1_000_000 }

  // MARK: Events

  /// A device has a connection, and was welcomed.
  package mutating func connected(_ device: Int, at time: Int64) {
    devices[device].connectedSince = time
    devices[device].newestOfConnection = InlineArray(repeating: -1)
    devices[device].scheduledOfConnection = []
  }

  /// A device has lost its connection.
  package mutating func disconnected(_ device: Int) { devices[device].connectedSince = nil }

  /// The producer has taken a request.
  package mutating func produced(_ number: Int) {
    guard let slot = place(of: number) else { return }
    latest[slot] = max(latest[slot], Int32(number))
  }

  /// Kafka has acknowledged a request.
  package mutating func published(_ number: Int, at time: Int64) {
    guard publishedAt.indices.contains(number), publishedAt[number] == 0 else { return }
    publishedAt[number] = UInt32(clamping: time / 1_000_000 + 1)
    totals.published += 1
  }

  /// Kafka has not taken a request.
  package mutating func failed(_ number: Int) {
    guard publishedAt.indices.contains(number), publishedAt[number] == 0, hasFailed.insert(number).inserted else { return }
    totals.failed += 1
  }

  /// A device has received a request's notification.
  ///
  /// - Parameters:
  ///   - revision: the cluster's word for which is newer.
  ///   - isPast: whether the notification had expired.
  package mutating func arrived(_ number: Int, at device: Int, revision: Revision, time: Int64, isPast: Bool) -> Arrival {
    guard devices.indices.contains(device) else { return Arrival(isFirst: false) }
    guard arrived.indices.contains(number) else {
      // No device of this share is meant by a request of another one.
      return Arrival(isFirst: false, violation: requestsOfRun.contains(number) ? note(.misdirected, number, device, time) : nil)
    }
    let request = plan.request(number)
    let targets = plan.devices(of: request.target)
    guard targets.contains(device) else { return Arrival(isFirst: false, violation: note(.misdirected, number, device, time)) }
    let bit = UInt8(1) << UInt8(device - targets.lowerBound)
    let kind = if case .user = request.target { 0 } else { 1 }
    let ordinal = Int32(number)
    let cameInConnection = devices[device].take(ordinal, of: kind, isScheduled: request.isScheduled)
    guard arrived[number] & bit == 0 else {
      let isRepeated = cameInConnection
      if !isRepeated { totals.resent += 1 }
      return Arrival(isFirst: false, dropped: .known, violation: isRepeated ? note(.repeated, number, device, time) : nil)
    }
    var violation: LoadViolation?
    if let slot = request.slot {
      let place = kind * LoadPlan.slots + slot
      if let shown = devices[device].shown[place] {
        let isNewer = shown.revision.isKeptBefore(revision)
        // A delivery record may come after the mailbox has sent its successor. Then the device drops it.
        guard isNewer || shown.number < ordinal else {
          totals.dropped += 1
          return Arrival(isFirst: false, dropped: .stale)
        }
        // The device goes by the revision, so it shows the older one, or drops the newer one.
        if isNewer != (shown.number < ordinal) { violation = note(.stale, number, device, time) }
        if isNewer { devices[device].shown[place] = Shown(number: ordinal, revision: revision) }
      } else {
        devices[device].shown[place] = Shown(number: ordinal, revision: revision)
      }
    }
    arrived[number] |= bit
    if reported[number] & bit != 0 { totals.recovered += 1 }
    let isOld = !request.isScheduled && devices[device].newest[kind] > ordinal
    if !request.isScheduled { devices[device].newest[kind] = max(devices[device].newest[kind], ordinal) }
    if violation == nil, isPast { violation = note(.late, number, device, time) }
    if request.isScheduled, time + Self.earlyNanoseconds < schedule.due(number) + plan.ahead(number) {
      violation = violation ?? note(.early, number, device, time)
    }
    if violation == nil, isOld { violation = note(.outOfOrder, number, device, time) }
    return Arrival(isFirst: true, violation: violation)
  }

  /// The topic `events` tells of a request.
  ///
  /// - Parameter device: nil for an event about all of them.
  package mutating func told(_ outcome: Outcome, of number: Int, at device: Int?, time: Int64) -> Arrival {
    guard told.indices.contains(number) else { return Arrival(isFirst: false) }
    totals.outcomes[outcome, default: 0] += 1
    let targets = plan.devices(of: plan.request(number).target)
    guard let device else {
      // Without a device it ended before any was known.
      if outcome.endsMailboxEntry { ended[number] = .max }
      return Arrival(isFirst: false)
    }
    guard targets.contains(device) else { return Arrival(isFirst: false) }
    let bit = UInt8(1) << UInt8(device - targets.lowerBound)
    guard outcome.isTaken else {
      // The second record of an apns-id ends as a duplicate, and says nothing of the first one.
      if outcome.endsMailboxEntry { ended[number] |= bit }
      return Arrival(isFirst: false)
    }
    guard told[number] & bit == 0 else { return Arrival(isFirst: false) }
    told[number] |= bit
    // A device acknowledges only what it has, so the event comes after the arrival.
    guard arrived[number] & bit == 0, reported[number] & bit == 0 else { return Arrival(isFirst: true) }
    reported[number] |= bit
    return Arrival(isFirst: true, violation: note(.lost, number, device, time))
  }

  // MARK: Deciding

  /// Decides requests after the patience, and reports lost ones. Call it about once a second.
  package mutating func sweep(at time: Int64) -> [LoadViolation] {
    var violations: [LoadViolation] = []
    var open: [Int] = []
    for number in overdue where !decide(number, at: time, &violations) { open.append(number) }
    overdue = open
    while swept < schedule.total, schedule.due(swept) + patience <= time {
      if !decide(swept, at: time, &violations) { overdue.append(swept) }
      swept += 1
    }
    return violations
  }

  /// Whether each request is decided, or has arrived or ended at each of its devices.
  package var isSettled: Bool { overdue.allSatisfy(isSettled) && (swept..<schedule.total).allSatisfy(isSettled) }

  private func isSettled(_ number: Int) -> Bool {
    hasFailed.contains(number) || publishedAt[number] > 0 && open(number) == 0 && untold(number) == 0
  }

  /// What the run waits for, of requests that Kafka has.
  package struct Waiting: Sendable, Hashable {
    /// Notifications that have neither arrived nor ended.
    package var arrivals = 0
    /// Notifications that have arrived, and whose events are still to be read.
    package var events = 0
    /// When the run ends all the same, in milliseconds from now.
    package var milliseconds: Int64 = 0
  }

  /// What the run waits for.
  package var waiting: Waiting {
    var waiting = Waiting()
    func add(_ number: Int) {
      guard publishedAt[number] > 0 else { return }
      waiting.arrivals += open(number).nonzeroBitCount
      waiting.events += untold(number).nonzeroBitCount
    }
    overdue.forEach(add)
    (swept..<schedule.total).forEach(add)
    return waiting
  }

  /// Decides all requests at the end of the run. Open ones count as unfinished.
  package mutating func finish(at time: Int64) {
    var violations: [LoadViolation] = []
    for number in overdue where !decide(number, at: time, &violations) { close(number) }
    overdue = []
    for number in swept..<schedule.total { close(number) }
    swept = schedule.total
  }

  private func expected(_ number: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: (1 << plan.devices(of: plan.request(number).target).count) - 1)
  }

  /// The devices without an arrival or an end.
  private func open(_ number: Int) -> UInt8 {
    let open = expected(number) & ~(arrived[number] | ended[number])
    return open == 0 || isReplaced(number) ? 0 : open
  }

  private func untold(_ number: Int) -> UInt8 { arrived[number] & ~told[number] & ~ended[number] }

  /// Whether a newer request of the same target and collapse id was published.
  private func isReplaced(_ number: Int) -> Bool { place(of: number).map { latest[$0] > Int32(number) } ?? false }

  private func place(of number: Int) -> Int? {
    let request = plan.request(number)
    return request.slot.map { plan.index(of: request.target) * LoadPlan.slots + $0 }
  }

  /// Decides a request, if no more can arrive. Returns whether it did.
  private mutating func decide(_ number: Int, at time: Int64, _ violations: inout [LoadViolation]) -> Bool {
    if hasFailed.contains(number) { return true }
    guard publishedAt[number] > 0, Int64(publishedAt[number]) * 1_000_000 + plan.ahead(number) + patience <= time else { return false }
    let targets = plan.devices(of: plan.request(number).target)
    var isOpen = false
    let open = open(number)
    for (place, device) in targets.enumerated() where open & (1 << place) != 0 {
      guard let since = devices[device].connectedSince, since + patience <= time else {
        isOpen = true
        continue
      }
      guard reported[number] & (1 << place) == 0 else { continue }
      reported[number] |= 1 << place
      violations.append(note(.lost, number, device, time))
    }
    if !isOpen { close(number) }
    return !isOpen
  }

  private mutating func close(_ number: Int) {
    guard publishedAt[number] > 0 else { return }
    let all = expected(number)
    let missing = all & ~arrived[number]
    let replaced = isReplaced(number) ? missing & ~reported[number] : 0
    totals.replaced += replaced.nonzeroBitCount
    totals.expected += (all & ~replaced).nonzeroBitCount
    totals.reached += arrived[number].nonzeroBitCount
    totals.untold += untold(number).nonzeroBitCount
    totals.unfinished += (missing & ~replaced & ~ended[number] & ~reported[number]).nonzeroBitCount
    if missing & ~replaced == 0 { totals.completed += 1 }
  }

  private mutating func note(_ kind: LoadViolation.Kind, _ number: Int, _ device: Int, _ time: Int64) -> LoadViolation {
    totals.violations[kind, default: 0] += 1
    return LoadViolation(kind: kind, request: number, device: device, at: time)
  }
}
