import EventLoop
import Glibc
import Kafka
import Notifications

/// The half of a run that its loop has: hands what happens to the ledger and to the measures.
final class LoadCore {
  let loop: EventLoop
  private(set) var fleet: LoadFleet?
  private(set) var publisher: LoadPublisher?
  private let place: LoadPlace
  private let share: LoadShare
  private(set) var plan: LoadPlan
  private(set) var names: LoadNames
  private(set) var ledger: LoadLedger
  private var measures: LoadMeasures
  private var schedule: LoadSchedule
  private var start = LoadStart(steady: 0, wall: 0)
  /// What the servers have taken so far.
  var servers: LoadServers
  private var stormTimer: Timer?
  private(set) var failure: KafkaError?
  var isStopped = false
  private let onViolation: (LoadFinding) -> Void
  private let connect: (Int, String) -> Void

  init(
    on loop: EventLoop, _ share: LoadShare, _ names: LoadNames, _ place: LoadPlace, onViolation: @escaping (LoadFinding) -> Void,
    connect: @escaping (Int, String) -> Void
  ) {
    (self.loop, self.share, self.names, self.place) = (loop, share, names, place)
    (self.connect, self.onViolation) = (connect, onViolation)
    plan = share.plan
    ledger = LoadLedger(plan)
    measures = LoadMeasures(durationMilliseconds: plan.requests.durationMilliseconds)
    schedule = LoadSchedule(plan.requests)
    servers = LoadServers(startedAt: 0, measures)
    fleet = LoadFleet(on: loop, plan, names, place, owner: self)
  }

  /// Nanoseconds since the start of the schedule.
  var now: Int64 { SteadyClock.nanoseconds() - start.steady }

  /// Begins a schedule with its own requests, on the devices that there are.
  ///
  /// - Parameter time: when it begins; nil for now.
  func begin(_ requests: LoadPlan.Requests, _ names: LoadNames, batchBytes: Int, at time: LoadStart?) throws(KafkaError) {
    plan.requests = requests
    self.names = names
    fleet?.names = names
    schedule = LoadSchedule(requests)
    measures = LoadMeasures(durationMilliseconds: requests.durationMilliseconds)
    ledger = LoadLedger(plan, requestsOfRun: share.count > 1 ? share.requestsOfRun : 0..<0)
    (failure, isStopped) = (nil, false)
    for device in fleet?.devices ?? [] where device.isOpen { ledger.connected(device.number, at: 0) }
    let publisher = try LoadPublisher(on: loop, plan, names, place, batchBytes: batchBytes, owner: self)
    self.publisher = publisher
    start = time ?? LoadStart()
    publisher.begin(start)
    fleet?.churns = plan.devices.churn > 0
    guard plan.devices.storm > 0 else { return }
    stormTimer = Timer(on: loop) { [unowned self] in fleet?.storm() }
    stormTimer?.start(after: max(0, requests.durationMilliseconds / 2 - Int(now / 1_000_000)))
  }

  /// Whether nothing more can become of the requests.
  var isSettled: Bool { publisher?.isDone == true && ledger.isSettled }

  func sweep() { ledger.sweep(at: now).forEach(report) }

  private func report(_ violation: LoadViolation) { onViolation(LoadFinding(violation, names, share)) }

  /// Ends the schedule, and decides what is open.
  func finish() {
    stormTimer?.close()
    stormTimer = nil
    fleet?.churns = false
    publisher?.stop()
    ledger.finish(at: now)
  }

  func closePublisher() async {
    await publisher?.close()
    publisher = nil
  }

  func close() {
    fleet?.close()
    fleet = nil
  }

  /// The length of an interval of the measures, in milliseconds.
  var intervalMilliseconds: Int { Int(measures.intervalLength / 1_000_000) }

  var result: LoadResult {
    let counts = fleet?.counts ?? LoadFleet.Counts()
    var result = LoadResult(
      plan: plan, startedAt: start.wall, elapsed: max(0, now), offered: schedule.count(dueBy: now), kept: publisher?.kept ?? 0,
      duplicates: publisher?.duplicates ?? 0, totals: ledger.totals, measures: measures, connected: counts.connected,
      connections: counts.connections, responses: counts.responses, acceptedResponses: counts.acceptedResponses,
      servers: servers, isStopped: isStopped)
    if publisher?.isDone == true {
      result.waiting = ledger.waiting
      result.waiting?.milliseconds = max(0, end - now) / 1_000_000
    }
    return result
  }

  /// When the run ends whatever is open, in nanoseconds after the start: that waits for devices that do not come back.
  var end: Int64 { Int64(plan.requests.durationMilliseconds + 2 * plan.patienceMilliseconds + 10_000) * 1_000_000 }

  /// Nanoseconds after the start at a time of the cluster's clock, in milliseconds since 1970.
  private func nanoseconds(ofClusterClock milliseconds: Int64) -> Int64 {
    let elapsed = milliseconds - (fleet?.clockOffset ?? 0) - start.wall
    // It is from outside, and becomes nanoseconds.
    return min(max(elapsed, 0), Self.longestRun) * 1_000_000
  }

  /// A time that no run takes, in milliseconds.
  private static let longestRun: Int64 = 1_000 * 86_400 * 1_000

  /// When a request is due at its devices.
  private func dueAtDevices(_ number: Int) -> Int64 { schedule.due(number) + plan.ahead(number) }

  /// The processor time of this process since its start, in seconds.
  static func processorSeconds() -> Double {
    var usage = rusage()
    guard getrusage(RUSAGE_SELF.rawValue, &usage) == 0 else { return 0 }
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }
}

/// What happens to the devices of a run, at Kafka, and in the topic `events`, on the loop.
extension LoadCore {
  /// A device needs a connection, with its object as the handler. `LoadFleet.failed` says if it cannot be made.
  func deviceNeedsConnection(_ device: Int, to url: String) { connect(device, url) }
  /// A device was welcomed.
  func deviceConnected(_ device: Int) { ledger.connected(device, at: now) }
  /// A device has lost its connection.
  func deviceDisconnected(_ device: Int) { ledger.disconnected(device) }

  /// A device has received a notification of a request.
  ///
  /// - Parameters:
  ///   - isPast: whether it had expired, by the cluster's clock.
  /// - Returns: why the device drops it; nil if it shows it.
  func deviceReceived(_ number: Int, device: Int, revision: Revision, isPast: Bool) -> DropReason? {
    let time = now
    let arrival = ledger.arrived(number, at: device, revision: revision, time: time, isPast: isPast)
    if arrival.isFirst { measures.record(.arrived, due: dueAtDevices(number), at: time) }
    arrival.violation.map(report)
    return arrival.dropped
  }

  /// A request was given to Kafka's client.
  func requestProduced(_ number: Int) { ledger.produced(number) }

  /// Kafka has acknowledged a request.
  func requestPublished(_ number: Int) {
    let time = now
    ledger.published(number, at: time)
    measures.record(.published, due: schedule.due(number), at: time)
  }

  /// Kafka has not taken a request.
  func requestFailed(_ number: Int, _ error: KafkaError) {
    failure = failure ?? error
    ledger.failed(number)
  }

  /// The topic `events` tells of a request.
  ///
  /// - Parameters:
  ///   - device: nil for an event about all devices of its target.
  ///   - written: when a worker wrote the event, in milliseconds since 1970 by its clock.
  ///   - identifier: reads the request's identifier, where it is another apns-id.
  func eventTold(
    _ outcome: Outcome, of id: NotificationID, device: Int?, at written: Int64?, identifier: () -> NotificationID?
  ) {
    guard let number = names.request(of: id, identifier: identifier) else { return }
    let time = now
    let telling = ledger.told(outcome, of: number, at: device, time: time)
    if telling.isFirst {
      measures.record(.told, due: dueAtDevices(number), at: time)
      if let written { measures.record(.acknowledged, due: dueAtDevices(number), at: nanoseconds(ofClusterClock: written)) }
    }
    telling.violation.map(report)
  }
}
