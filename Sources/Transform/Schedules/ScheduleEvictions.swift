import Notifications
import Store
import Worker

/// Ends the oldest schedules of targets that have too many, when Kafka has their ends and their events. Loop-confined.
///
/// Until then they stay, and each request that schedules something for the target finds them again. So an eviction may be forgotten at any
/// moment.
final class ScheduleEvictions {
  private struct Eviction {
    let overflow: ScheduleApplier.Overflow
    /// Records that are not in Kafka yet.
    var pending = 2
    var failed = false
  }

  private let applier: ScheduleApplier
  private let outcomes: Outcomes
  private let writer: ScheduleWriter
  private let errors: StoreErrors
  private var evictions: [UInt32: Eviction] = [:]
  private var keys: Set<ScheduleKey> = []
  private var last: UInt32 = 0
  /// Schedules that are ended at a time. Others are found again.
  private static let maximum = 256

  init(_ applier: ScheduleApplier, _ outcomes: Outcomes, _ writer: ScheduleWriter, _ errors: StoreErrors) {
    (self.applier, self.outcomes, self.writer, self.errors) = (applier, outcomes, writer, errors)
  }

  /// Begins to end a schedule, unless that is under way.
  func begin(_ overflow: ScheduleApplier.Overflow) {
    let key = overflow.schedule.key
    guard evictions.count < Self.maximum, keys.insert(key).inserted else { return }
    last &+= 1
    evictions[last] = Eviction(overflow: overflow)
    if !writer.write(overflow.end, of: key, .scheduleEviction(last)) { reported(last, failed: true) }
    let event = outcomes.ended(.evicted, overflow.end.newest, of: key, by: nil, .scheduleEviction(last))
    if event.count == 0 { reported(last, failed: true) }
  }

  /// Kafka has a record of an eviction, or has not.
  func reported(_ number: UInt32, failed: Bool) {
    guard var eviction = evictions[number] else { return }
    eviction.pending -= 1
    eviction.failed = eviction.failed || failed
    evictions[number] = eviction
    guard eviction.pending == 0 else { return }
    guard !eviction.failed else { return end(number) }
    applier.evict(eviction.overflow) { [self] next in
      end(number)
      switch next {
      case .success(.ended(let next)): if let next { begin(next) }
      case .success(.stays(let record)):
        if let record { _ = writer.write(record, of: eviction.overflow.schedule.key, .scheduleEviction(0)) }
      case .failure(let error): errors.tell(error)
      }
    }
  }

  private func end(_ number: UInt32) {
    if let eviction = evictions.removeValue(forKey: number) { keys.remove(eviction.overflow.schedule.key) }
  }
}
