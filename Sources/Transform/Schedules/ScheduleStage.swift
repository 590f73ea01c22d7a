import Calendars
import EventLoop
import Notifications
import Store

/// Applies requests that schedule, fire, cancel or replace to the schedules.
///
/// The jobs of one target and application run one after the other, so each request finds the result of the one before, and a cancel of all
/// those of all. Firings that follow one another are one job: a schedule may be due in many zones at one moment. The number of running jobs
/// is bounded: a backlog of timed requests would fill the connection to Redis, and delay the lane's other calls.
final class ScheduleStage: Stage {
  private typealias Request = (record: ParkedRecord, content: RequestContent)

  private let applier: ScheduleApplier
  private let devices: DeviceFacts
  private var lines: [Scope: Line] = [:]
  /// The targets and applications whose next job has not begun.
  private var unbegun: ArraySlice<Scope> = []
  /// The number of running jobs.
  private var running = 0
  /// The maximum number of devices whose zones are kept with a firing.
  private static let maximumKept = 1024
  /// So many calls are about ten milliseconds of work for Redis.
  static let maximumRunning = 1024
  private var isFlushing = false
  /// Requests whose schedules have answered in this turn. They go on together, so that one call judges many occurrences that are due at once.
  private var ready: [Request] = []
  private var turnEnd: TurnEnd?
  /// Called with a request that waits for a newer program, and the schedule that it asked.
  var onNewer: (ParkedRecord, ScheduleKey) -> Void = { _, _ in }
  weak var owner: (any StageOwner)?

  init(on loop: EventLoop, _ applier: ScheduleApplier, _ devices: DeviceFacts) {
    (self.applier, self.devices) = (applier, devices)
    turnEnd = loop.onTurnEnd { [unowned self] in goOn() }
  }

  func close() async { turnEnd?.close() }

  /// Whether a request is being applied to a schedule of the same target and application.
  func isChanging(_ key: ScheduleKey) -> Bool { lines[Scope(key)].map { $0.begun > 0 } ?? false }

  /// False: the stage gets each request with a job even when it is inactive.
  var isActive: Bool { false }

  func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
    guard let job = content.schedule, job.isOpen else { return .pass(content) }
    let scope = Scope(job.key)
    lines[scope, default: Line()].requests.append((record, content))
    if lines[scope]?.requests.count == 1 { unbegun.append(scope) }
    return .later
  }

  /// The requests of one target and application, in order.
  private struct Line {
    /// A slice, from whose front a request leaves without moving the others.
    var requests: ArraySlice<Request> = []
    /// How many of the first requests the running job is for; 0 if none runs.
    var begun = 0

    /// The firings at the front that one job may apply.
    ///
    /// Only the first that changes the schedule writes the new state to Kafka. The others lie behind it in its partition, so none of them is
    /// committed before that.
    var firings: [ScheduleRules.Firing] { ScheduleStage.together(requests.lazy.map { $0.content.schedule }) }
  }

  /// Returns the firings of one schedule at the front of requests that one job may apply.
  ///
  /// A zone has one of them: the schedule remembers only so many firings as it has zones.
  static func together(_ jobs: some Sequence<ScheduleJob?>) -> [ScheduleRules.Firing] {
    var (firings, last): ([ScheduleRules.Firing], ScheduleJob?) = ([], nil)
    var zones: Set<Name> = []
    for job in jobs.prefix(ScheduleRecord.Pending.maximumZones) {
      guard let job, let firing = job.firing, firing.dueTime.zone != "",
        last.map({ $0.key == job.key && $0.place.partition == job.place.partition && $0.place.offset < job.place.offset }) ?? true,
        zones.insert(firing.dueTime.zone).inserted
      else { break }
      firings.append(firing)
      last = job
    }
    return firings
  }

  /// A target and an application. A cancel of all concerns the schedules of both.
  private struct Scope: Hashable {
    let target: Name
    let application: Name

    init(_ key: ScheduleKey) { (target, application) = (key.target, key.application) }
  }

  /// Begins the next jobs. A job fails at once without a connection, so a loop begins them: recursion through thousands would overflow the
  /// stack.
  func flush() {
    guard !isFlushing else { return }
    isFlushing = true
    while running < Self.maximumRunning, let scope = unbegun.popFirst() { begin(scope) }
    isFlushing = false
  }

  /// Drops the waiting records. A job that runs continues: its write to Redis is right without its record, and its answer is ignored.
  func drop(_ records: Set<ParkedRecord>) {
    ready.removeAll { records.contains($0.record) }
    for (scope, line) in lines {
      let kept = line.requests.prefix(line.begun) + line.requests.dropFirst(line.begun).filter { !records.contains($0.record) }
      if kept.isEmpty { lines[scope] = nil } else { lines[scope]?.requests = kept }
    }
    flush()
  }

  // MARK: One job

  private func begin(_ scope: Scope) {
    // A line is listed twice if its requests were dropped before a job began.
    guard let line = lines[scope], line.begun == 0, let content = line.requests.first?.content, let job = content.schedule else { return }
    lines[scope]?.begun = 1
    running += 1
    switch job.purpose {
    case .timed(let pending, let trigger): schedule(job, pending, trigger, content)
    case .firing(let firing) where firing.dueTime.zone == "": applier.apply(firing, to: job.key) { [self] in ended(job, $0) }
    case .firing: fire(line.firings, job.key)
    case .request(.cancelAll): applier.cancelAll(job.reference, in: job.key) { [self] in ended(scope, $0.map { [$0] }) }
    case .request(let kind): apply(job, kind)
    }
  }

  private func apply(_ job: ScheduleJob, _ kind: ScheduleRules.Request.Kind) {
    applier.apply(.init(job.reference, kind), at: job.place, to: job.key) { [self] in ended(job, $0) }
  }

  /// Reads the present owner of the device, to whom its schedule belongs.
  private func schedule(_ job: ScheduleJob, _ pending: ScheduleRecord.Pending, _ trigger: TimedTrigger, _ content: RequestContent) {
    guard case .device(let token) = content.receiver else { return scheduleInZones(job, pending, trigger) }
    devices.read([(token, content.arena)]) { [self] devices in
      switch devices {
      case .failure(let error): ended(job, .failure(error))
      case .success(let devices):
        var pending = pending
        pending.owner = devices[0].user
        scheduleInZones(job, pending, trigger)
      }
    }
  }

  private func scheduleInZones(_ job: ScheduleJob, _ pending: ScheduleRecord.Pending, _ trigger: TimedTrigger) {
    guard trigger.dependsOnDevices else { return apply(job, .timed(content: pending, zones: [])) }
    applier.apply(job.reference, scheduling: pending, at: job.place, to: job.key, zones: zonesReader(job.key)) { [self] in
      ended(job, $0)
    }
  }

  private func zonesReader(
    _ key: ScheduleKey, _ found: @escaping ([Name: Name]) -> Void = { _ in }
  ) -> ScheduleApplier.ZonesReader {
    { [devices] then in
      devices.zones(of: key) { answer in
        if case .success(let zones) = answer { found(zones) }
        then(answer.map(DeviceFacts.distinctZones))
      }
    }
  }

  private func fire(_ firings: [ScheduleRules.Firing], _ key: ScheduleKey) {
    let scope = Scope(key)
    lines[scope]?.begun = firings.count
    var zones: [Name: Name] = [:]
    applier.apply(firings, to: key, zones: zonesReader(key) { zones = $0 }) { [self] result in
      for (request, applied) in zip(lines[scope]?.requests ?? [], (try? result.get()) ?? []) {
        // The map stays until the record has ended: of a person with many devices the pages ask instead. After the last occurrence no zones
        // are read again, but that is for all devices.
        let isForAll = applied.hasComparedZones || applied.standing?.pending == nil
        if isForAll, zones.count <= Self.maximumKept { request.content.schedule?.zones = zones }
      }
      ended(scope, result.map { $0.map { [(key, $0)] } })
    }
  }

  private func ended(_ job: ScheduleJob, _ result: Result<ScheduleApplier.Applied, StoreError>) {
    if case .success(let applied) = result, job.asksUnderID(after: applied) { return apply(job, .cancel) }
    ended(Scope(job.key), result.map { [[(job.key, $0)]] })
  }

  /// Takes the requests of the running job out of their line. The next job of the line may begin.
  ///
  /// - Parameter answers: those that each request gets.
  private func ended(_ scope: Scope, _ answers: Result<[[ScheduleJob.Answer]], StoreError>) {
    guard let line = lines.removeValue(forKey: scope) else { return }
    running -= 1
    let rest = line.requests.dropFirst(line.begun)
    if !rest.isEmpty {
      lines[scope] = Line(requests: rest)
      unbegun.append(scope)
    }
    for (number, (record, content)) in line.requests.prefix(line.begun).enumerated() {
      guard let job = content.schedule else { continue }
      switch answers {
      case .success(let answers):
        job.answered(answers[number])
        ready.append((record, content))
      case .failure(let error):
        if case .newer = error.code { onNewer(record, job.key) }
        owner?.failed(record, error)
      }
    }
    flush()
  }

  /// The turn ends: the requests whose schedules have answered go on together.
  private func goOn() {
    guard !ready.isEmpty else { return }
    let passed = ready
    ready.removeAll(keepingCapacity: true)
    owner?.passed(passed)
  }
}
