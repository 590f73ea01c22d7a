import EventLoop
import Notifications
import Store
import Worker

/// Reports what keeps schedules from firing, and repairs it where that is safe. Loop-confined.
///
/// Another program may have written to the keys of the schedules in Redis. Such damage stops no other schedule.
final class ScheduleDamage {
  private let loop: EventLoop
  private let schedules: Schedules
  private let logger: Logger
  private var damaged = DamagedSchedules()
  /// Places whose due times are being restored.
  private var restoring: Set<DueTable.Place> = []
  private var told: String?
  /// Called when the reason why schedules do not fire changes; nil if all fire.
  var onChange: (String?) -> Void = { _ in }
  /// Called when the due times of a place are restored.
  var onRestored: (DueTable.Place) -> Void = { _ in }
  /// Called with each error of Redis.
  var onError: (StoreError) -> Void = { _ in }

  init(on loop: EventLoop, _ schedules: Schedules, _ logger: Logger) {
    (self.loop, self.schedules, self.logger) = (loop, schedules, logger)
  }

  /// Notes damage: Redis holds other data under a key of the schedules.
  func found(_ subject: DamagedSchedules.Subject, at place: DueTable.Place, _ error: StoreError) {
    if damaged.found(subject, at: place, error.message) {
      logger.warning(
        "schedules do not fire or are not forgotten, since Redis has something else in their place",
        ["partition": place.partition, "reason": error.message])
    }
    tell()
  }

  /// Notes that nothing is wrong with a subject.
  func mended(_ subject: DamagedSchedules.Subject, at place: DueTable.Place) {
    guard damaged.mended(subject, at: place) else { return }
    logger.info("schedules fire again", ["partition": place.partition])
    tell()
  }

  /// Drops the damage in partitions that the lane no longer owns.
  func keep(_ partitions: Set<Int32>) {
    damaged.keep(partitions)
    tell()
  }

  /// Drops the damage of schedules in a place that are no longer due.
  func keep(_ due: Set<ScheduleKey>, at place: DueTable.Place) {
    damaged.keep(due, at: place)
    tell()
  }

  private func tell() {
    let reason = damaged.reason
    guard reason != told else { return }
    told = reason
    onChange(reason)
  }

  // MARK: Repair

  /// Removes names that no schedule has.
  func remove(_ unreadable: [[UInt8]], amongFollowUps: Bool = false, at place: DueTable.Place) {
    guard !unreadable.isEmpty else { return }
    logger.warning(
      "names that are none of schedules are removed from the due times",
      ["key": schedules.nameOfDueTimes(place.bucket, UInt32(place.partition)), "names": unreadable.count])
    schedules.remove(
      unreadable: unreadable, amongFollowUps: amongFollowUps, in: place.bucket, of: UInt32(place.partition)
    ) { _ in }
  }

  /// Writes the due times of a place again from its schedules. The remaining due times fire meanwhile.
  func restore(_ place: DueTable.Place) {
    guard restoring.insert(place).inserted else { return }
    let key = schedules.nameOfDueTimes(place.bucket, UInt32(place.partition))
    found(.dueTimes, at: place, StoreError(.faulty, "\(key) is restored from the schedules, since it held something else"))
    schedules.restoreDueTimes(in: place.bucket, of: UInt32(place.partition), now: loop.wallMilliseconds()) { [self] error in
      restoring.remove(place)
      if let error {
        onError(error)
        let reason = "\(key) held something else, and cannot be restored from the schedules: \(error)"
        logger.warning("due times cannot be restored", ["partition": place.partition, "reason": reason])
        return found(.dueTimes, at: place, StoreError(error.code, reason))
      }
      onRestored(place)
    }
  }
}
