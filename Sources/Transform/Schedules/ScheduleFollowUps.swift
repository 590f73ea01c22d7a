import Calendars
import Notifications
import Store

/// Follows up ended schedules: emits `evicted`, and removes forgotten schedules from Kafka and Redis.
///
/// Redis keeps a follow-up until Kafka has its records. So a worker may begin it twice, or drop it at any moment.
///
/// A tombstone may land in the topic behind a newer state, which a request wrote meanwhile. Redis then has that state when Kafka reports
/// the tombstone. The follow-up writes the state once more before it ends.
final class ScheduleFollowUps {
  private struct FollowUp {
    let key: ScheduleKey
    let place: DueTable.Place
    /// The state that the follow-up read, and its conclusion when Kafka has the records.
    var state: Schedules.State
    var conclusion = Schedules.Conclusion.done
    /// Whether a tombstone was written. A newer state must lie behind it in the topic.
    var isForgotten = false
    /// The final end of an eviction. Redis gets it after Kafka.
    var end: ScheduleRecord?
    /// The number of records that Kafka has not reported.
    var pending = 0
    var hasFailed = false
  }

  /// The next step, by the state of the schedule.
  enum Step: Equatable {
    /// Write a tombstone to Kafka, then remove the schedule from Redis.
    case forget
    /// Remove the schedule from Redis only: it was never published to Kafka.
    case forgetUnpublished
    /// Write the state to Kafka once more: a tombstone may lie behind it.
    case write(ScheduleRecord)
    /// Emit `evicted`, and write the final end.
    case tell(ScheduleRecord)
    /// Keep the schedule until this time.
    case wait(until: Int64)
    /// Leave a state that cannot be read.
    case leave
  }

  private let schedules: Schedules
  private let rules: ScheduleRules
  private let outcomes: Outcomes
  private let writer: ScheduleWriter
  private let errors: StoreErrors
  private let wallClock: () -> Int64
  private var followUps: [UInt32: FollowUp] = [:]
  private var keys: Set<ScheduleKey> = []
  private var last: UInt32 = 0
  /// The maximum number of follow-ups at a time. The lane finds the others again.
  private static let maximum = 256
  /// When a state that a newer program has written is looked at again.
  private static let newerMilliseconds: Int64 = 60_000
  /// Called with a place in which another follow-up is due now.
  var onDue: (DueTable.Place) -> Void = { _ in }
  /// Called with a schedule whose state in Redis cannot be read.
  var onDamage: (ScheduleKey, DueTable.Place, StoreError) -> Void = { _, _, _ in }

  init(
    _ schedules: Schedules, _ rules: ScheduleRules, _ outcomes: Outcomes, _ writer: ScheduleWriter, _ errors: StoreErrors,
    wallClock: @escaping () -> Int64
  ) {
    (self.schedules, self.rules, self.outcomes, self.writer) = (schedules, rules, outcomes, writer)
    (self.errors, self.wallClock) = (errors, wallClock)
  }

  /// Follows up a schedule, unless its follow-up has begun.
  func begin(_ key: ScheduleKey, at place: DueTable.Place) {
    guard followUps.count < Self.maximum, keys.insert(key).inserted else { return }
    last &+= 1
    let number = last
    followUps[number] = FollowUp(key: key, place: place, state: .none)
    schedules.followUp(key, of: UInt32(place.partition), now: wallClock()) { [self] found in
      switch found {
      case .success(let found): take(found, number)
      case .failure(let error): fail(number, error)
      }
    }
  }

  /// Decides the next step of a follow-up by the schedule's state and the time.
  static func step(_ found: Schedules.FollowUp, _ rules: ScheduleRules, lifetime: Int64, now: Int64) -> Step {
    // Only the time of the follow-up changes.
    if found.state.newerVersion != nil { return .wait(until: now + newerMilliseconds) }
    guard let record = found.state.record else { return found.state.isUnreadable ? .leave : .forget }
    switch record.phase {
    case .pending: return .write(record)
    case .ended(.evicting): return rules.end(record, .evicted).map { .tell($0) } ?? .leave
    case .ended:
      if let since = found.since, since + lifetime > now, !found.isOldestOfTooMany { return .wait(until: since + lifetime) }
      return record.isPublished ? .forget : .forgetUnpublished
    }
  }

  private func take(_ found: Schedules.FollowUp, _ number: UInt32) {
    guard let key = followUps[number]?.key else { return }
    followUps[number]?.state = found.state
    if let newer = schedules.newer(found.state, of: key) { errors.tell(newer) }
    switch Self.step(found, rules, lifetime: schedules.limits.lifetimeMilliseconds, now: wallClock()) {
    case .forget:
      followUps[number]?.conclusion = .forget
      followUps[number]?.isForgotten = true
      expect(1, number, writer.forget(key, OutcomePurpose(.scheduleFollowUp, number)) ? 1 : 0)
    case .write(let record):
      followUps[number]?.conclusion = .done
      expect(1, number, writer.write(record, of: key, OutcomePurpose(.scheduleFollowUp, number)) ? 1 : 0)
    case .tell(let end):
      followUps[number]?.end = end
      let event = outcomes.ended(.evicted, end.newest, of: key, by: nil, OutcomePurpose(.scheduleFollowUp, number))
      expect(2, number, event.count + (writer.write(end, of: key, OutcomePurpose(.scheduleFollowUp, number)) ? 1 : 0))
    case .forgetUnpublished: conclude(number, .forget)
    case .wait(let time):
      guard followUps[number]?.isForgotten == true, let record = found.state.record, record.isPublished else {
        return conclude(number, .again(at: time))
      }
      followUps[number]?.conclusion = .again(at: time)
      expect(1, number, writer.write(record, of: key, OutcomePurpose(.scheduleFollowUp, number)) ? 1 : 0)
    case .leave: conclude(number, .done)
    }
  }

  /// Notes how many records the follow-up needs, and how many of them the producer took.
  private func expect(_ wanted: Int, _ number: UInt32, _ count: Int) {
    followUps[number]?.pending = count
    followUps[number]?.hasFailed = count < wanted
    if count == 0 { end(number) }
  }

  /// Takes Kafka's report of one record of a follow-up.
  func reported(_ number: UInt32, failed: Bool) {
    guard var followUp = followUps[number] else { return }
    followUp.pending -= 1
    followUp.hasFailed = followUp.hasFailed || failed
    followUps[number] = followUp
    guard followUp.pending == 0 else { return }
    if followUp.hasFailed { return end(number) }
    guard let end = followUp.end else { return conclude(number, followUp.conclusion) }
    schedules.write(end, of: followUp.key, replacing: followUp.state, isSettled: true, now: wallClock()) { [self] written in
      self.end(number)
      if case .failure(let error) = written { errors.tell(error) }
    }
  }

  private func conclude(_ number: UInt32, _ conclusion: Schedules.Conclusion) {
    guard let followUp = followUps[number] else { return }
    let partition = UInt32(followUp.place.partition)
    schedules.conclude(conclusion, followUp.key, in: followUp.state, of: partition, now: wallClock()) { [self] concluded in
      switch concluded {
      case .success(.noted(let isNextDue)):
        end(number)
        if isNextDue { onDue(followUp.place) }
      case .success(.changed(let found)): take(found, number)
      case .failure(let error): fail(number, error)
      }
    }
  }

  private func fail(_ number: UInt32, _ error: StoreError) {
    errors.tell(error)
    if error.code == .faulty, let followUp = followUps[number] { onDamage(followUp.key, followUp.place, error) }
    end(number)
  }

  private func end(_ number: UInt32) {
    if let followUp = followUps.removeValue(forKey: number) { keys.remove(followUp.key) }
  }
}
