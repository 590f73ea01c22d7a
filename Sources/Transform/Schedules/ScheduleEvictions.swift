import Notifications
import Store
import Worker

/// Evicts the oldest schedules of targets that have too many. Loop-confined.
///
/// A schedule ends in Redis first, if its state is still the one that was read. From then on nothing fires it, and its follow-up emits
/// `evicted`. A schedule that changed meanwhile stays: it may have fired, and the target may have room. If not, the target's next request
/// that schedules something finds the oldest again.
final class ScheduleEvictions {
  private let applier: ScheduleApplier
  private let schedules: Schedules
  private let followUps: ScheduleFollowUps
  private let errors: StoreErrors
  private var keys: Set<ScheduleKey> = []
  /// The maximum number of evictions at a time. The target's next request that schedules something finds the others again.
  private static let maximum = 256

  init(_ applier: ScheduleApplier, _ schedules: Schedules, _ followUps: ScheduleFollowUps, _ errors: StoreErrors) {
    (self.applier, self.schedules, self.followUps, self.errors) = (applier, schedules, followUps, errors)
  }

  /// Begins to evict a schedule, unless its eviction has begun.
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
