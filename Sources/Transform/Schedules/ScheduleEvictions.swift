import Notifications
import Store
import Worker

/// Ends the oldest schedules of targets that have too many. Loop-confined.
///
/// A schedule ends in Redis first, where it stands as it was read. Then nothing fires it any more, and its follow-up tells that it was
/// evicted. Where it has changed meanwhile it stays: it may have fired, and the target may have room. Else the next request that schedules
/// something for the target finds the oldest.
final class ScheduleEvictions {
  private let applier: ScheduleApplier
  private let schedules: Schedules
  private let followUps: ScheduleFollowUps
  private let errors: StoreErrors
  private var keys: Set<ScheduleKey> = []
  /// Schedules that are ended at a time. Others are found again by the next request that schedules something for their target.
  private static let maximum = 256

  init(_ applier: ScheduleApplier, _ schedules: Schedules, _ followUps: ScheduleFollowUps, _ errors: StoreErrors) {
    (self.applier, self.schedules, self.followUps, self.errors) = (applier, schedules, followUps, errors)
  }

  /// Begins to end a schedule, unless that is under way.
  func begin(_ overflow: ScheduleApplier.Overflow) {
    let key = overflow.schedule.key
    guard keys.count < Self.maximum, keys.insert(key).inserted else { return }
    applier.evict(overflow) { [self] evicted in
      keys.remove(key)
      switch evicted {
      case .success(.ended(let next)):
        let partition = Int32(overflow.end.newest.revision.sourcePartition)
        followUps.begin(key, at: DueTable.Place(partition: partition, bucket: schedules.bucket(of: key)))
        if let next { begin(next) }
      case .success(.stays): break
      case .failure(let error): errors.tell(error)
      }
    }
  }
}
