public import Notifications

/// The zones of a schedule's due times, which change when devices travel and when the data of the zones change.
extension ScheduleRules {
  /// Adapts a schedule to the zones of its devices; nil if it does not change.
  ///
  /// A new zone gets a due time. A zone without devices loses its due time. In a new zone a one-off trigger whose time has passed is due at
  /// once. So is the latest occurrence of a repeating trigger if it has fired in no zone and is not too late. A device that has shown the
  /// occurrence already knows its apns-id.
  ///
  /// - Parameters:
  ///   - zones: the zones of the devices; without devices the schedule is unchanged.
  ///   - now: milliseconds since 1970.
  public mutating func adapt(_ record: ScheduleRecord, toZones zones: [Name], at now: Int64) -> ScheduleRecord? {
    guard !zones.isEmpty, var pending = record.pending, let trigger = pending.timedTrigger, trigger.dependsOnDevices else { return nil }
    let zones = zonesOfDueTimes(trigger, zones)
    var standing = pending.dueTimes.filter { zones.contains($0.zone) }
    for zone in zones where !standing.contains(where: { $0.zone == zone }) {
      if let time = firstDueTime(of: trigger, pending, in: zone, at: Timestamp.bounded(now)) { standing.append(time) }
    }
    guard standing != pending.dueTimes else { return nil }
    // The devices of the zone that was not yet due are in one of these zones now, and have not shown the occurrence.
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
    if trigger.repeats, let latest = latest(of: trigger, pending, in: zone, at: now), latest.name > fired {
      return .init(zone: zone, due: latest.due, name: latest.name)
    }
    let moment = trigger.repeats ? now : pending.requested
    let next = try? times.next(of: trigger, requested: pending.requested, after: moment, deviceZone: zone)
    return next.map { .init(zone: zone, due: $0.due, name: $0.name) }
  }

  /// The latest occurrence until now; nil if each is too late.
  private mutating func latest(of trigger: TimedTrigger, _ pending: ScheduleRecord.Pending, in zone: Name, at now: Int64)
    -> DueTimes.Occurrence?
  {
    let earliest = now - trigger.lateness(usual: late) - 1
    return try? times.last(of: trigger, requested: pending.requested, after: earliest, until: now, deviceZone: zone)
  }

  /// Computes the due times of a schedule again; nil if they are the same.
  ///
  /// They differ if another version of the time zone database gave them.
  public mutating func recompute(_ record: ScheduleRecord) -> ScheduleRecord? {
    guard var pending = record.pending, let trigger = pending.timedTrigger, case .calendar = trigger.rule else { return nil }
    for place in pending.dueTimes.indices where !pending.dueTimes[place].isOver {
      let time = pending.dueTimes[place]
      // A due time that no longer exists stays, so that the occurrence is shown.
      let found = try? times.again(
        .init(due: time.due, name: time.name), of: trigger, requested: pending.requested, deviceZone: time.zone)
      if let found { (pending.dueTimes[place].due, pending.dueTimes[place].name) = (found.due, found.name) }
    }
    guard pending.dueTimes != record.pending?.dueTimes else { return nil }
    var new = changed(record)
    new.phase = .pending(pending)
    return new
  }

  /// Whether a schedule's due times do not fit the zone of a device.
  ///
  /// They have no time for the zone, or times for others although the schedule is for this device alone.
  public mutating func isMissing(_ zone: Name, in record: ScheduleRecord, isOnly: Bool) -> Bool {
    guard let pending = record.pending, let trigger = pending.timedTrigger, trigger.dependsOnDevices else { return false }
    let (zones, known) = (zonesOfDueTimes(trigger, [zone]), pending.dueTimes.map(\.zone))
    return isOnly ? known != zones : zones.contains { !known.contains($0) }
  }
}
