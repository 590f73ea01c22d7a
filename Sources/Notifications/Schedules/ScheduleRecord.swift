/// The state of a schedule, as the topic `notifications.schedule` and Redis keep it.
///
/// The topic is compacted. Of two records the one with the newer ``newest`` request counts, then the one with the higher ``serial``. An
/// ended schedule keeps a record, so that an older request that is read later schedules nothing.
public struct ScheduleRecord: Sendable, Hashable {
  /// Whether the schedule is pending or has ended.
  public enum Phase: Sendable, Hashable {
    /// Occurrences are still due.
    case pending(Pending)
    /// No more occurrences are due.
    case ended(Ending)
  }

  /// Why a schedule has ended. The raw value is part of the layout: never renumber.
  public enum Ending: UInt8, Sendable, CaseIterable {
    /// All its occurrences have fired or were skipped.
    case fired = 1
    /// A newer request with the same identifier replaced it.
    case replaced = 2
    /// A request canceled it.
    case canceled = 3
    /// Its last occurrence fired after its lifetime.
    case expired = 4
    /// The target had too many schedules, and this was the oldest.
    case evicted = 5
    /// It is not due in any zone of its devices.
    case never = 7
    /// The newest request has a location trigger. Its devices have it or will get it.
    case placed = 8
    /// A cancel or an expired request came before any request scheduled it. Only Redis keeps this.
    case unscheduled = 9
    /// The target had too many schedules, and this was the oldest. The event is not emitted yet.
    case evicting = 10
  }

  /// A request that was applied recently.
  public struct Recent: Sendable, Hashable {
    /// The hash of the request's apns-id.
    public var id: UInt64
    /// A hash of the record's first place. Another record with the same id is a duplicate.
    public var source: UInt32
    /// The pending request that it superseded.
    public var superseded: JournalReference?
    /// Whether the superseded request has a location trigger.
    ///
    /// Its devices have it or will get it.
    public var isFromDevices: Bool

    /// Creates a recent request from its parts.
    public init(id: UInt64, source: UInt32, superseded: JournalReference?, isFromDevices: Bool = false) {
      (self.id, self.source, self.superseded, self.isFromDevices) = (id, source, superseded, isFromDevices)
    }

    /// Creates a recent request from its revision and apns-id.
    public init(_ request: JournalReference, superseded: JournalReference?, isFromDevices: Bool = false) {
      // Without the time: that of a record that comes again may be earlier.
      let source = UInt32(truncatingIfNeeded: request.revision.withBytes { StableHash.hash($0.dropping(8)) })
      self.init(id: request.id.hash64, source: source, superseded: superseded, isFromDevices: isFromDevices)
    }
  }

  /// A firing that was applied recently. If its record is read again, it gets the same fate.
  public struct Firing: Sendable, Hashable {
    /// The result of a firing.
    public enum Fate: Sendable, Hashable {
      /// The occurrence passed to the devices.
      case fired
      /// The occurrence fired after its lifetime.
      case expired
      /// The firing was too late for a number of occurrences, at least 1.
      case skipped(Int)
    }

    /// The revision of the firing's record.
    public var revision: Revision
    /// When the occurrence was due, in milliseconds since 1970.
    public var due: Int64
    /// The name of the occurrence.
    public var name: Int64
    /// The result of the firing.
    public var fate: Fate

    /// Creates a firing from its parts.
    public init(revision: Revision, due: Int64, name: Int64, _ fate: Fate = .fired) {
      (self.revision, self.due, self.name, self.fate) = (revision, due, name, fate)
    }
  }

  /// The maximum number of requests that a record remembers.
  public static var maximumRemembered: Int { 8 }

  /// Returns how many firings a record remembers that has due times in so many zones.
  ///
  /// All of them may be due at one instant. After a crash all of these firings are read again.
  public static func maximumFirings(zones: Int) -> Int { max(maximumRemembered, zones) }

  /// The newest request that was applied. The one that scheduled it, if the schedule is pending.
  public var newest: JournalReference
  /// The number of changes. A writer names the state that it replaces by it.
  public var serial: UInt32
  /// Whether the schedule is pending or has ended.
  public var phase: Phase
  /// The recent requests, oldest first; at most ``maximumRemembered``.
  public var recent: [Recent]
  /// The recent firings, oldest first; at most ``maximumFirings(zones:)``.
  public var firings: [Firing]

  /// Creates a record from its parts.
  public init(
    newest: JournalReference, serial: UInt32 = 1, _ phase: Phase, recent: [Recent] = [],
    firings: [Firing] = []
  ) {
    (self.newest, self.serial, self.phase, self.recent, self.firings) = (newest, serial, phase, recent, firings)
  }

  /// Whether this record of the schedule counts, rather than another one.
  ///
  /// Of two equally new records the one at the later offset counts.
  public func isNewer(than other: ScheduleRecord) -> Bool {
    if newest.revision.sharesPlace(with: other.newest.revision) { return serial > other.serial }
    return other.newest.revision.isOlder(than: newest.revision)
  }

  /// The newest request if it has a location trigger; else nil.
  public var placed: JournalReference? { phase == .ended(.placed) ? newest : nil }

  /// Whether the topic has the record. It has none of a schedule that no request has scheduled.
  public var isPublished: Bool { phase != .ended(.unscheduled) }

  /// The content of a pending schedule; nil if the schedule has ended.
  public var pending: Pending? { if case .pending(let pending) = phase { pending } else { nil } }
}

extension ScheduleRecord {
  /// The content of a pending schedule: what fires, and when.
  public struct Pending: Sendable, Hashable {
    /// The next due time in one time zone.
    public struct DueTime: Sendable, Hashable {
      /// The zone; empty if the due time does not depend on one.
      public var zone: Name
      /// The due time, in milliseconds since 1970.
      public var due: Int64
      /// The name of the occurrence.
      public var name: Int64
      /// The name of the previous occurrence; 0 if there was none. It equals `name` when no more is due in this zone.
      public var previous: Int64

      /// Whether no more is due in this zone, while other zones still have due times.
      public var isOver: Bool { previous == name }

      /// Creates a due time from its parts.
      public init(zone: Name, due: Int64, name: Int64, previous: Int64 = 0) {
        (self.zone, self.due, self.name, self.previous) = (zone, due, name, previous)
      }
    }

    /// A header of the request as it was published.
    public struct Header: Sendable, Hashable {
      /// The header's name.
      public var name: Name
      /// The header's value.
      public var value: [UInt8]

      /// Creates a header from its parts.
      public init(name: Name, value: [UInt8]) { (self.name, self.value) = (name, value) }
    }

    /// The headers of an occurrence besides its name: those of the request, and the expiration.
    ///
    /// - Parameter oneAttempt: how long after its due time an occurrence with one attempt may be shown, in milliseconds.
    public func headers(of time: DueTime, oneAttempt: Int64) -> [Header] {
      let end = time.due / 1000 + (lifetime == 0 ? oneAttempt / 1000 : lifetime)
      return headers + [Header(name: Name("\(RequestHeader.expiration.name)"), value: Array("\(end)".utf8))]
    }

    /// The maximum number of zones with due times in one schedule. Each is a firing, whose cost grows with their number, so a person with
    /// devices all over the world must not delay others.
    public static var maximumZones: Int { 64 }

    /// The time of the request's record, in milliseconds since 1970. An interval begins then.
    public var requested: Int64
    /// How many seconds after its due time an occurrence may be shown.
    ///
    /// 0 is one attempt.
    public var lifetime: Int64
    /// The hash of the device's owner; 0 for a person's schedule, or without an owner.
    public var owner: UInt64
    /// The next due time in each zone. At least one is not over.
    public var dueTimes: [DueTime]
    /// The trigger, as JSON.
    public var trigger: [UInt8]
    /// The other headers of the request as they were published.
    public var headers: [Header]
    /// The payload as it was published.
    public var payload: [UInt8]

    /// Creates the content from its parts.
    public init(
      requested: Int64, lifetime: Int64, owner: UInt64 = 0, dueTimes: [DueTime], trigger: [UInt8], headers: [Header], payload: [UInt8]
    ) {
      (self.requested, self.lifetime, self.owner, self.dueTimes) = (requested, lifetime, owner, dueTimes)
      (self.trigger, self.headers, self.payload) = (trigger, headers, payload)
    }

    /// The parsed trigger; nil if it is not due at a time.
    public var timedTrigger: TimedTrigger? {
      guard case .timed(let trigger)? = trigger.withUnsafeBytes({ try? Trigger($0) }) else { return nil }
      return trigger
    }

    /// The earliest due time that is not over.
    public var earliest: DueTime? { dueTimes.lazy.filter { !$0.isOver }.min { ($0.due, $0.zone) < ($1.due, $1.zone) } }
  }
}
