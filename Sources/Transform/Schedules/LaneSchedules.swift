import Calendars
import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// The parts of a lane that have to do with schedules. Loop-confined.
final class LaneSchedules {
  /// Asks the schedules.
  let stage: ScheduleStage
  /// Tells and writes what they answer.
  let outcomes: ScheduleOutcomes
  /// Follows up what has ended.
  let followUps: ScheduleFollowUps
  /// Fires what is due.
  let firings: Firings
  /// Has schedules adapted to the zones that devices register.
  let zoneChanges: ZoneChanges

  init(
    on loop: EventLoop, _ settings: TransformSettings, _ shards: Shards, _ persons: Recipients, _ writer: ScheduleWriter,
    _ inFlight: InFlight, _ errors: StoreErrors, _ outcomes: Outcomes, _ rejections: Rejections, _ reader: RequestReader,
    _ metrics: TransformMetrics, _ logger: Logger
  ) {
    let schedules = Schedules(
      shards,
      Schedules.Limits(
        dueTimesOfPartition: settings.scheduledInBucket, lifetimeMilliseconds: settings.longestLifetime * 1000))
    let judge = ScheduleJudge(late: settings.lateMilliseconds)
    let applier = ScheduleApplier(schedules, judge, wallClock: loop.wallMilliseconds)
    stage = ScheduleStage(applier, TimeZones(shards, persons))
    followUps = ScheduleFollowUps(schedules, judge, outcomes, writer, errors, wallClock: loop.wallMilliseconds)
    firings = Firings(on: loop, schedules, writer, followUps, buckets: shards.buckets, metrics, logger)
    zoneChanges = ZoneChanges(schedules, writer, inFlight, errors, wallClock: loop.wallMilliseconds)
    let evictions = ScheduleEvictions(applier, schedules, followUps, errors)
    self.outcomes = ScheduleOutcomes(inFlight, outcomes, rejections, reader, writer, schedules, errors, firings, evictions)
    firings.onError = { errors.tell($0) }
    followUps.onDue = { [unowned firings] in firings.looksAgain(at: $0) }
    followUps.onDamage = { [unowned firings] in firings.found(.schedule($0), at: $1, $2) }
  }

  /// What a request asks of the schedules; nil where that is nothing.
  ///
  /// Whether something is pending for a target is found out on the way, where its devices are looked up or judged.
  ///
  /// - Parameter replaces: whether something is pending for the request's target.
  func job(of view: RequestView, _ record: InFlightRecord, replaces: Bool) -> ScheduleJob? {
    ScheduleJob(
      view, published: record.record.timestamp, incarnation: record.incarnation,
      replaces: replaces && view.namesIdentifier)
  }

  /// Closes what it holds.
  func close() { firings.close() }
}
