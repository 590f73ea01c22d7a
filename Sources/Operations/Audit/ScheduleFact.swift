import Notifications

/// A statement about a schedule in a fixed form.
///
/// It is the element of spill files and the input of `OccurrenceAudit`.
struct ScheduleFact: Sendable, Hashable {
  /// The trigger of the request, in milliseconds.
  struct Trigger: Sendable, Hashable {
    /// The time of the record, at which an interval begins.
    var requested: Int64
    /// The interval; nil for a calendar trigger.
    var interval: Int64?
    var notBefore: Int64?
    var repeats: Bool
  }

  /// The effect of a firing on its schedule.
  enum Fate: Sendable, Hashable {
    /// It took effect: the occurrence passed to its devices, was filtered, or had expired.
    case fired
    /// It took effect: this occurrence and perhaps later ones were too late and were skipped.
    case skipped
    /// No worker has judged it yet, or none could.
    case unknown
  }

  /// An occurrence, as the record of its firing names it.
  struct Firing: Sendable, Hashable {
    /// The apns-id of the record.
    var id: NotificationID
    /// The time of the record in milliseconds since 1970.
    var at: Int64
    /// The due time of the occurrence, in milliseconds since 1970.
    var due: Int64
    /// The names of the occurrence and the previous one; 0 for none.
    var name: Int64
    var previous: Int64
    /// The hash of the zone; 0 if the due time does not depend on one.
    var zone: UInt64
    /// The partition of the request that scheduled. The cluster writes firings only there.
    var home: Int32
  }

  /// The content of a statement.
  enum Statement: Sendable, Hashable {
    /// A record of the request that scheduled.
    case request(Trigger)
    /// A record that fires an occurrence.
    case firing(Firing)
    /// What the firing of this record did. Without it the firing took no effect.
    case effect(Fate)
    /// A record whose request ended the schedule, according to the journal.
    case superseded
    /// An event of this time states that the schedule was replaced, canceled or evicted.
    case ended(at: Int64)
  }

  /// The schedule: see ``schedule(_:)``.
  var schedule: UInt64
  var statement: Statement
  /// The position of the record of `requests`; for an event, its own.
  var partition: Int32
  var offset: Int64

  /// The hash of a schedule, by the apns-id of the request that scheduled and the position of its first record. It is not 0.
  static func schedule(_ request: JournalReference) -> UInt64 {
    max(1, request.id.hash64 ^ UInt64(request.revision.sourcePartition) << 48 ^ request.revision.offset)
  }
}

extension ScheduleFact.Trigger {
  init(_ trigger: TimedTrigger, requested: Int64) {
    self.init(requested: requested, notBefore: trigger.notBefore, repeats: trigger.repeats)
    if case .interval(let interval) = trigger.rule { self.interval = interval }
  }

  /// Returns the earliest possible due time of an occurrence, without a calendar.
  func earliest(_ name: Int64) -> Int64 {
    let (passed, overflow) = (interval ?? 0).multipliedReportingOverflow(by: name)
    let due = requested.addingReportingOverflow(overflow ? 0 : passed)
    return max(due.overflow ? requested : due.partialValue, notBefore ?? .min)
  }
}
