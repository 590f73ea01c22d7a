import Calendars
import Notifications
import Store

/// What a request asks of the schedules, and what became of that. Most requests have none.
final class ScheduleJob {
  /// What it asks.
  enum Purpose {
    /// To be shown at a time. The due times and the owner are not known yet.
    case timed(ScheduleRecord.Pending, TimedTrigger)
    /// To be shown at a time, though its lifetime was over when it was published.
    case expired
    /// That what is pending is not shown.
    case cancel
    /// That nothing is shown of all that is pending of its target.
    case cancelAll
    /// To be shown now, in place of what is pending.
    case now
    /// To be shown at a place, in place of what is pending.
    case place
    /// To show an occurrence that is due.
    case firing(ScheduleJudge.Firing, owner: UInt64)
  }

  /// How a schedule has answered.
  enum Answer {
    /// It has not been asked, or need not be.
    case none
    /// This became of the request.
    case applied(ScheduleApplier.Applied)
    /// The request has canceled these of all that was pending.
    case canceled([(key: ScheduleKey, applied: ScheduleApplier.Applied)])
    /// This became of a firing, whose device belongs to another person than at the time of the request.
    case appliedForAnother(ScheduleApplier.Applied)
  }

  /// The schedule that it asks. One that cancels all has a name of its own among those of its target.
  let key: ScheduleKey
  /// The request.
  let reference: JournalReference
  /// What it asks.
  let purpose: Purpose
  /// What became of it.
  var answer = Answer.none

  init(_ key: ScheduleKey, _ reference: JournalReference, _ purpose: Purpose) {
    (self.key, self.reference, self.purpose) = (key, reference, purpose)
  }

  /// The revision of the request, or of the one whose occurrence fires.
  var request: Revision { if case .firing(let firing, _) = purpose { firing.schedule } else { reference.revision } }

  /// Whether the schedule has answered, and nothing of it is pending any more.
  var hasEnded: Bool {
    switch answer {
    case .none: false
    case .applied(let applied), .appliedForAnother(let applied): applied.standing?.pending == nil
    case .canceled: true
    }
  }

  /// Whether the schedule is to be asked.
  var isOpen: Bool {
    if case .expired = purpose { return false }
    if case .none = answer { return true }
    return false
  }
}

extension ScheduleJob {
  /// Reads what a request asks; nil where it asks nothing, and has a name of its own.
  ///
  /// - Parameters:
  ///   - published: the time of its record, in milliseconds since 1970, which an interval is counted from.
  ///   - replaces: whether the request is to be shown now, and something may be pending under its identifier.
  convenience init?(_ view: RequestView, published: Int64, incarnation: UInt32, replaces: Bool) {
    let purpose: Purpose
    let revision = view.envelope.revision.inIncarnation(incarnation)
    switch view.timing {
    case .time(let trigger):
      guard case .timed(let timed)? = try? Trigger(trigger) else { return nil }
      let lifetime = view.expiration == 0 ? 0 : view.expiration - published / 1000
      purpose = view.expiration > 0 && lifetime <= 0 ? .expired : .timed(Self.pending(view, trigger, lifetime, published), timed)
    case .firing(let header):
      guard let header = try? FiringHeader(header) else { return nil }
      let firing = ScheduleJudge.Firing(
        revision: revision, at: published, schedule: header.schedule.revision, header.dueTime)
      purpose = .firing(firing, owner: header.owner)
    case .place: purpose = .place
    case .now:
      if view.operation == .cancel {
        purpose = view.removesAll ? .cancelAll : .cancel
      } else if replaces {
        purpose = .now
      } else {
        return nil
      }
    }
    guard let key = ScheduleKey(application: Name(view.application), target: view.target.name, identifier: view.identifier) else {
      return nil
    }
    self.init(key, JournalReference(revision: revision, id: view.envelope.id), purpose)
  }

  private static func pending(_ view: RequestView, _ trigger: UnsafeRawBufferPointer, _ lifetime: Int64, _ published: Int64)
    -> ScheduleRecord.Pending
  {
    var headers: [ScheduleRecord.Pending.Header] = []
    func keep(_ header: RequestHeader, _ value: some Collection<UInt8>) {
      if !value.isEmpty { headers.append(.init(name: Name("\(header.name)"), value: Array(value))) }
    }
    keep(.topic, view.topic)
    keep(.priority, "\(view.priority)".utf8)
    keep(.pushType, "\(view.pushType.name)".utf8)
    if view.removesWhenOpened { keep(.whenOpened, "remove".utf8) }
    keep(.traceparent, view.envelope.traceparent)
    return ScheduleRecord.Pending(
      requested: Timestamp.bounded(published), lifetime: lifetime, dueTimes: [], trigger: Array(trigger), headers: headers,
      payload: Array(view.payload))
  }
}
