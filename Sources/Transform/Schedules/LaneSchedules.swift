import Calendars
import EventLoop
import Notifications
import Store

/// Builds the parts of a lane that handle schedules, and wires them.
final class LaneSchedules {
  /// Delays firings until earlier requests have ended.
  let firingWait: FiringWait
  /// Applies requests and firings to the schedules.
  let stage: ScheduleStage
  /// Emits the outcomes, and writes the schedules to Kafka.
  let outcomes: ScheduleOutcomes
  /// Follows up ended schedules.
  let followUps: ScheduleFollowUps
  /// Fires due schedules.
  let firings: Firings
  /// Requests the adaptation of schedules to the zones of registered devices.
  let zoneChanges: ZoneChanges

  init(
    _ lane: LaneContext, _ devices: DeviceFacts, _ writer: ScheduleWriter, _ inFlight: InFlight, _ errors: StoreErrors,
    _ outcomes: Outcomes, _ rejections: Rejections, _ reader: RequestReader
  ) {
    let (loop, settings, shards) = (lane.loop, lane.settings, lane.shards)
    let schedules = Schedules(
      shards,
      Schedules.Limits(
        dueTimesOfPartition: settings.scheduledInBucket, lifetimeMilliseconds: settings.longestLifetime * 1000))
    let rules = ScheduleRules(late: settings.lateMilliseconds, oneAttempt: settings.oneAttemptSeconds * 1000)
    let applier = ScheduleApplier(
      schedules, rules, wallClock: loop.wallMilliseconds, clockTolerance: settings.clockToleranceMilliseconds)
    firingWait = FiringWait(isInFlight: { inFlight.has($0, order: $1) })
    stage = ScheduleStage(on: loop, applier, devices)
    followUps = ScheduleFollowUps(schedules, rules, outcomes, writer, errors, wallClock: loop.wallMilliseconds)
    let zoneData = ZoneDataUpdate(on: loop, schedules, writer, version: DueTimes.dataVersion, lane.logger)
    firings = Firings(
      on: loop, schedules, writer, followUps, zoneData, ScheduleCondition(lane), buckets: shards.buckets, lane.metrics, lane.logger)
    zoneChanges = ZoneChanges(schedules, writer, inFlight, errors, wallClock: loop.wallMilliseconds)
    self.outcomes = ScheduleOutcomes(inFlight, outcomes, rejections, reader, writer, schedules, errors, firings, applier, followUps)
    rejections.onRefusal = { [unowned outcomes = self.outcomes] in outcomes.refused($0, $1) }
    stage.onNewer = { [unowned firingWait] in firingWait.left($0, toNewer: $1) }
    firings.onError = { errors.tell($0) }
    firings.isChanging = { [unowned stage] in stage.isChanging($0) }
    followUps.onDue = { [unowned firings] in firings.looksAgain(at: $0) }
    followUps.onDamage = { [unowned firings] in firings.condition.found(.schedule($0), at: $1, $2) }
  }

  /// Reads what a request asks of the schedules; nil if it asks nothing.
  ///
  /// The lane learns whether a target has pending schedules when it reads the recipients or calls the judge.
  ///
  /// - Parameter replaces: whether a schedule is pending for the request's target.
  func job(of view: RequestView, _ record: InFlightRecord, replaces: Bool) -> ScheduleJob? {
    ScheduleJob(
      view, record.record, incarnation: record.source.incarnation, replaces: replaces && view.namesIdentifier)
  }

  /// Notes that a request has ended or was dropped. Its slot is free.
  func ended(_ slot: Slot, isDone: Bool) {
    outcomes.ended(slot, isDone: isDone)
    firingWait.ended(slot)
  }

  /// Closes the timer of the firings.
  func close() { firings.close() }
}
