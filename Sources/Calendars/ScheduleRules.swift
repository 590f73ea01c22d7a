public import Notifications

/// Decides what an event does to a schedule.
///
/// The record and the event go in; the verdict and the new record come out.
///
/// It has no clock and no connection. An event that is read again after a crash gets its first verdict, as long as the record remembers it.
public struct ScheduleRules {
  /// The calendar that computes due times.
  var times = DueTimes()
  /// How late an occurrence may fire if its repeating trigger sets no bound, in milliseconds.
  let late: Int64
  /// How long after its due time an occurrence with one attempt may fire, in milliseconds.
  let oneAttempt: Int64

  /// How many occurrences of a repeating trigger that are late are made up for. Older ones are skipped, however late the trigger allows.
  static let maximumBehind = 60

  /// Creates the rules with their bounds in milliseconds.
  ///
  /// By default a repeating trigger may be 15 minutes late, as on a phone, and one attempt takes half a minute.
  public init(late: Int64 = 900_000, oneAttempt: Int64 = 30_000) {
    (self.late, self.oneAttempt) = (max(late, 0), oneAttempt)
  }

  // MARK: Events and decisions

  /// A request for the identifier of a schedule.
  public struct Request {
    /// What it asks of the schedule.
    public enum Kind {
      /// Show the notification at a time. The rules compute the due times of `content` for these zones.
      case timed(content: ScheduleRecord.Pending, zones: [Name])
      /// Show nothing: the lifetime of a request with a time was over at its publication. It ends what is pending nevertheless.
      case expired
      /// Show the notification now.
      case now
      /// Show the notification at a location, which the devices evaluate.
      case place
      /// Cancel the pending request.
      case cancel
      /// Cancel this schedule as one of all. It leaves no trace if nothing is pending.
      case cancelAll

      fileprivate var isOfAll: Bool { if case .cancelAll = self { true } else { false } }
    }

    /// The request's revision and apns-id.
    public var reference: JournalReference
    /// What it asks of the schedule.
    var kind: Kind

    /// Creates a request from its parts.
    public init(_ reference: JournalReference, _ kind: Kind) { (self.reference, self.kind) = (reference, kind) }
  }

  /// A firing as its record says it. Any producer may have written it.
  public struct Firing {
    /// The revision of its record.
    public var revision: Revision
    /// The time of its record, in milliseconds since 1970.
    public var at: Int64
    /// The revision of the request that scheduled it.
    public var schedule: Revision
    /// The hash of the owner that it names.
    public var owner: UInt64
    /// The payload of its record.
    public var payload: [UInt8]
    /// What else its record says; nil if that is what the cluster writes.
    var written: Written?
    /// The due time that it fires.
    public var dueTime: ScheduleRecord.Pending.DueTime

    /// Creates a firing from its parts.
    public init(
      revision: Revision, at: Int64, schedule: Revision, owner: UInt64 = 0, payload: [UInt8] = [], written: Written? = nil,
      _ dueTime: ScheduleRecord.Pending.DueTime
    ) {
      (self.revision, self.at, self.schedule, self.dueTime) = (revision, at, schedule, dueTime)
      (self.owner, self.payload, self.written) = (owner, payload, written)
    }

    /// What a record of a firing says, besides which occurrence it is and what that shows.
    public struct Written {
      /// The apns-id of the schedule's request.
      var id: NotificationID
      /// Whether the trigger repeats.
      var repeats: Bool
      /// The headers that an occurrence takes over, and its expiration.
      var headers: [ScheduleRecord.Pending.Header]

      /// What a record says, of its parts.
      public init(id: NotificationID, repeats: Bool, headers: [ScheduleRecord.Pending.Header]) {
        (self.id, self.repeats, self.headers) = (id, repeats, headers)
      }
    }

    /// Whether it fires nothing, and only asks to adapt the schedule to its zones.
    var isOfNoOccurrence: Bool { dueTime.due == 0 && dueTime.name == 0 }
  }

  /// What becomes of a request or a firing.
  public enum Verdict {
    /// The request is scheduled.
    case scheduled
    /// The request is shown now.
    case passed
    /// The request canceled what was pending.
    case canceled
    /// The lifetime of the request was over at its publication. It may have ended what was pending.
    case expired
    /// The request found nothing to cancel: the schedule has ended, or never existed.
    case tooLate
    /// Another record had the same apns-id.
    case duplicate
    /// A newer request for the schedule came first.
    case stale(by: JournalReference)
    /// A newer request canceled all schedules before this request was read.
    case canceledBefore(by: JournalReference)
    /// The trigger is never due, or names an unknown zone.
    case rejected(Rejection)
    /// The fate of the occurrence that a firing asks for.
    case firing(ScheduleRecord.Firing.Fate)
    /// The firing does not fit the state of the schedule, and reaches nobody.
    case ignored
  }

  /// The decision on an event.
  public struct Decision {
    /// What becomes of the event.
    public var verdict: Verdict
    /// The record to write; nil if it is unchanged.
    public var record: ScheduleRecord?
    /// The pending request that this one superseded.
    public var superseded: JournalReference?
    /// The location request that the devices have to drop.
    public var withdrawn: JournalReference?
    /// Whether this event was decided before. The first reader may have died before it wrote the record to Kafka.
    public var isAgain = false
  }

  // MARK: Requests

  /// Decides what a request makes of a schedule.
  ///
  /// - Parameter floor: the newest request that canceled all schedules of the target.
  public mutating func decide(_ request: Request, _ record: ScheduleRecord?, floor: JournalReference? = nil) -> Decision {
    let superseded = record?.pending.flatMap { _ in record?.newest }
    var withdrawn = record?.placed
    // The notification replaces the location request at the devices.
    switch request.kind {
    case .now, .place: withdrawn = nil
    case .timed, .expired, .cancel, .cancelAll: break
    }
    let recent = ScheduleRecord.Recent(request.reference, superseded: superseded ?? withdrawn, isFromDevices: withdrawn != nil)
    let known = record?.recent.filter { $0.id == recent.id } ?? []
    if let same = known.last(where: { $0.source == recent.source }) { return again(request, same) }
    // Each record of a cancel of all raises the floor, and nothing below the floor fires. So a record with a known apns-id cancels, too.
    if !known.isEmpty, !request.kind.isOfAll { return Decision(verdict: .duplicate) }
    if case .place = request.kind, let floor, Self.isCanceled(request.reference, by: floor) {
      return Decision(verdict: .canceledBefore(by: floor))
    }
    if let newest = record?.newest, request.reference.revision.isOlder(than: newest.revision) {
      switch request.kind {
      case .now, .place: return Decision(verdict: .passed)
      case .expired: return Decision(verdict: .expired)
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
    case .cancel, .expired:
      // The request is remembered even without a schedule: it stops older requests that are read later.
      let isTooLate = superseded == nil && withdrawn == nil
      let isCancel = if case .cancel = request.kind { true } else { false }
      let ending: ScheduleRecord.Ending = isTooLate ? .unscheduled : isCancel ? .canceled : .replaced
      phase = isTooLate ? record?.phase ?? .ended(ending) : .ended(ending)
      verdict = isCancel ? isTooLate ? .tooLate : .canceled : .expired
    case .cancelAll:
      // The floor stops older requests that are read later.
      if superseded == nil && withdrawn == nil { return Decision(verdict: .tooLate) }
      (phase, verdict) = (.ended(.canceled), .canceled)
    }
    var new = changed(record ?? ScheduleRecord(newest: request.reference, serial: 0, phase))
    (new.newest, new.phase) = (request.reference, phase)
    new.recent = (new.recent + [recent]).suffix(ScheduleRecord.maximumRemembered)
    return Decision(verdict: verdict, record: new, superseded: superseded, withdrawn: withdrawn)
  }

  /// Repeats the decision on a request whose record was read before.
  private func again(_ request: Request, _ known: ScheduleRecord.Recent) -> Decision {
    let verdict: Verdict =
      switch request.kind {
      case .timed: .scheduled
      case .expired: .expired
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
    // A trigger without a due time is rejected. The check in one zone gives the reason.
    if pending.dueTimes.isEmpty { try times.check(trigger, requested: content.requested, deviceZone: zones[0]) }
    return pending
  }

  /// Returns the zones of a trigger's due times: the devices' if it depends on them.
  mutating func zonesOfDueTimes(_ trigger: TimedTrigger, _ zones: [Name]) -> [Name] {
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
  /// It adapts the schedule to the zones first. A firing that fits no due time can still have this effect.
  ///
  /// - Parameters:
  ///   - zones: the present zones of the devices if the due times depend on them; empty if there is no device.
  ///   - floor: the newest request that canceled all schedules of the target.
  public mutating func decide(
    _ firing: Firing, _ record: ScheduleRecord?, zones: [Name]? = nil, floor: JournalReference? = nil
  ) -> Decision {
    guard let record, record.newest.revision == firing.schedule, !Self.isCanceled(record.newest, by: floor),
      !record.firings.contains(where: { $0.revision.sharesPlace(with: firing.revision) })
    else { return decide(firing, on: record, floor: floor) }
    guard var adapted = adapted(record, toZones: zones, at: firing.at) else {
      var decision = decide(firing, on: record, floor: floor)
      if case .ignored = decision.verdict, zones != nil || firing.isOfNoOccurrence { decision.isAgain = true }
      return decision
    }
    // The firing and the zones make one change of the record.
    adapted.serial = record.serial
    var decision = decide(firing, on: adapted, floor: floor)
    decision.record = decision.record ?? changed(adapted)
    return decision
  }

  /// Decides what firings make of a schedule, one after the other. The first that changes it also adapts it to the zones.
  public mutating func decide(
    _ firings: [Firing], _ record: ScheduleRecord?, zones: [Name]? = nil, floor: JournalReference? = nil
  ) -> [Decision] {
    var (decisions, changed): ([Decision], ScheduleRecord?) = ([], nil)
    for firing in firings {
      if changed == nil {
        decisions.append(decide(firing, record, zones: zones, floor: floor))
      } else {
        decisions.append(decide(firing, on: changed, floor: floor))
      }
      changed = decisions.last?.record ?? changed
    }
    return decisions
  }

  /// Adapts a schedule to the zones of its devices and to the data of these zones; nil if it does not change.
  private mutating func adapted(_ record: ScheduleRecord, toZones zones: [Name]?, at now: Int64) -> ScheduleRecord? {
    let adapted = zones.flatMap { adapt(record, toZones: $0, at: now) }
    return recompute(adapted ?? record) ?? adapted
  }

  /// Whether a request is older than the cancel of all.
  private static func isCanceled(_ request: JournalReference, by floor: JournalReference?) -> Bool {
    floor.map { request.revision.isOlder(than: $0.revision) } ?? false
  }

  private mutating func decide(_ firing: Firing, on record: ScheduleRecord?, floor: JournalReference?) -> Decision {
    if let known = record?.firings.last(where: { $0.revision.sharesPlace(with: firing.revision) }), known.due == firing.dueTime.due,
      known.name == firing.dueTime.name
    {
      return Decision(verdict: .firing(known.fate), isAgain: true)
    }
    // The cancel of all is about to end the schedule.
    if let record, Self.isCanceled(record.newest, by: floor) { return Decision(verdict: .ignored) }
    guard let record, var pending = record.pending, record.newest.revision == firing.schedule, let trigger = pending.timedTrigger,
      let place = pending.dueTimes.firstIndex(where: { $0.isSame(as: firing.dueTime) }), firing.at >= pending.dueTimes[place].due,
      isOwn(firing, record.newest.id, pending, trigger, pending.dueTimes[place])
    else { return Decision(verdict: .ignored) }
    let time = pending.dueTimes[place]
    // In a zone that is no longer in the database nothing more is due.
    let (fate, next) = (try? fate(of: time, at: firing.at, pending, trigger)) ?? (.fired, nil)
    pending.dueTimes[place] = next.map { .init(zone: time.zone, due: $0.due, name: $0.name, previous: time.name) } ?? time.over
    var new = changed(record)
    new.phase = pending.earliest == nil ? .ended(fate == .expired ? .expired : .fired) : .pending(pending)
    new.firings = (new.firings + [.init(revision: firing.revision, due: time.due, name: time.name, fate)])
      .suffix(ScheduleRecord.maximumFirings(zones: pending.dueTimes.count))
    return Decision(verdict: .firing(fate), record: new)
  }

  /// Whether a firing shows what the cluster writes for this occurrence. Another producer's shows nothing of its own.
  private func isOwn(
    _ firing: Firing, _ id: NotificationID, _ pending: ScheduleRecord.Pending, _ trigger: TimedTrigger,
    _ time: ScheduleRecord.Pending.DueTime
  ) -> Bool {
    guard firing.payload == pending.payload, firing.owner == pending.owner else { return false }
    guard let written = firing.written else { return true }
    // Agents on the way may change the trace context.
    let own = pending.headers(of: time, oneAttempt: oneAttempt).filter { RequestHeader.named($0.name) != .traceparent }
    return written.id == id && written.repeats == trigger.repeats && firing.dueTime == time && written.headers.count == own.count
      && Set(written.headers) == Set(own)
  }

  /// Returns the fate of an occurrence that fires at a time, and the next occurrence.
  private mutating func fate(
    of time: ScheduleRecord.Pending.DueTime, at now: Int64, _ pending: ScheduleRecord.Pending, _ trigger: TimedTrigger
  ) throws(Rejection) -> (ScheduleRecord.Firing.Fate, DueTimes.Occurrence?) {
    let lateness = Timestamp.bounded(now) - time.due
    let isExpired = lateness > (pending.lifetime == 0 ? oneAttempt : pending.lifetime * 1000)
    guard trigger.repeats else { return (isExpired ? .expired : .fired, nil) }
    var bound = trigger.lateness(usual: late)
    // A repeating trigger is due each minute at most, so what is hardly late need not be counted.
    if lateness <= bound, lateness > Int64(Self.maximumBehind) * 60_000,
      let most = try mostToMakeUp(after: time, trigger, pending, before: now)
    {
      // The trigger is dated long ago, or the cluster stood still.
      bound = min(bound, most)
    } else if lateness <= bound {
      return (isExpired ? .expired : .fired, try following(time, trigger, pending, after: time.due))
    }
    // The next occurrence is the first that is not too late. The ones before it are skipped together.
    let next = try following(time, trigger, pending, after: max(time.due, now - bound - 1))
    let between = try times.count(
      of: trigger, requested: pending.requested, after: time.due, before: next?.due ?? now, deviceZone: time.zone)
    return (.skipped(1 + between), next)
  }

  /// Returns how long so many occurrences take as are made up for, by the first that are missing; nil if no more than these are.
  ///
  /// A search costs some time, so it looks at no more of them, however many there are.
  private mutating func mostToMakeUp(
    after time: ScheduleRecord.Pending.DueTime, _ trigger: TimedTrigger, _ pending: ScheduleRecord.Pending, before now: Int64
  ) throws(Rejection) -> Int64? {
    var moment = time.due
    for _ in 0...Self.maximumBehind {
      let next = try times.next(of: trigger, requested: pending.requested, after: moment, deviceZone: time.zone)
      guard let next, next.due < now else { return nil }
      moment = next.due
    }
    return (moment - time.due) / Int64(Self.maximumBehind + 1) * Int64(Self.maximumBehind)
  }

  /// Returns the first occurrence after a moment that has a later name, also where other data of the zone gave the former due time.
  private mutating func following(
    _ time: ScheduleRecord.Pending.DueTime, _ trigger: TimedTrigger, _ pending: ScheduleRecord.Pending, after moment: Int64
  ) throws(Rejection) -> DueTimes.Occurrence? {
    var moment = moment
    while let next = try times.next(of: trigger, requested: pending.requested, after: moment, deviceZone: time.zone) {
      if next.name > time.name { return next }
      moment = next.due
    }
    return nil
  }

  // MARK: Other events

  /// Ends a schedule that is pending or being evicted; nil if it has ended.
  public func end(_ record: ScheduleRecord, _ ending: ScheduleRecord.Ending) -> ScheduleRecord? {
    guard record.pending != nil || record.phase == .ended(.evicting) else { return nil }
    var new = changed(record)
    new.phase = .ended(ending)
    return new
  }

  func changed(_ record: ScheduleRecord) -> ScheduleRecord {
    var new = record
    new.serial &+= 1
    return new
  }
}

extension ScheduleRules.Decision {
  /// A decision that changes nothing.
  public init(_ verdict: ScheduleRules.Verdict) { self.init(verdict: verdict) }
}

extension TimedTrigger {
  /// Whether its due times depend on the zones of its devices.
  public var dependsOnDevices: Bool { if case .calendar(_, zone: nil) = rule { true } else { false } }
}

extension ScheduleRecord.Pending.DueTime {
  /// Whether a firing means this due time, which is not over.
  fileprivate func isSame(as other: Self) -> Bool { !isOver && zone == other.zone && due == other.due && name == other.name }

  /// The due time after its last occurrence.
  fileprivate var over: Self { Self(zone: zone, due: due, name: name, previous: name) }
}
