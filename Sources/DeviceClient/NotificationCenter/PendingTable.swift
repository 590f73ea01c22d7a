internal import Calendars
internal import Notifications

/// The notifications that wait for a time or a place, in the order in which they were added. A value without a clock.
///
/// Times are the device's own, in milliseconds since 1970: of a time interval by the clock that counts elapsed time, else by the one on the
/// wall. At most ``limit`` wait, and at most ``locationLimit`` of them for a place: the last added stay. If several
/// occurrences of a repeating trigger are due together, only the latest is shown, unless it is late by more than ``late``. A one-off is shown
/// however late it is. It is dropped when another zone has passed its time, so that it is never due.
struct PendingTable {
  /// A notification that waits.
  struct Entry: Sendable, Equatable {
    var notification: DeliveredNotification
    /// The time from which its occurrences are counted: when it was added.
    var anchor: Int64
    /// The time after which the next occurrence is searched: the last one, or when it was added.
    var after: Int64
  }

  /// What has become due.
  struct Due {
    /// The notifications to show, in the order of their due times.
    var notifications: [DeliveredNotification] = []
    /// The entries that wait for a later occurrence.
    var changed: [Entry] = []
    /// The entries that are over.
    var ended: [Name] = []
    /// The one-offs that are never due, since the zone or the clock has passed their time.
    var missed: [Name] = []
  }

  /// How many may wait.
  static let limit = 64
  /// How many of them may wait for a place.
  static let locationLimit = 20
  /// How late an occurrence of a repeating trigger is shown, in milliseconds.
  static let late: Int64 = 900_000

  private(set) var entries: [Entry] = []
  private var triggers: [Name: TimedTrigger] = [:]
  private let limit: Int
  private var times = DueTimes(capacity: 64)

  /// - Parameter limit: how many may wait.
  init(limit: Int = PendingTable.limit) { self.limit = max(limit, 1) }

  subscript(identifier: Name) -> Entry? { entries.first { $0.notification.identifier == identifier } }

  // MARK: Adding and removing

  /// Checks what only a calendar knows of a trigger: that it has a time zone that exists, and is due at all.
  mutating func check(_ trigger: TimedTrigger, now: LocalTime, zone: Name) throws(Rejection) {
    try times.check(trigger, requested: now.by(trigger), deviceZone: known(zone))
  }

  /// Adds an entry at the end, in place of the former one of its identifier; returns the identifiers that had to go.
  mutating func add(_ entry: Entry) -> [Name] {
    _ = remove([entry.notification.identifier])
    entries.append(entry)
    triggers[entry.notification.identifier] = entry.notification.frame.timedTrigger
    var removed: [Name] = []
    func isLocation(_ entry: Entry) -> Bool { triggers[entry.notification.identifier] == nil }
    if isLocation(entry), entries.count(where: isLocation) > Self.locationLimit, let oldest = entries.first(where: isLocation) {
      removed.append(oldest.notification.identifier)
    } else if entries.count > limit, let oldest = entries.first {
      removed.append(oldest.notification.identifier)
    }
    return remove(removed)
  }

  /// Removes entries; returns the identifiers of those that waited.
  mutating func remove(_ identifiers: [Name]) -> [Name] {
    let removed = entries.map(\.notification.identifier).filter { identifiers.contains($0) }
    guard !removed.isEmpty else { return [] }
    entries.removeAll { removed.contains($0.notification.identifier) }
    for identifier in removed { triggers[identifier] = nil }
    return removed
  }

  // MARK: Time

  /// The milliseconds until the next due time, in a time zone for the triggers that name none; nil if none will come.
  mutating func wait(now: LocalTime, zone: Name) -> Int64? {
    var earliest: Int64?
    for entry in entries {
      guard let due = next(entry, after: entry.after, zone) else { continue }
      let wait = max(due, 0) - min(max(due, 0), now.by(triggers[entry.notification.identifier]))
      earliest = min(earliest ?? wait, wait)
    }
    return earliest
  }

  /// The next due time of an entry by the clock on the wall; nil if none waits, or if it waits for a place.
  mutating func next(of identifier: Name, now: LocalTime, zone: Name) -> Int64? {
    guard let entry = self[identifier], let due = next(entry, after: entry.after, zone) else { return nil }
    return due &+ now.wall &- now.by(triggers[identifier])
  }

  /// Takes the time; returns what has become due.
  ///
  /// After a clock was set back its occurrences are counted from the present time, so that none waits for the time that was undone.
  mutating func take(now time: LocalTime, zone: Name) -> Due {
    var due = Due()
    var shown: [(late: Int64, place: Int, notification: DeliveredNotification)] = []
    for index in entries.indices {
      let former = entries[index]
      guard let trigger = triggers[former.notification.identifier] else { continue }
      let now = time.by(trigger)
      if now < former.after { (entries[index].anchor, entries[index].after) = (now, now) }
      let first = next(entries[index], after: entries[index].after, zone)
      if first == nil, !trigger.repeats, isKnown(trigger, zone) {
        due.missed.append(former.notification.identifier)
        continue
      }
      if let first, first <= now {
        // Occurrences that are too late are passed over together.
        let moment = max(entries[index].after, now - trigger.lateness(usual: Self.late) - 1)
        let latest = trigger.repeats ? last(entries[index], trigger, after: moment, until: now, zone) : first
        if let latest { shown.append((now &- latest, index, former.notification)) }
        entries[index].after = latest ?? moment
      }
      let isOver = trigger.repeats ? next(entries[index], after: entries[index].after, zone) == nil : entries[index].after >= first ?? .max
      if isOver { due.ended.append(former.notification.identifier) } else if entries[index] != former { due.changed.append(entries[index]) }
    }
    _ = remove(due.ended + due.missed)
    due.notifications = shown.sorted { ($1.late, $0.place) < ($0.late, $1.place) }.map(\.notification)
    return due
  }

  private mutating func next(_ entry: Entry, after moment: Int64, _ zone: Name) -> Int64? {
    guard let trigger = triggers[entry.notification.identifier] else { return nil }
    return (try? times.next(of: trigger, requested: entry.anchor, after: moment, deviceZone: known(zone)))?.due
  }

  private mutating func last(_ entry: Entry, _ trigger: TimedTrigger, after moment: Int64, until now: Int64, _ zone: Name) -> Int64? {
    (try? times.last(of: trigger, requested: entry.anchor, after: moment, until: now, deviceZone: known(zone)))?.due
  }

  /// Whether the time zone database has the zone of a trigger. Another version of it may.
  private mutating func isKnown(_ trigger: TimedTrigger, _ zone: Name) -> Bool {
    guard case .calendar(_, let own) = trigger.rule else { return true }
    return times.isZone(own ?? known(zone))
  }

  /// A zone, or the default one for a name that the time zone database does not have.
  mutating func known(_ zone: Name) -> Name { times.isZone(zone) ? zone : DueTimes.defaultZone }
}
