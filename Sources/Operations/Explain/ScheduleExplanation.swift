package import Notifications

/// The schedule of a request whose trigger is due at a time.
package struct ScheduleExplanation: Sendable, Equatable {
  /// How it stands.
  package enum Standing: Sendable, Equatable {
    /// Its next occurrences are due then, in each zone.
    case pending([ScheduleRecord.Pending.DueTime])
    /// It has ended. A request that ended it is named, if it is known.
    case ended(ScheduleRecord.Ending, by: NotificationID?)
    /// The topic `schedule` has nothing of it.
    case unknown
  }

  /// How it stands.
  package var standing = Standing.unknown
  /// Its occurrences that took effect, in the order of their due times; of very many the last.
  package var occurrences: [Explanation] = []
  /// The number of earlier occurrences that are left out.
  package var omitted = 0
}

/// The schedule and the due time that the record of an occurrence names.
package struct FiredOccurrence: Sendable, Equatable {
  /// The request that scheduled.
  package var schedule: NotificationID
  /// When it was due, in milliseconds since 1970.
  package var due: Int64
  /// Its zone; empty if the due time depends on none.
  package var zone: Name
}

extension ScheduleExplanation.Standing {
  /// Makes it of what the topic `schedule` has under the request's key, and of the request's own events.
  init(of id: NotificationID, _ record: ScheduleRecord?, _ steps: [TimelineStep]) {
    if let record, record.newest.id == id {
      switch record.phase {
      case .pending(let pending): self = .pending(pending.dueTimes.sorted { $0.due < $1.due })
      case .ended(let ending): self = .ended(ending, by: nil)
      }
      return
    }
    if let step = steps.last(where: { $0.outcome?.endingOfSchedule != nil }), let ending = step.outcome?.endingOfSchedule {
      self = .ended(ending, by: step.detail("by").flatMap { NotificationID($0) })
    } else if let record {
      // The event is on its way.
      let isCancel = record.phase == .ended(.canceled)
      self = .ended(isCancel ? .canceled : .replaced, by: record.newest.id)
    } else {
      self = .unknown
    }
  }
}
