import Calendars
import Notifications
import Store

/// Has the schedules answer requests that are due at a time, that fire, cancel or replace. Loop-confined.
///
/// Jobs for one schedule are done one after the other, so that a request finds what the one before it has made. A request that cancels all
/// waits for the earlier ones of its target, and the later ones wait for it.
final class ScheduleStage: Stage {
  private let applier: ScheduleApplier
  private let zones: TimeZones
  /// The requests of each schedule that wait, in their order. The first one is under way.
  private var waiting: [ScheduleKey: [(record: ParkedRecord, content: RequestContent)]] = [:]
  private var unbegun: [ScheduleKey] = []
  /// Requests that cancel all of a target and are not done yet.
  private var cancels: [ParkedRecord: ScheduleKey] = [:]
  /// These, and the requests behind them, each with the earlier requests that it waits for.
  private var blocked: [(record: ParkedRecord, content: RequestContent, by: Set<ParkedRecord>)] = []
  private var isFlushing = false
  weak var owner: (any StageOwner)?

  init(_ applier: ScheduleApplier, _ zones: TimeZones) { (self.applier, self.zones) = (applier, zones) }

  /// A request with a job is shown to the stages in any case.
  var isActive: Bool { false }

  func take(_ record: ParkedRecord, _ content: RequestContent) -> StageAnswer {
    guard let job = content.schedule, job.isOpen else { return .pass(content) }
    var earlier = Set(cancels.filter { Self.isOneScope($0.value, job.key) }.keys)
    if case .cancelAll = job.purpose {
      earlier = requests(inScopeOf: job.key)
      cancels[record] = job.key
    }
    if earlier.isEmpty { append(record, content, job) } else { blocked.append((record, content, earlier)) }
    return .later
  }

  private func append(_ record: ParkedRecord, _ content: RequestContent, _ job: ScheduleJob) {
    waiting[job.key, default: []].append((record, content))
    if waiting[job.key]?.count == 1 { unbegun.append(job.key) }
  }

  private static func isOneScope(_ one: ScheduleKey, _ other: ScheduleKey) -> Bool {
    one.target == other.target && one.application == other.application
  }

  /// The requests that wait for a schedule of the same target for the same application.
  private func requests(inScopeOf scope: ScheduleKey) -> Set<ParkedRecord> {
    let jobs = waiting.filter { Self.isOneScope($0.key, scope) }.flatMap { $0.value.map(\.record) }
    let others = blocked.filter { $0.content.schedule.map { Self.isOneScope($0.key, scope) } ?? false }
    return Set(jobs + others.map(\.record))
  }

  /// Requests have ended or were dropped: what has waited for these only is begun at the next flush.
  private func unblock(_ records: Set<ParkedRecord>) {
    if !cancels.isEmpty { for record in records { cancels[record] = nil } }
    guard !blocked.isEmpty else { return }
    for place in blocked.indices { blocked[place].by.subtract(records) }
    for (record, content, by) in blocked where by.isEmpty { if let job = content.schedule { append(record, content, job) } }
    blocked.removeAll { $0.by.isEmpty }
  }

  /// Without a connection a job fails while it begins, and the next one of its schedule is begun by the loop, not by that: thousands may wait.
  func flush() {
    guard !isFlushing else { return }
    isFlushing = true
    while !unbegun.isEmpty {
      let keys = unbegun
      unbegun = []
      for key in keys { begin(key) }
    }
    isFlushing = false
  }

  /// One that is under way comes to its end. What it writes is right whoever does it, and nobody takes its answer.
  func drop(_ records: Set<ParkedRecord>) {
    for (key, requests) in waiting {
      let kept = requests.prefix(1) + requests.dropFirst().filter { !records.contains($0.record) }
      if kept.count < requests.count { waiting[key] = Array(kept) }
    }
    blocked.removeAll { records.contains($0.record) }
    unblock(records)
    flush()
  }

  // MARK: One job

  private func begin(_ key: ScheduleKey) {
    guard let (_, content) = waiting[key]?.first, let job = content.schedule else { return }
    switch job.purpose {
    case .timed(let pending, let trigger): schedule(job, pending, trigger, content)
    case .firing(let firing, let owner): fire(job, firing, owner, content)
    case .cancel: apply(job, .cancel)
    case .now: apply(job, .now)
    case .place: apply(job, .place)
    case .cancelAll:
      applier.cancelAll(job.reference, in: job.key) { [self] result in ended(job, result.map { .canceled($0) }) }
    case .expired: preconditionFailure("a request whose time is over asks no schedule")
    }
  }

  private func apply(_ job: ScheduleJob, _ kind: ScheduleJudge.Request.Kind) {
    applier.apply(.init(job.reference, kind), to: job.key) { [self] result in ended(job, result.map { .applied($0) }) }
  }

  /// A device's schedule belongs to the person that the device belongs to now.
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
    applier.apply(job.reference, scheduling: pending, to: job.key, zones: zonesReader(job.key)) { [self] result in
      ended(job, result.map { .applied($0) })
    }
  }

  private func zonesReader(_ key: ScheduleKey) -> ScheduleApplier.ZonesReader { { [zones] then in zones.read(of: key, then) } }

  private func fire(_ job: ScheduleJob, _ firing: ScheduleJudge.Firing, _ owner: UInt64, _ content: RequestContent) {
    let zones = firing.dueTime.zone == "" ? nil : zonesReader(job.key)
    guard owner != 0, case .device(let token) = content.receiver else { return fire(job, firing, isForAnother: false, zones) }
    content.arena.bytes.withUnsafeBytes { arena in
      self.zones.read(arena[token]) { [self] device in
        switch device {
        case .failure(let error): ended(job, .failure(error))
        case .success(let device): fire(job, firing, isForAnother: device.user != owner, zones)
        }
      }
    }
  }

  private func fire(_ job: ScheduleJob, _ firing: ScheduleJudge.Firing, isForAnother: Bool, _ zones: ScheduleApplier.ZonesReader?) {
    applier.apply(firing, to: job.key, zones: zones) { [self] result in
      ended(job, result.map { isForAnother ? .appliedForAnother($0) : .applied($0) })
    }
  }

  private func ended(_ job: ScheduleJob, _ answer: Result<ScheduleJob.Answer, StoreError>) {
    guard let (record, content) = waiting[job.key]?.removeFirst() else { return }
    if waiting[job.key]?.isEmpty == true { waiting[job.key] = nil } else { unbegun.append(job.key) }
    unblock([record])
    switch answer {
    case .success(let answer):
      job.answer = answer
      owner?.passed([(record, content)])
    case .failure(let error): owner?.failed(record, error)
    }
    flush()
  }
}
