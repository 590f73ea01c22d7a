import EventLoop
import Store
import Worker

/// Repairs due times to which another program has written, where that is safe.
final class DueTimesRepair {
  private let loop: EventLoop
  private let schedules: Schedules
  private let condition: ScheduleCondition
  private let logger: Logger
  /// Places whose due times are being restored.
  private var restoring: Set<DueTable.Place> = []
  /// Called when the due times of a place are restored.
  var onRestored: (DueTable.Place) -> Void = { _ in }
  /// Called with each error of Redis.
  var onError: (StoreError) -> Void = { _ in }

  init(on loop: EventLoop, _ schedules: Schedules, _ condition: ScheduleCondition, _ logger: Logger) {
    (self.loop, self.schedules, self.condition, self.logger) = (loop, schedules, condition, logger)
  }

  /// Removes names that no schedule has.
  func remove(_ unreadable: [[UInt8]], amongFollowUps: Bool = false, at place: DueTable.Place) {
    guard !unreadable.isEmpty else { return }
    let partition = UInt32(place.partition)
    logger.warning(
      "names that are none of schedules are removed from the due times",
      ["key": schedules.nameOfDueTimes(place.bucket, partition), "names": unreadable.count])
    schedules.remove(unreadable: unreadable, amongFollowUps: amongFollowUps, in: place.bucket, of: partition) { _ in }
  }

  /// Writes the due times of a place again from its schedules. The remaining due times fire meanwhile.
  func restore(_ place: DueTable.Place) {
    guard restoring.insert(place).inserted else { return }
    let partition = UInt32(place.partition)
    let key = schedules.nameOfDueTimes(place.bucket, partition)
    condition.found(
      .dueTimes(place), at: place, StoreError(.faulty, "\(key) is restored from the schedules, since it held something else"))
    schedules.restoreDueTimes(in: place.bucket, of: partition, now: loop.wallMilliseconds()) { [self] error in
      restoring.remove(place)
      guard let error else { return onRestored(place) }
      onError(error)
      let reason = "\(key) held something else, and cannot be restored from the schedules: \(error)"
      logger.warning("due times cannot be restored", ["partition": place.partition, "reason": reason])
      condition.found(.dueTimes(place), at: place, StoreError(error.code, reason))
    }
  }
}
