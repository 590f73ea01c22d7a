import Notifications
import Store
import Worker

/// Sets the condition `schedules` of a lane's readiness: why schedules do not fire.
///
/// Another program may have written to the keys of the schedules in Redis. Such damage stops no other schedule.
final class ScheduleCondition {
  /// What is damaged.
  enum Subject: Hashable {
    /// The due times of a partition in a bucket.
    case dueTimes(DueTable.Place)
    /// The state of one schedule.
    case schedule(ScheduleKey)
  }

  private let lane: LaneContext
  private var damage: [Subject: (place: DueTable.Place, reason: String)] = [:]
  private var told = ""
  /// What the lane waits for after a possible loss of Redis.
  var restoration: String? { didSet { tell() } }

  init(_ lane: LaneContext) { self.lane = lane }

  /// Notes damage: Redis holds other data under a key of the schedules.
  func found(_ subject: Subject, at place: DueTable.Place, _ error: StoreError) {
    if damage.updateValue((place, error.message), forKey: subject) == nil {
      lane.logger.warning(
        "schedules do not fire or are not forgotten, since Redis has something else in their place",
        ["partition": place.partition, "reason": error.message])
    }
    tell()
  }

  /// Notes that nothing is wrong with a subject.
  func mended(_ subject: Subject) {
    guard let known = damage.removeValue(forKey: subject) else { return }
    lane.logger.info("schedules fire again", ["partition": known.place.partition])
    tell()
  }

  /// Drops the damage of schedules in a place that are no longer due. They cannot fire anyway.
  func keep(_ due: Set<ScheduleKey>, at place: DueTable.Place) {
    keep { subject, there in
      guard there == place, case .schedule(let key) = subject else { return true }
      return due.contains(key)
    }
  }

  /// Drops the damage in partitions that the lane no longer owns.
  func keep(_ partitions: Set<Int32>) { keep { partitions.contains($1.partition) } }

  private func keep(_ isKept: (Subject, DueTable.Place) -> Bool) {
    guard !damage.isEmpty else { return }
    damage = damage.filter { isKept($0.key, $0.value.place) }
    tell()
  }

  private func tell() {
    var reasons = [restoration].compactMap { $0 }
    if let first = damage.values.map(\.reason).min() {
      let partitions = PartitionNames.text(damage.values.map(\.place.partition))
      let more = damage.count > 1 ? ", and \(damage.count - 1) more" : ""
      reasons.append("schedules of the partitions \(partitions) do not fire: \(first)\(more)")
    }
    let reason = reasons.joined(separator: "; ")
    guard reason != told else { return }
    told = reason
    lane.health.set("schedules", ready: reasons.isEmpty, reason)
  }
}
