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
  /// Ends those that are too many.
  let evictions: ScheduleEvictions
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
    let applier = ScheduleApplier(schedules, ScheduleJudge(late: settings.lateMilliseconds), wallClock: loop.wallMilliseconds)
    stage = ScheduleStage(applier, TimeZones(shards, persons))
    firings = Firings(on: loop, schedules, writer, buckets: shards.buckets, metrics, logger)
    evictions = ScheduleEvictions(applier, outcomes, writer, errors)
    zoneChanges = ZoneChanges(schedules, writer, inFlight, errors, wallClock: loop.wallMilliseconds)
    self.outcomes = ScheduleOutcomes(inFlight, outcomes, rejections, reader, writer, schedules, errors, firings, evictions)
    firings.onError = { errors.tell($0) }
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
