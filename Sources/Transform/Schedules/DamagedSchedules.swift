import Notifications
import Worker

/// A value: the damage in Redis that keeps schedules from firing. Readiness shows it.
struct DamagedSchedules {
  /// What is damaged in a place.
  enum Subject: Hashable {
    /// The due times of the partition in the bucket.
    case dueTimes
    /// The state of one schedule.
    case schedule(ScheduleKey)
  }

  private var reasons: [DueTable.Place: [Subject: String]] = [:]

  /// Notes damage. Returns whether it is new.
  mutating func found(_ subject: Subject, at place: DueTable.Place, _ reason: String) -> Bool {
    reasons[place, default: [:]].updateValue(reason, forKey: subject) == nil
  }

  /// Removes damage that is repaired. Returns whether there was any.
  mutating func mended(_ subject: Subject, at place: DueTable.Place) -> Bool {
    guard reasons[place]?.removeValue(forKey: subject) != nil else { return false }
    if reasons[place]?.isEmpty == true { reasons[place] = nil }
    return true
  }

  /// Drops the damage of schedules in a place that are no longer due. They cannot fire anyway.
  mutating func keep(_ due: Set<ScheduleKey>, at place: DueTable.Place) {
    guard let known = reasons[place] else { return }
    let kept = known.filter { if case .schedule(let key) = $0.key { due.contains(key) } else { true } }
    reasons[place] = kept.isEmpty ? nil : kept
  }

  /// Drops the damage in partitions that the lane no longer owns.
  mutating func keep(_ partitions: Set<Int32>) { reasons = reasons.filter { partitions.contains($0.key.partition) } }

  /// The text for readiness; nil if nothing is damaged.
  var reason: String? {
    guard let first = reasons.values.flatMap(\.values).min() else { return nil }
    let more = reasons.values.map(\.count).reduce(0, +) - 1
    return "schedules of the partitions \(PartitionNames.text(reasons.keys.map(\.partition))) do not fire: \(first)"
      + (more > 0 ? ", and \(more) more" : "")
  }
}
