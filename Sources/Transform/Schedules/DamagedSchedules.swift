import Notifications
import Worker

/// What in Redis keeps schedules from firing, as a worker's readiness tells it: a value.
struct DamagedSchedules {
  /// What is damaged in one place.
  enum Subject: Hashable {
    /// The due times of the partition in the bucket.
    case dueTimes
    /// The state of one schedule.
    case schedule(ScheduleKey)
  }

  private var reasons: [DueTable.Place: [Subject: String]] = [:]

  /// Something is damaged. Returns whether that is new.
  mutating func found(_ subject: Subject, at place: DueTable.Place, _ reason: String) -> Bool {
    reasons[place, default: [:]].updateValue(reason, forKey: subject) == nil
  }

  /// It is damaged no more. Returns whether it was.
  mutating func mended(_ subject: Subject, at place: DueTable.Place) -> Bool {
    guard reasons[place]?.removeValue(forKey: subject) != nil else { return false }
    if reasons[place]?.isEmpty == true { reasons[place] = nil }
    return true
  }

  /// Of a place these schedules are due. What is not due any more keeps nothing from firing.
  mutating func keep(_ due: Set<ScheduleKey>, at place: DueTable.Place) {
    guard let known = reasons[place] else { return }
    let kept = known.filter { if case .schedule(let key) = $0.key { due.contains(key) } else { true } }
    reasons[place] = kept.isEmpty ? nil : kept
  }

  /// The lane has these partitions now.
  mutating func keep(_ partitions: Set<Int32>) { reasons = reasons.filter { partitions.contains($0.key.partition) } }

  /// What readiness says; nil where nothing is damaged.
  var reason: String? {
    guard let first = reasons.values.flatMap(\.values).min() else { return nil }
    let more = reasons.values.map(\.count).reduce(0, +) - 1
    return "schedules of the partitions \(PartitionNames.text(reasons.keys.map(\.partition))) do not fire: \(first)"
      + (more > 0 ? ", and \(more) more" : "")
  }
}
