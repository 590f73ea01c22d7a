import Notifications
import TestSupport
import Testing

@testable import Operations

/// What a load run finds out: by random histories of a cluster that keeps its promises and of one that breaks one of them.
@Suite struct LoadLedgerTests {
  private static let second: Int64 = 1_000_000_000

  private static func plan(_ change: (inout LoadPlan) -> Void = { _ in }) -> LoadPlan {
    var plan = LoadPlan()
    (plan.devices.count, plan.devices.perUser, plan.requests.rate, plan.requests.durationMilliseconds) = (7, 3, 50, 4000)
    (plan.requests.collapsing, plan.patienceMilliseconds) = (0.4, 10_000)
    change(&plan)
    return plan
  }

  /// A cluster that delivers each request to its devices in order. Devices lose their connections and get again what they have not acknowledged.
  private struct Cluster {
    var ledger: LoadLedger
    let plan: LoadPlan
    var violations: [LoadViolation] = []
    /// What lies in each device's mailbox, in order, and what it was sent in this connection.
    var mailboxes: [[Int]]
    var sent: [[Int]]
    /// What each device has received in any connection.
    var received: [Set<Int>]
    var time: Int64 = 0

    init(_ plan: LoadPlan) {
      self.plan = plan
      ledger = LoadLedger(plan)
      (mailboxes, sent) = (Array(repeating: [], count: plan.devices.count), Array(repeating: [], count: plan.devices.count))
      received = Array(repeating: [], count: plan.devices.count)
      for device in 0..<plan.devices.count { ledger.connected(device, at: 0) }
    }

    mutating func publish(_ number: Int) {
      let request = plan.request(number)
      ledger.produced(number)
      ledger.published(number, at: time)
      for device in plan.devices(of: request.target) {
        if let slot = request.slot {
          // A newer one takes the place of an older one that was not sent.
          let isReplaced = { [plan] (other: Int) in plan.request(other).target == request.target && plan.request(other).slot == slot }
          for other in mailboxes[device].filter(isReplaced) where !sent[device].contains(other) {
            mailboxes[device].removeAll { $0 == other }
            tell(.collapsed, other, device)
          }
        }
        mailboxes[device].append(number)
      }
    }

    mutating func tell(_ outcome: Outcome, _ number: Int, _ device: Int) {
      if let violation = ledger.told(outcome, of: number, at: device, time: time).violation { violations.append(violation) }
    }

    /// A revision of the log: the order of the numbers is that of the offsets.
    func revision(_ offset: Int) -> Revision { Revision(timestamp: 1, partition: 0, offset: UInt64(clamping: offset)) }

    @discardableResult
    mutating func arrive(_ number: Int, _ device: Int, revision: Int? = nil, isPast: Bool = false) -> LoadLedger.Arrival {
      if received.indices.contains(device) { received[device].insert(number) }
      let arrival = ledger.arrived(number, at: device, revision: self.revision(revision ?? number), time: time, isPast: isPast)
      if let violation = arrival.violation { violations.append(violation) }
      return arrival
    }

    /// Sends the next notification of a device's mailbox; answers which one.
    @discardableResult
    mutating func send(_ device: Int) -> Int? {
      guard let next = mailboxes[device].first(where: { !sent[device].contains($0) }) else { return nil }
      sent[device].append(next)
      arrive(next, device)
      return next
    }

    /// Sends again what the device has had in a former connection.
    mutating func resend(_ device: Int) {
      while let next = mailboxes[device].first(where: { !sent[device].contains($0) }), received[device].contains(next) { send(device) }
    }

    /// The device has acknowledged the oldest one that it was sent.
    mutating func acknowledge(_ device: Int) {
      guard let first = mailboxes[device].first, sent[device].contains(first) else { return }
      mailboxes[device].removeFirst()
      tell(.delivered, first, device)
    }

    mutating func reconnect(_ device: Int) {
      ledger.disconnected(device)
      sent[device] = []
      ledger.connected(device, at: time)
    }

    mutating func sweep() { violations += ledger.sweep(at: time) }

    /// Delivers everything that is left.
    mutating func drain() {
      for device in 0..<plan.devices.count {
        while send(device) != nil {}
        while !mailboxes[device].isEmpty { acknowledge(device) }
      }
    }
  }

  private static func history(_ plan: LoadPlan, seed: UInt64, _ fault: (inout Cluster, Int, inout SeededRandom) -> Void = { _, _, _ in })
    -> Cluster
  {
    var (random, cluster) = (SeededRandom(seed: seed), Cluster(plan))
    let schedule = LoadSchedule(plan.requests)
    for number in 0..<schedule.total {
      cluster.time = schedule.due(number)
      cluster.publish(number)
      for _ in 0..<Int.random(in: 0...6, using: &random) {
        let device = Int.random(in: 0..<plan.devices.count, using: &random)
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<10: cluster.send(device)
        case 10..<18: cluster.acknowledge(device)
        case 18: cluster.reconnect(device)
        default: cluster.sweep()
        }
      }
      fault(&cluster, number, &random)
    }
    return cluster
  }

  @Test(arguments: 1...(isComplete ? 30 : 6) as ClosedRange<UInt64>)
  func `a cluster that keeps its promises breaks none, and everything is reached`(
    seed: UInt64
  ) {
    var cluster = Self.history(Self.plan(), seed: seed)
    cluster.drain()
    #expect(cluster.ledger.isSettled)
    cluster.time += 60 * Self.second
    cluster.sweep()
    cluster.ledger.finish(at: cluster.time)
    let totals = cluster.ledger.totals
    #expect(cluster.violations.isEmpty, "seed \(seed): \(cluster.violations)")
    #expect(totals.published == 200 && totals.reached == totals.expected && totals.completed == 200)
    #expect(totals.untold == 0 && totals.unfinished == 0 && totals.recovered == 0)
    let pairs = (0..<200).reduce(0) { $0 + Self.plan().devices(of: Self.plan().request($1).target).count }
    #expect(totals.expected + totals.replaced == pairs)
  }

  @Test(arguments: 1...(isComplete ? 20 : 4) as ClosedRange<UInt64>)
  func `a notification that never comes is lost when the device's patience is over`(
    seed: UInt64
  ) {
    let victim = 100
    var cluster = Self.history(Self.plan { $0.requests.collapsing = 0 }, seed: seed) { cluster, number, _ in
      guard number == victim else { return }
      for device in cluster.plan.devices(of: cluster.plan.request(victim).target) { cluster.mailboxes[device].removeAll { $0 == victim } }
    }
    let missing = cluster.plan.devices(of: cluster.plan.request(victim).target).count
    cluster.drain()
    #expect(!cluster.ledger.isSettled)
    cluster.time = 12 * Self.second
    cluster.sweep()
    // A device that has connected meanwhile still has its time.
    #expect(cluster.violations.allSatisfy { $0.kind == .lost && $0.request == victim })
    cluster.time = 40 * Self.second
    cluster.sweep()
    cluster.sweep()
    #expect(cluster.violations.count == missing && cluster.ledger.totals.violations == [.lost: missing])
    cluster.ledger.finish(at: cluster.time)
    #expect(cluster.ledger.totals.expected - cluster.ledger.totals.reached == missing)
    #expect(cluster.ledger.totals.unfinished == 0 && cluster.ledger.totals.completed == 199)
  }

  @Test func `a notification for a device that is away is not lost but unfinished`() {
    var cluster = Cluster(Self.plan { $0.requests.collapsing = 0 })
    cluster.publish(0)
    let devices = cluster.plan.devices(of: cluster.plan.request(0).target)
    for device in devices { cluster.ledger.disconnected(device) }
    cluster.time = 100 * Self.second
    cluster.sweep()
    #expect(cluster.violations.isEmpty && !cluster.ledger.isSettled)
    cluster.ledger.finish(at: cluster.time)
    #expect(cluster.ledger.totals.unfinished == devices.count && cluster.ledger.totals.reached == 0)
  }

  @Test func `what the cluster calls delivered and the device has not is lost at once`() {
    var cluster = Cluster(Self.plan())
    cluster.publish(0)
    let device = cluster.plan.devices(of: cluster.plan.request(0).target).lowerBound
    cluster.tell(.delivered, 0, device)
    #expect(cluster.violations.map(\.kind) == [.lost])
    cluster.arrive(0, device)
    #expect(cluster.ledger.totals.recovered == 1 && cluster.violations.count == 1)
  }

  @Test(arguments: 1...(isComplete ? 20 : 4) as ClosedRange<UInt64>)
  func `each single repeated, swapped and late notification is found, and nothing else`(
    seed: UInt64
  ) {
    let plan = Self.plan { $0.requests.collapsing = 0 }
    var expected: [LoadViolation.Kind] = []
    let cluster = Self.history(plan, seed: seed) { cluster, number, random in
      guard number % 40 == 20 else { return }
      let device = Int.random(in: 0..<plan.devices.count, using: &random)
      cluster.resend(device)
      switch number / 40 % 3 {
      case 0:
        guard let again = cluster.send(device) else { return }
        cluster.arrive(again, device)
        expected.append(.repeated)
      case 1:
        // Two requests for the device itself, the later one first.
        let next = cluster.mailboxes[device].filter {
          !cluster.received[device].contains($0) && plan.request($0).target == .device(device)
        }
        guard next.count >= 2 else { return }
        cluster.sent[device] += next.prefix(2)
        cluster.arrive(next[1], device)
        cluster.arrive(next[0], device)
        expected.append(.outOfOrder)
      default:
        guard let next = cluster.mailboxes[device].first(where: { !cluster.received[device].contains($0) }) else { return }
        cluster.sent[device].append(next)
        cluster.arrive(next, device, isPast: true)
        expected.append(.late)
      }
    }
    #expect(cluster.violations.map(\.kind) == expected, "seed \(seed)")
  }

  /// A cluster, two requests of one collapse id, and a device that both are for.
  private static func pair() throws -> (Cluster, first: Int, second: Int, device: Int) {
    let plan = plan { $0.requests.collapsing = 1 }
    let first = plan.request(0)
    let second = try #require((1..<200).first { plan.request($0).target == first.target && plan.request($0).slot == first.slot })
    var cluster = Cluster(plan)
    for number in [0, second] { cluster.publish(number) }
    return (cluster, 0, second, plan.devices(of: first.target).lowerBound)
  }

  @Test func `an older notification after a newer one with the same collapse id is dropped, as a device drops it`() throws {
    var (cluster, first, second, device) = try Self.pair()
    cluster.arrive(second, device)
    #expect(cluster.arrive(first, device).dropped == .stale)
    #expect(cluster.violations.isEmpty && cluster.ledger.totals.dropped == 1)
  }

  @Test func `an older notification with a newer revision is stale, and so is a newer one with an older revision`() throws {
    for isReversed in [false, true] {
      var (cluster, first, second, device) = try Self.pair()
      cluster.arrive(isReversed ? first : second, device, revision: isReversed ? 1000 : 500)
      cluster.arrive(isReversed ? second : first, device, revision: isReversed ? 500 : 1000)
      #expect(cluster.violations.map(\.kind) == [.stale])
    }
  }

  @Test func `a scheduled request has its own time, and no order among the others`() throws {
    var cluster = Cluster(
      Self.plan { ($0.requests.scheduled, $0.requests.aheadMilliseconds, $0.requests.collapsing) = (0.3, 3_000, 0) })
    let plan = cluster.plan
    let number = try #require((0..<100).first { plan.request($0).isScheduled })
    let devices = plan.devices(of: plan.request(number).target)
    let device = devices.lowerBound
    for other in 0..<200 { cluster.publish(other) }
    // It may come after all others, and again in a later connection.
    for other in 0..<200 where other != number && plan.devices(of: plan.request(other).target).contains(device) {
      if !plan.request(other).isScheduled { cluster.arrive(other, device) }
    }
    let due = LoadSchedule(plan.requests).due(number) + 3 * Self.second
    cluster.time = due
    cluster.arrive(number, device)
    cluster.reconnect(device)
    cluster.arrive(number, device)
    #expect(cluster.violations.isEmpty, "\(cluster.violations)")
    #expect(cluster.ledger.totals.resent == 1)
    cluster.arrive(number, device)
    #expect(cluster.violations.map(\.kind) == [.repeated])
  }

  @Test func `a scheduled request that comes before its time is early, and lost when its time and the patience are over`() throws {
    var cluster = Cluster(
      Self.plan { ($0.requests.scheduled, $0.requests.aheadMilliseconds, $0.requests.toUsers) = (1, 30_000, 0) })
    for number in 0..<2 { cluster.publish(number) }
    #expect(cluster.plan.request(0).slot == nil && cluster.plan.request(0).isScheduled)
    func device(_ number: Int) -> Int { cluster.plan.devices(of: cluster.plan.request(number).target).lowerBound }
    cluster.time = 28 * Self.second
    cluster.arrive(0, device(0))
    #expect(cluster.violations.map(\.kind) == [.early])
    cluster.time = 39 * Self.second
    cluster.sweep()
    #expect(cluster.violations.count == 1, "the patience of 10 s begins when it is due")
    cluster.time = 41 * Self.second
    cluster.sweep()
    #expect(cluster.violations.map(\.kind) == [.early, .lost] && cluster.violations.last?.request == 1)
  }

  @Test func `a notification for somebody else is misdirected`() {
    var cluster = Cluster(Self.plan { $0.requests.toUsers = 0 })
    guard case .device(let device) = cluster.plan.request(0).target else { return }
    cluster.publish(0)
    cluster.arrive(0, (device + 1) % 7)
    #expect(cluster.violations.map(\.kind) == [.misdirected])
  }

  @Test func `numbers from outside that are not of the run change nothing`() {
    var cluster = Cluster(Self.plan())
    for number in [-1, 200, Int.max, Int.min] {
      cluster.arrive(number, 0)
      cluster.tell(.delivered, number, 0)
      cluster.ledger.published(number, at: 0)
      cluster.ledger.failed(number)
    }
    cluster.arrive(0, 7)
    cluster.arrive(0, -1)
    cluster.tell(.delivered, 0, 99)
    #expect(cluster.violations.isEmpty && cluster.ledger.totals.published == 0)
  }

  @Test func `an eviction is no loss, but lowers the reach`() {
    var cluster = Cluster(Self.plan { ($0.requests.collapsing, $0.requests.toUsers) = (0, 0) })
    for number in 0..<200 { cluster.publish(number) }
    guard case .device(let device) = cluster.plan.request(0).target else { return }
    cluster.mailboxes[device].removeAll { $0 == 0 }
    cluster.tell(.evicted, 0, device)
    cluster.drain()
    #expect(cluster.ledger.isSettled)
    cluster.ledger.finish(at: 60 * Self.second)
    #expect(cluster.ledger.totals.reached == 199 && cluster.ledger.totals.expected == 200 && cluster.ledger.totals.unfinished == 0)
  }

  @Test func `the ids, tokens and people of a run are its own`() {
    let (one, other) = (LoadNames(run: "a", series: 1), LoadNames(run: "b", series: 2))
    for number in [0, 1, 77, 1_000_000] {
      #expect(one.request(of: one.id(number)) == number && other.request(of: one.id(number)) == nil)
      let token = one.token(number)
      #expect(Name(token.text).withBytes { one.device(ofToken: $0) } == number)
      #expect(Name(token.text).withBytes { other.device(ofToken: $0) } == nil)
      #expect(one.user(number) != other.user(number))
    }
    for end in ["A", "+a", "-a", " a", "g"] {
      let text = one.token(10).text.dropLast(end.utf8.count) + end
      #expect(Array(text.utf8).withUnsafeBytes { one.device(ofToken: $0) } == nil)
    }
    let sign = one.token(10).text.utf8.enumerated().map { $0.offset == 48 ? UInt8(ascii: "+") : $0.element }
    #expect(sign.withUnsafeBytes { one.device(ofToken: $0) } == nil)
    #expect(one.application == "load.a")
    // An occurrence of a scheduled request has an id of its own, and the request's as identifier.
    let foreign = NotificationID(high: 9, low: 9)
    #expect(one.request(of: foreign) { one.id(77) } == 77 && one.request(of: foreign) { foreign } == nil)
  }

  /// A scheduled request is decided only after its patience, which is counted from its time. Nobody waits for that.
  @Test func `a run is over when nothing is open any more, and says before that what it waits for`() {
    var cluster = Cluster(
      Self.plan {
        ($0.requests.collapsing, $0.requests.scheduled, $0.requests.aheadMilliseconds) = (0, 1, 5000)
      })
    let numbers = 0..<LoadSchedule(cluster.plan.requests).total
    let pairs = numbers.flatMap { [plan = cluster.plan] number in plan.devices(of: plan.request(number).target).map { (number, $0) } }
    for number in numbers { cluster.publish(number) }
    #expect(cluster.ledger.waiting == LoadLedger.Waiting(arrivals: pairs.count, events: 0))
    cluster.time = 9 * Self.second
    for (number, device) in pairs { cluster.arrive(number, device) }
    #expect(cluster.ledger.waiting == LoadLedger.Waiting(arrivals: 0, events: pairs.count) && !cluster.ledger.isSettled)
    for (number, device) in pairs { cluster.tell(.delivered, number, device) }
    cluster.time = 14 * Self.second + 500_000_000
    #expect(cluster.ledger.sweep(at: cluster.time).isEmpty && cluster.violations.isEmpty)
    #expect(cluster.ledger.waiting == LoadLedger.Waiting() && cluster.ledger.isSettled)
  }
}
