import Calendars
import EventLoop
import Notifications
import Store

/// Applies requests that schedule, fire, cancel or replace to the schedules. Loop-confined.
///
/// The jobs of one schedule run one after the other, so each request finds the result of the one before. Firings that follow one another are one
/// job: a schedule may be due in many zones at one moment. A cancel of all waits for the earlier requests of its target, and later requests wait
/// for it. The number of running jobs is bounded: a backlog of timed requests would fill the connection to Redis, and delay the lane's other
/// calls.
final class ScheduleStage: Stage {
  private typealias Request = (record: ParkedRecord, content: RequestContent)

  private let applier: ScheduleApplier
  private let zones: TimeZones
  private var lines: [ScheduleKey: Line] = [:]
  /// Schedules whose first job has not begun.
  private var unbegun: ArraySlice<ScheduleKey> = []
  /// The number of running jobs.
  private var running = 0
  /// The maximum number of devices whose zones are kept with a firing.
  private static let maximumKept = 1024
  /// So many calls are about ten milliseconds of work for Redis.
  static let maximumRunning = 1024
  /// The unfinished requests of each target and application.
  private var scopes: [Scope: ScheduleScope<Request>] = [:]
  private var isFlushing = false
  /// Requests whose schedules have answered in this turn. They go on together, so that one call judges many occurrences that are due at once.
  private var ready: [Request] = []
  private var turnEnd: TurnEnd?
  /// Called with a request that waits for a newer program, and the schedule that it asked.
  var onNewer: (ParkedRecord, ScheduleKey) -> Void = { _, _ in }
  weak var owner: (any StageOwner)?

  init(on loop: EventLoop, _ applier: ScheduleApplier, _ zones: TimeZones) {
    (self.applier, self.zones) = (applier, zones)
    turnEnd = loop.onTurnEnd { [unowned self] in goOn() }
  }

  func close() async { turnEnd?.close() }

  /// Whether a request is being applied to a schedule.
  func isChanging(_ key: ScheduleKey) -> Bool { lines[key].map { $0.begun > 0 } ?? false }

  /// False: the stage gets each request with a job even when it is inactive.
  var isActive: Bool { false }

  func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
    guard let job = content.schedule, job.isOpen else { return .pass(content) }
    append(scopes[Scope(job.key), default: ScheduleScope()].add((record, content), cancelsAll: job.cancelsAll))
    return .later
  }

  /// The requests of one schedule, in order.
  private struct Line {
    /// A slice, from whose front a request leaves without moving the others.
    var requests: ArraySlice<Request> = []
    /// How many of the first requests the running job is for; 0 if none runs.
    var begun = 0

    /// The firings at the front that one job may apply.
    ///
    /// Only the first that changes the schedule writes the new state to Kafka. The others lie behind it in its partition, so none of them is
    /// committed before that.
    var firings: [ScheduleJudge.Firing] { ScheduleStage.together(requests.lazy.map { $0.content.schedule }) }
  }

  /// Returns the firings at the front of a schedule's requests that one job may apply.
  ///
  /// A zone has one of them: the schedule remembers only so many firings as it has zones.
  static func together(_ jobs: some Sequence<ScheduleJob?>) -> [ScheduleJudge.Firing] {
    var (firings, last): ([ScheduleJudge.Firing], Revision?) = ([], nil)
    var zones: Set<Name> = []
    for job in jobs.prefix(ScheduleRecord.Pending.maximumZones) {
      guard let job, let firing = job.firing, firing.dueTime.zone != "",
        last.map({ $0.partition == job.place.partition && $0.offset < job.place.offset }) ?? true,
        zones.insert(firing.dueTime.zone).inserted
      else { break }
      firings.append(firing)
      last = job.place
    }
    return firings
  }

  /// A target and an application. A cancel of all concerns the schedules of one.
  private struct Scope: Hashable {
    let target: Name
    let application: Name

    init(_ key: ScheduleKey) { (target, application) = (key.target, key.application) }
  }

  private func append(_ requests: [Request]) {
    for request in requests {
      guard let key = request.content.schedule?.key else { continue }
      lines[key, default: Line()].requests.append(request)
      if lines[key]?.requests.count == 1 { unbegun.append(key) }
    }
  }

  /// Releases the requests that waited for this one. The next flush begins them.
  private func left(_ job: ScheduleJob) { change(Scope(job.key)) { $0.ended(cancelsAll: job.cancelsAll) } }

  private func change(_ scope: Scope, _ body: (inout ScheduleScope<Request>) -> [Request]) {
    guard var requests = scopes.removeValue(forKey: scope) else { return }
    let begun = body(&requests)
    if !requests.isEmpty { scopes[scope] = requests }
    append(begun)
  }

  /// Begins the next jobs. A job fails at once without a connection, so a loop begins them: recursion through thousands would overflow the
  /// stack.
  func flush() {
    guard !isFlushing else { return }
    isFlushing = true
    while running < Self.maximumRunning, let key = unbegun.popFirst() { begin(key) }
    isFlushing = false
  }

  /// Drops the waiting records. A job that runs continues: its write to Redis is right without its record, and its answer is ignored.
  func drop(_ records: Set<ParkedRecord>) {
    ready.removeAll { records.contains($0.record) }
    var dropped: [Request] = []
    for (key, line) in lines {
      let rest = line.requests.dropFirst(line.begun).filter { records.contains($0.record) }
      guard !rest.isEmpty else { continue }
      dropped += rest
      let kept = line.requests.prefix(line.begun) + line.requests.dropFirst(line.begun).filter { !records.contains($0.record) }
      if kept.isEmpty { lines[key] = nil } else { lines[key]?.requests = kept }
    }
    for scope in scopes.keys { change(scope) { $0.drop { records.contains($0.record) } } }
    for (_, content) in dropped { if let job = content.schedule { left(job) } }
    flush()
  }

  // MARK: One job

  private func begin(_ key: ScheduleKey) {
    // A schedule is listed twice if its requests were dropped before a job began.
    guard let line = lines[key], line.begun == 0, let content = line.requests.first?.content, let job = content.schedule else { return }
    lines[key]?.begun = 1
    running += 1
    switch job.purpose {
    case .timed(let pending, let trigger): schedule(job, pending, trigger, content)
    case .firing(let firing) where firing.dueTime.zone == "":
      applier.apply(firing, to: key) { [self] result in ended(job, result.map { .applied($0) }) }
    case .firing: fire(line.firings, key)
    case .expired: apply(job, .expired)
    case .cancel: apply(job, .cancel)
    case .now: apply(job, .now)
    case .place: apply(job, .place)
    case .cancelAll:
      applier.cancelAll(job.reference, in: job.key) { [self] result in ended(job, result.map { .canceled($0) }) }
    }
  }

  private func apply(_ job: ScheduleJob, _ kind: ScheduleJudge.Request.Kind) {
    applier.apply(.init(job.reference, kind), at: job.place, to: job.key) { [self] result in ended(job, result.map { .applied($0) }) }
  }

  /// Reads the present owner of the device, to whom its schedule belongs.
  private func schedule(_ job: ScheduleJob, _ pending: ScheduleRecord.Pending, _ trigger: TimedTrigger, _ content: RequestContent) {
    guard case .device(let token) = content.receiver else { return scheduleInZones(job, pending, trigger) }
    content.arena.bytes.withUnsafeBytes { arena in
      zones.read(arena[token]) { [self] device in
        switch device {
        case .failure(let error): ended(job, .failure(error))
        case .success(let device):
          var pending = pending
          pending.owner = device.user
          scheduleInZones(job, pending, trigger)
        }
      }
    }
  }

  private func scheduleInZones(_ job: ScheduleJob, _ pending: ScheduleRecord.Pending, _ trigger: TimedTrigger) {
    guard trigger.dependsOnDevices else { return apply(job, .timed(content: pending, zones: [])) }
    applier.apply(job.reference, scheduling: pending, at: job.place, to: job.key, zones: zonesReader(job.key)) { [self] result in
      ended(job, result.map { .applied($0) })
    }
  }

  private func zonesReader(
    _ key: ScheduleKey, _ found: @escaping ([Name: Name]) -> Void = { _ in }
  ) -> ScheduleApplier.ZonesReader {
    { [zones] then in
      zones.read(of: key) { answer in
        if case .success(let zones) = answer { found(zones) }
        then(answer.map(TimeZones.distinct))
      }
    }
  }

  private func fire(_ firings: [ScheduleJudge.Firing], _ key: ScheduleKey) {
    lines[key]?.begun = firings.count
    var devices: [Name: Name] = [:]
    applier.apply(firings, to: key, zones: zonesReader(key) { devices = $0 }) { [self] result in
      for (request, applied) in zip(lines[key]?.requests ?? [], (try? result.get()) ?? []) {
        // The map stays until the record has ended: of a person with many devices the pages ask instead. After the last occurrence no zones
        // are read again, but that is for all devices.
        let isForAll = applied.hasComparedZones || applied.standing?.pending == nil
        if isForAll, devices.count <= Self.maximumKept { request.content.schedule?.zones = devices }
      }
      ended(key, result.map { $0.map { .applied($0) } })
    }
  }

  private func ended(_ job: ScheduleJob, _ answer: Result<ScheduleJob.Answer, StoreError>) {
    // The job takes its place behind the earlier requests for the other schedule.
    let key = job.key
    if case .success(.applied(let applied)) = answer, job.asksUnderID(after: applied) {
      append(leave(key))
      return flush()
    }
    ended(key, answer.map { [$0] })
  }

  private func ended(_ key: ScheduleKey, _ answers: Result<[ScheduleJob.Answer], StoreError>) {
    for (number, (record, content)) in leave(key).enumerated() {
      guard let job = content.schedule else { continue }
      left(job)
      switch answers {
      case .success(let answers):
        job.answer = answers[number]
        ready.append((record, content))
      case .failure(let error):
        if case .newer = error.code { onNewer(record, key) }
        owner?.failed(record, error)
      }
    }
    flush()
  }

  /// Takes the requests of the running job out of their line. The next job of the schedule may begin.
  private func leave(_ key: ScheduleKey) -> [Request] {
    guard let line = lines.removeValue(forKey: key) else { return [] }
    running -= 1
    let rest = line.requests.dropFirst(line.begun)
    if !rest.isEmpty {
      lines[key] = Line(requests: rest)
      unbegun.append(key)
    }
    return Array(line.requests.prefix(line.begun))
  }

  /// The turn ends: the requests whose schedules have answered go on together.
  private func goOn() {
    guard !ready.isEmpty else { return }
    let passed = ready
    ready.removeAll(keepingCapacity: true)
    owner?.passed(passed)
  }
}
