public import Notifications

/// Decides what becomes of a schedule: its record and an event in, the verdict and the record to write out.
///
/// It has no clock and no connection. What is read again after a crash gets the verdict of the first time, as long as the record remembers it.
public struct ScheduleJudge {
  /// When triggers are due.
  public var times: DueTimes
  /// How late an occurrence of a repeating trigger may fire that says nothing of its own, in milliseconds.
  public let late: Int64

  /// A judge with the cluster's bound of lateness, in milliseconds: 15 minutes, as on a phone.
  public init(times: DueTimes = DueTimes(), late: Int64 = 900_000) { (self.times, self.late) = (times, max(late, 0)) }

  // MARK: What comes in and goes out

  /// A request for the identifier of a schedule.
  public struct Request {
    /// What it asks of the schedule.
    public enum Kind {
      /// Something to show at a time. The due times of `content` are not looked at: they are computed, for the devices' zones.
      case timed(content: ScheduleRecord.Pending, zones: [Name])
      /// Something to show now.
      case now
      /// Something to show at a place, which the devices evaluate.
      case place
      /// What is pending is not to be shown.
      case cancel
      /// The same, of all that is pending: where nothing is, it leaves no trace.
      case cancelAll
    }

    /// Its revision and apns-id.
    public var reference: JournalReference
    /// What it asks of the schedule.
    public var kind: Kind

    /// A request of its parts.
    public init(_ reference: JournalReference, _ kind: Kind) { (self.reference, self.kind) = (reference, kind) }
  }

  /// A firing as its record says it. Anybody may have written it.
  public struct Firing {
    /// The revision of its record.
    public var revision: Revision
    /// The time of its record, in milliseconds since 1970.
    public var at: Int64
    /// The revision of the request that scheduled it.
    public var schedule: Revision
    /// The due time that it fires.
    public var dueTime: ScheduleRecord.Pending.DueTime

    /// A firing of its parts.
    public init(revision: Revision, at: Int64, schedule: Revision, _ dueTime: ScheduleRecord.Pending.DueTime) {
      (self.revision, self.at, self.schedule, self.dueTime) = (revision, at, schedule, dueTime)
    }
  }

  /// What becomes of a request or a firing.
  public enum Verdict {
    /// The request is scheduled.
    case scheduled
    /// The request is to be shown now, whatever is scheduled.
    case passed
    /// The request canceled what was pending.
    case canceled
    /// Nothing is pending that the request could cancel: it has ended, or there was none.
    case tooLate
    /// The same apns-id came before, from another record.
    case duplicate
    /// A newer request has decided already.
    case stale(by: JournalReference)
    /// A newer request has canceled all that is older.
    case canceledBefore(by: JournalReference)
    /// Its trigger is never due, or names a zone that there is not.
    case rejected(Rejection)
    /// A firing: what becomes of its occurrence.
    case firing(ScheduleRecord.Firing.Fate)
    /// A firing that does not fit how the schedule stands: it reaches nobody.
    case ignored
  }

  /// The outcome of an event.
  public struct Decision {
    /// What becomes of it.
    public var verdict: Verdict
    /// The record to write; nil where it stays as it is.
    public var record: ScheduleRecord?
    /// The pending request that this one superseded.
    public var superseded: JournalReference?
    /// The request for a place that the devices have to drop.
    public var withdrawn: JournalReference?
    /// Whether the event's record was read before. Who read it then may have ended before it wrote the record.
    public var isAgain = false
  }

  // MARK: Requests

  /// Decides what a request makes of a schedule.
  ///
  /// - Parameter floor: the newest request that has canceled all that was pending of the target.
  public mutating func judge(_ request: Request, _ record: ScheduleRecord?, floor: JournalReference? = nil) -> Decision {
    let superseded = record?.pending.flatMap { _ in record?.newest }
    var withdrawn = record?.placed
    // The notification itself takes its place at the devices.
    switch request.kind {
    case .now, .place: withdrawn = nil
    case .timed, .cancel, .cancelAll: break
    }
    let recent = ScheduleRecord.Recent(request.reference, superseded: superseded ?? withdrawn, isFromDevices: withdrawn != nil)
    if let known = record?.recent.last(where: { $0.id == recent.id }) {
      return known.source == recent.source ? again(request, known) : Decision(verdict: .duplicate)
    }
    if case .place = request.kind, let floor, Self.isCanceled(request.reference, by: floor) {
      return Decision(verdict: .canceledBefore(by: floor))
    }
    if let newest = record?.newest, request.reference.revision.isOlder(than: newest.revision) {
      switch request.kind {
      case .now, .place: return Decision(verdict: .passed)
      case .timed, .cancel, .cancelAll: return Decision(verdict: .stale(by: newest))
      }
    }
    let phase: ScheduleRecord.Phase
    let verdict: Verdict
    switch request.kind {
    case .timed(let content, let zones):
      if let floor, Self.isCanceled(request.reference, by: floor) { return Decision(verdict: .canceledBefore(by: floor)) }
      do throws(Rejection) { phase = .pending(try scheduled(content, zones)) } catch { return Decision(verdict: .rejected(error)) }
      verdict = .scheduled
    case .now:
      // Most requests have no schedule, and leave no trace here.
      if superseded == nil, record?.placed == nil { return Decision(verdict: .passed) }
      (phase, verdict) = (.ended(.replaced), .passed)
    case .place: (phase, verdict) = (.ended(.placed), .passed)
    case .cancel:
      // Written also where there is nothing: what an older request asks that comes later has no effect.
      let isTooLate = superseded == nil && withdrawn == nil
      if let record, isTooLate { phase = record.phase } else { phase = .ended(isTooLate ? .unscheduled : .canceled) }
      verdict = isTooLate ? .tooLate : .canceled
    case .cancelAll:
      // What an older request asks that comes later is barred by the floor.
      if superseded == nil && withdrawn == nil { return Decision(verdict: .tooLate) }
      (phase, verdict) = (.ended(.canceled), .canceled)
    }
    var new = changed(record ?? ScheduleRecord(newest: request.reference, serial: 0, phase))
    (new.newest, new.phase) = (request.reference, phase)
    new.recent = (new.recent + [recent]).suffix(ScheduleRecord.maximumRemembered)
    return Decision(verdict: verdict, record: new, superseded: superseded, withdrawn: withdrawn)
  }

  /// The decision on a request whose record was read before.
  private func again(_ request: Request, _ known: ScheduleRecord.Recent) -> Decision {
    let verdict: Verdict =
      switch request.kind {
      case .timed: .scheduled
      case .now, .place: .passed
      case .cancel, .cancelAll: known.superseded != nil ? .canceled : .tooLate
      }
    return Decision(
      verdict: verdict, superseded: known.isFromDevices ? nil : known.superseded, withdrawn: known.isFromDevices ? known.superseded : nil,
      isAgain: true)
  }

  private mutating func scheduled(_ content: ScheduleRecord.Pending, _ zones: [Name]) throws(Rejection) -> ScheduleRecord.Pending {
    guard let trigger = content.timedTrigger else {
      throw Rejection(.badRequestParams, field: "trigger", rule: "Only a trigger that is due at a time is scheduled.")
    }
    let zones = zonesOfDueTimes(trigger, zones)
    var pending = content
    pending.dueTimes = try dueTimes(of: trigger, requested: content.requested, after: content.requested, in: zones)
    // With at least one zone a trigger is due in, or the rejection says why it is due in none.
    if pending.dueTimes.isEmpty { try times.check(trigger, requested: content.requested, deviceZone: zones[0]) }
    return pending
  }

  /// The zones that a trigger has due times in: those of the devices only where it depends on them.
  private mutating func zonesOfDueTimes(_ trigger: TimedTrigger, _ zones: [Name]) -> [Name] {
    switch trigger.rule {
    case .interval, .calendar(_, _?): return [""]
    case .calendar(_, nil):
      var known: [Name] = []
      for zone in zones {
        let zone = times.isZone(zone) ? zone : DueTimes.defaultZone
        if !known.contains(zone), known.count < ScheduleRecord.Pending.maximumZones { known.append(zone) }
      }
      return known.isEmpty ? [DueTimes.defaultZone] : known
    }
  }

  private mutating func dueTimes(of trigger: TimedTrigger, requested: Int64, after moment: Int64, in zones: [Name]) throws(Rejection)
    -> [ScheduleRecord.Pending.DueTime]
  {
    var dueTimes: [ScheduleRecord.Pending.DueTime] = []
    for zone in zones {
      guard let next = try times.next(of: trigger, requested: requested, after: moment, deviceZone: zone) else { continue }
      dueTimes.append(.init(zone: zone, due: next.due, name: next.name))
    }
    return dueTimes
  }

  // MARK: Firings

  /// Decides what a firing makes of a schedule.
  ///
  /// The schedule is adapted to the zones first. A firing that fits no due time may do this alone.
  ///
  /// - Parameters:
  ///   - zones: those of the devices now, where the due times depend on these; empty where there is no device.
  ///   - floor: the newest request that has canceled all that was pending of the target.
  public mutating func judge(
    _ firing: Firing, _ record: ScheduleRecord?, zones: [Name]? = nil, floor: JournalReference? = nil
  ) -> Decision {
    guard let record, let zones, record.newest.revision == firing.schedule, !Self.isCanceled(record.newest, by: floor),
      !record.firings.contains(where: { $0.revision == firing.revision })
    else { return judge(firing, on: record, floor: floor) }
    guard var adapted = adapt(record, toZones: zones, at: firing.at) else {
      var decision = judge(firing, on: record, floor: floor)
      if case .ignored = decision.verdict { decision.isAgain = true }
      return decision
    }
    // The firing and the zones make one change.
    adapted.serial = record.serial
    var decision = judge(firing, on: adapted, floor: floor)
    decision.record = decision.record ?? changed(adapted)
    return decision
  }

  /// Whether a request is older than the one that has canceled all.
  private static func isCanceled(_ request: JournalReference, by floor: JournalReference?) -> Bool {
    floor.map { request.revision.isOlder(than: $0.revision) } ?? false
  }

  private mutating func judge(_ firing: Firing, on record: ScheduleRecord?, floor: JournalReference?) -> Decision {
    if let known = record?.firings.last(where: { $0.revision == firing.revision }) {
      return Decision(verdict: .firing(known.fate), isAgain: true)
    }
    // The cancel of all ends it in a moment.
    if let record, Self.isCanceled(record.newest, by: floor) { return Decision(verdict: .ignored) }
    guard let record, var pending = record.pending, record.newest.revision == firing.schedule, let trigger = pending.timedTrigger,
      let place = pending.dueTimes.firstIndex(where: { $0.isSame(as: firing.dueTime) }), firing.at >= pending.dueTimes[place].due
    else { return Decision(verdict: .ignored) }
    let time = pending.dueTimes[place]
    // A zone that the database has no more is one in which nothing is due.
    let (fate, next) = (try? fate(of: time, at: firing.at, pending, trigger)) ?? (.fired, nil)
    pending.dueTimes[place] = next.map { .init(zone: time.zone, due: $0.due, name: $0.name, previous: time.name) } ?? time.over
    var new = changed(record)
    new.phase = pending.earliest == nil ? .ended(fate == .expired ? .expired : .fired) : .pending(pending)
    new.firings = (new.firings + [.init(revision: firing.revision, due: time.due, name: time.name, fate)])
      .suffix(ScheduleRecord.maximumRemembered)
    return Decision(verdict: .firing(fate), record: new)
  }

  /// What becomes of an occurrence that is fired at a time, and the occurrence after it.
  private mutating func fate(
    of time: ScheduleRecord.Pending.DueTime, at now: Int64, _ pending: ScheduleRecord.Pending, _ trigger: TimedTrigger
  ) throws(Rejection) -> (ScheduleRecord.Firing.Fate, DueTimes.Occurrence?) {
    let lateness = Timestamp.bounded(now) - time.due
    let isExpired = pending.lifetime > 0 && lateness > pending.lifetime * 1000
    guard trigger.repeats else { return (isExpired ? .expired : .fired, nil) }
    let bound = trigger.late ?? late
    if lateness <= bound {
      let next = try times.next(of: trigger, requested: pending.requested, after: time.due, deviceZone: time.zone)
      return (isExpired ? .expired : .fired, next)
    }
    // The first one that is not too late; those before it are skipped together.
    let next = try times.next(of: trigger, requested: pending.requested, after: max(time.due, now - bound - 1), deviceZone: time.zone)
    let between = try times.count(
      of: trigger, requested: pending.requested, after: time.due, before: next?.due ?? now, deviceZone: time.zone)
    return (.skipped(1 + between), next)
  }

  // MARK: Other events

  /// Ends a schedule that is pending, or whose eviction is told now; nil where nothing is to be written.
  public func end(_ record: ScheduleRecord, _ ending: ScheduleRecord.Ending) -> ScheduleRecord? {
    guard record.pending != nil || record.phase == .ended(.evicting) else { return nil }
    var new = changed(record)
    new.phase = .ended(ending)
    return new
  }

  // MARK: Zones

  /// Adapts a schedule to the zones of its devices; nil where nothing is to be written.
  ///
  /// A zone that is new gets a due time, and one that no device has any more loses it. In a new zone a one-off that is over is due at once,
  /// and a repeating one whose latest occurrence has fired nowhere and is not too late: who has been shown it has its apns-id.
  ///
  /// - Parameters:
  ///   - zones: those of the devices; where there is no device, the schedule stays as it is.
  ///   - now: milliseconds since 1970.
  public mutating func adapt(_ record: ScheduleRecord, toZones zones: [Name], at now: Int64) -> ScheduleRecord? {
    guard !zones.isEmpty, var pending = record.pending, let trigger = pending.timedTrigger, trigger.dependsOnDevices else { return nil }
    let zones = zonesOfDueTimes(trigger, zones)
    var standing = pending.dueTimes.filter { zones.contains($0.zone) }
    for zone in zones where !standing.contains(where: { $0.zone == zone }) {
      if let time = firstDueTime(of: trigger, pending, in: zone, at: Timestamp.bounded(now)) { standing.append(time) }
    }
    guard standing != pending.dueTimes else { return nil }
    // The devices of the zone that was still to come are in one of these now, and have not been shown it.
    if !standing.contains(where: { !$0.isOver }), let place = standing.indices.last { standing[place].previous = 0 }
    pending.dueTimes = standing
    var adapted = changed(record)
    adapted.phase = standing.isEmpty ? .ended(.never) : .pending(pending)
    return adapted
  }

  private mutating func firstDueTime(of trigger: TimedTrigger, _ pending: ScheduleRecord.Pending, in zone: Name, at now: Int64)
    -> ScheduleRecord.Pending.DueTime?
  {
    let fired = pending.dueTimes.map(\.previous).max() ?? 0
    var moment = trigger.repeats ? now - (trigger.late ?? late) - 1 : pending.requested
    for tries in 0...Self.maximumPassed {
      if tries == Self.maximumPassed { moment = max(moment, now) }
      guard let next = try? times.next(of: trigger, requested: pending.requested, after: moment, deviceZone: zone) else { return nil }
      if !trigger.repeats || next.due > now || next.name > fired { return .init(zone: zone, due: next.due, name: next.name) }
      moment = next.due
    }
    return nil
  }

  /// How many occurrences that have fired elsewhere are passed over one by one.
  private static let maximumPassed = 32

  /// Whether a schedule lacks a due time in the zone of a device, or has due times in others though it is for this device alone.
  public mutating func lacks(_ record: ScheduleRecord, zone: Name, isOnly: Bool) -> Bool {
    guard let pending = record.pending, let trigger = pending.timedTrigger, trigger.dependsOnDevices else { return false }
    let (zones, known) = (zonesOfDueTimes(trigger, [zone]), pending.dueTimes.map(\.zone))
    return isOnly ? known != zones : zones.contains { !known.contains($0) }
  }

  private func changed(_ record: ScheduleRecord) -> ScheduleRecord {
    var new = record
    new.serial &+= 1
    return new
  }
}

extension ScheduleJudge.Decision {
  /// A decision that changes nothing.
  public init(_ verdict: ScheduleJudge.Verdict) { self.init(verdict: verdict) }
}

extension TimedTrigger {
  /// Whether its due times depend on the zones of its devices.
  public var dependsOnDevices: Bool { if case .calendar(_, zone: nil) = rule { true } else { false } }
}

extension ScheduleRecord.Pending.DueTime {
  /// Whether a firing means this due time, and it has not passed.
  fileprivate func isSame(as other: Self) -> Bool { !isOver && zone == other.zone && due == other.due && name == other.name }

  /// The same when its occurrence has passed, and none follows.
  fileprivate var over: Self { Self(zone: zone, due: due, name: name, previous: name) }
}
