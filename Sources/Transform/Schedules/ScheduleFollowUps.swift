import Calendars
import Notifications
import Store
import Worker

/// Follows up schedules that have ended: tells of those that were evicted, and has Kafka forget those that Redis forgets. Loop-confined.
///
/// Redis keeps a follow-up until Kafka has what follows from the schedule's state. So it may be begun twice, and forgotten at any moment.
///
/// A tombstone may land in the topic behind a newer state, which a request has made meanwhile. Then Redis has that state when the tombstone
/// is reported, and it is written once more, before the follow-up is done.
final class ScheduleFollowUps {
  private struct FollowUp {
    let key: ScheduleKey
    let place: DueTable.Place
    /// The state that the records follow from, and what becomes of the follow-up when Kafka has them.
    var state: Schedules.State
    var conclusion = Schedules.Conclusion.done
    /// Whether a tombstone was written: what the schedule is afterwards has to lie behind it.
    var isForgotten = false
    /// The end of an eviction, which Redis gets when Kafka has it.
    var end: ScheduleRecord?
    /// Records that are not in Kafka yet.
    var pending = 0
    var hasFailed = false
  }

  /// What follows from a state.
  enum Step: Equatable {
    /// Kafka forgets the schedule, and then Redis.
    case forget
    /// Redis forgets the schedule, of which Kafka has nothing.
    case forgetUnpublished
    /// Kafka gets the state once more: a tombstone may lie behind it.
    case write(ScheduleRecord)
    /// The eviction is told.
    case tell(ScheduleRecord)
    /// The schedule is remembered until then.
    case wait(until: Int64)
    /// Nothing can be done about a state that cannot be read.
    case leave
  }

  private let schedules: Schedules
  private let judge: ScheduleJudge
  private let outcomes: Outcomes
  private let writer: ScheduleWriter
  private let errors: StoreErrors
  private let wallClock: () -> Int64
  private var followUps: [UInt32: FollowUp] = [:]
  private var keys: Set<ScheduleKey> = []
  private var last: UInt32 = 0
  /// How many are under way at most. Others are found again.
  private static let maximum = 256
  /// Called with a place in which another schedule is to be followed up now.
  var onDue: (DueTable.Place) -> Void = { _ in }
  /// Called with a schedule whose state in Redis cannot be read.
  var onDamage: (ScheduleKey, DueTable.Place, StoreError) -> Void = { _, _, _ in }

  init(
    _ schedules: Schedules, _ judge: ScheduleJudge, _ outcomes: Outcomes, _ writer: ScheduleWriter, _ errors: StoreErrors,
    wallClock: @escaping () -> Int64
  ) {
    (self.schedules, self.judge, self.outcomes, self.writer) = (schedules, judge, outcomes, writer)
    (self.errors, self.wallClock) = (errors, wallClock)
  }

  /// Follows up a schedule, unless that is under way.
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

  /// What follows from how a schedule stands: a decision without a clock of its own.
  static func step(_ found: Schedules.FollowUp, _ judge: ScheduleJudge, lifetime: Int64, now: Int64) -> Step {
    guard let record = found.state.record else { return found.state.isUnreadable ? .leave : .forget }
    switch record.phase {
    case .pending: return .write(record)
    case .ended(.evicting): return judge.end(record, .evicted).map { .tell($0) } ?? .leave
    case .ended:
      if let since = found.since, since + lifetime > now, !found.isOldestOfTooMany { return .wait(until: since + lifetime) }
      return record.isPublished ? .forget : .forgetUnpublished
    }
  }

  private func take(_ found: Schedules.FollowUp, _ number: UInt32) {
    guard let key = followUps[number]?.key else { return }
    followUps[number]?.state = found.state
    switch Self.step(found, judge, lifetime: schedules.limits.lifetimeMilliseconds, now: wallClock()) {
    case .forget:
      followUps[number]?.conclusion = .forget
      followUps[number]?.isForgotten = true
      expect(1, number, writer.forget(key, .scheduleFollowUp(number)) ? 1 : 0)
    case .write(let record):
      followUps[number]?.conclusion = .done
      expect(1, number, writer.write(record, of: key, .scheduleFollowUp(number)) ? 1 : 0)
    case .tell(let end):
      followUps[number]?.end = end
      let event = outcomes.ended(.evicted, end.newest, of: key, by: nil, .scheduleFollowUp(number))
      expect(2, number, event.count + (writer.write(end, of: key, .scheduleFollowUp(number)) ? 1 : 0))
    case .forgetUnpublished: conclude(number, .forget)
    case .wait(let time):
      guard followUps[number]?.isForgotten == true, let record = found.state.record, record.isPublished else {
        return conclude(number, .again(at: time))
      }
      followUps[number]?.conclusion = .again(at: time)
      expect(1, number, writer.write(record, of: key, .scheduleFollowUp(number)) ? 1 : 0)
    case .leave: conclude(number, .done)
    }
  }

  /// So many records were to be written, and so many have reports to come.
  private func expect(_ wanted: Int, _ number: UInt32, _ count: Int) {
    followUps[number]?.pending = count
    followUps[number]?.hasFailed = count < wanted
    if count == 0 { end(number) }
  }

  /// Kafka has a record of a follow-up, or has not.
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
