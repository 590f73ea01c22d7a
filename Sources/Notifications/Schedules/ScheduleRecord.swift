/// How a schedule stands: what `notifications.schedule` and Redis keep under its key.
///
/// The topic is compacted. Of two records the one with the newer ``newest`` request counts, then the one with the higher ``serial``. An end
/// is a value too, so that an older request that comes later starts nothing anew.
public struct ScheduleRecord: Sendable, Hashable {
  /// Whether the schedule goes on.
  public enum Phase: Sendable, Hashable {
    /// Occurrences are still due.
    case pending(Pending)
    /// No occurrence is due any more.
    case ended(Ending)
  }

  /// Why a schedule has ended. The raw value is the layout's: never renumber.
  public enum Ending: UInt8, Sendable, CaseIterable {
    /// All its occurrences have fired, or were skipped.
    case fired = 1
    /// A newer request with the same identifier took its place.
    case replaced = 2
    /// A request canceled it.
    case canceled = 3
    /// Its last occurrence came after its lifetime.
    case expired = 4
    /// The target had too many schedules, and this was the oldest.
    case evicted = 5
    /// The device belongs to another person than at the time of the request.
    case filtered = 6
    /// In the zones of its devices it is not due any more.
    case never = 7
    /// The newest request waits for a place, which its devices evaluate: they have it, or will get it.
    case placed = 8
    /// A request canceled it before any had scheduled it. Only Redis keeps that.
    case unscheduled = 9
    /// The target had too many schedules, and this was the oldest. Its end is not told yet.
    case evicting = 10
  }

  /// A request that was applied lately.
  public struct Recent: Sendable, Hashable {
    /// The hash of its apns-id.
    public var id: UInt64
    /// A hash of where its record lies: of another record with the same id it is a duplicate.
    public var source: UInt32
    /// What was pending that it superseded.
    public var superseded: JournalReference?
    /// Whether that waited for a place: the devices have it, or will get it.
    public var isFromDevices: Bool

    /// A request of its parts.
    public init(id: UInt64, source: UInt32, superseded: JournalReference?, isFromDevices: Bool = false) {
      (self.id, self.source, self.superseded, self.isFromDevices) = (id, source, superseded, isFromDevices)
    }

    /// The request of an id and a revision.
    public init(_ request: JournalReference, superseded: JournalReference?, isFromDevices: Bool = false) {
      let source = UInt32(truncatingIfNeeded: request.revision.withBytes { StableHash.hash($0) })
      self.init(id: request.id.hash64, source: source, superseded: superseded, isFromDevices: isFromDevices)
    }
  }

  /// A firing that was applied lately: when its record is read again, the same becomes of it.
  public struct Firing: Sendable, Hashable {
    /// What became of it.
    public enum Fate: Sendable, Hashable {
      /// The occurrence went to the devices.
      case fired
      /// The occurrence came after its lifetime.
      case expired
      /// It came too late for so many occurrences, at least 1.
      case skipped(Int)
    }

    /// The revision of its record.
    public var revision: Revision
    /// When the occurrence was due, in milliseconds since 1970.
    public var due: Int64
    /// What names the occurrence.
    public var name: Int64
    /// What became of it.
    public var fate: Fate

    /// A firing of its parts.
    public init(revision: Revision, due: Int64, name: Int64, _ fate: Fate = .fired) {
      (self.revision, self.due, self.name, self.fate) = (revision, due, name, fate)
    }
  }

  /// How many requests, and how many firings, are remembered: the newest.
  public static var maximumRemembered: Int { 8 }

  /// The newest request that was applied: while the schedule is pending, the one that scheduled it.
  public var newest: JournalReference
  /// How often the record has changed: what changes it says from which state.
  public var serial: UInt32
  /// Whether the schedule goes on.
  public var phase: Phase
  /// The requests that were applied last, oldest first; at most ``maximumRemembered``.
  public var recent: [Recent]
  /// The firings that were applied last, oldest first; at most ``maximumRemembered``.
  public var firings: [Firing]

  /// A record of its parts.
  public init(
    newest: JournalReference, serial: UInt32 = 1, _ phase: Phase, recent: [Recent] = [],
    firings: [Firing] = []
  ) {
    (self.newest, self.serial, self.phase, self.recent, self.firings) = (newest, serial, phase, recent, firings)
  }

  /// Whether it counts, and not another one of the same schedule. Of two that are equal in this the one that lies behind the other counts.
  public func isNewer(than other: ScheduleRecord) -> Bool {
    if newest.revision == other.newest.revision { return serial > other.serial }
    return other.newest.revision.isOlder(than: newest.revision)
  }

  /// The request that waits for a place; nil where the newest one does not.
  public var placed: JournalReference? { phase == .ended(.placed) ? newest : nil }

  /// Whether the topic has it: it has nothing of what nobody has scheduled.
  public var isPublished: Bool { phase != .ended(.unscheduled) }

  /// What is pending; nil for a schedule that has ended.
  public var pending: Pending? { if case .pending(let pending) = phase { pending } else { nil } }
}

extension ScheduleRecord {
  /// A schedule that goes on: what fires, and when.
  public struct Pending: Sendable, Hashable {
    /// When its next occurrence is due in one time zone.
    public struct DueTime: Sendable, Hashable {
      /// The zone; empty where the due time depends on none.
      public var zone: Name
      /// When, in milliseconds since 1970.
      public var due: Int64
      /// What names the occurrence.
      public var name: Int64
      /// The occurrence before; 0: there was none. Its own name: it has passed in this zone, and none follows.
      public var previous: Int64

      /// Whether its occurrence has passed, while others of the schedule are still due: in this zone nothing is due any more.
      public var isOver: Bool { previous == name }

      /// A due time of its parts.
      public init(zone: Name, due: Int64, name: Int64, previous: Int64 = 0) {
        (self.zone, self.due, self.name, self.previous) = (zone, due, name, previous)
      }
    }

    /// A header of the request as it was published.
    public struct Header: Sendable, Hashable {
      /// Its name.
      public var name: Name
      /// Its value.
      public var value: [UInt8]

      /// A header of its parts.
      public init(name: Name, value: [UInt8]) { (self.name, self.value) = (name, value) }
    }

    /// The most zones that one schedule has due times in.
    public static var maximumZones: Int { 255 }

    /// The time that an interval is counted from: of the request's record, in milliseconds since 1970.
    public var requested: Int64
    /// For how many seconds after each due time the occurrence may be shown; 0: one attempt.
    public var lifetime: Int64
    /// The hash of the person whom the device belonged to; 0: nobody, or the target is a person.
    public var owner: UInt64
    /// The next due time in each zone; at least one is not over.
    public var dueTimes: [DueTime]
    /// The trigger, as JSON.
    public var trigger: [UInt8]
    /// The other headers of the request as they were published.
    public var headers: [Header]
    /// The payload as it was published.
    public var payload: [UInt8]

    /// What is pending, of its parts.
    public init(
      requested: Int64, lifetime: Int64, owner: UInt64 = 0, dueTimes: [DueTime], trigger: [UInt8], headers: [Header], payload: [UInt8]
    ) {
      (self.requested, self.lifetime, self.owner, self.dueTimes) = (requested, lifetime, owner, dueTimes)
      (self.trigger, self.headers, self.payload) = (trigger, headers, payload)
    }

    /// The trigger; nil where its text is none that is due at a time.
    public var timedTrigger: TimedTrigger? {
      guard case .timed(let trigger)? = trigger.withUnsafeBytes({ try? Trigger($0) }) else { return nil }
      return trigger
    }

    /// The earliest of the due times that are not over.
    public var earliest: DueTime? { dueTimes.lazy.filter { !$0.isOver }.min { ($0.due, $0.zone) < ($1.due, $1.zone) } }
  }
}

extension Revision {
  /// Whether another request has the say: in one partition the one with the higher offset, else the one with the higher revision.
  public func isOlder(than other: Revision) -> Bool { partition == other.partition ? offset < other.offset : self < other }
}
