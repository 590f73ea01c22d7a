import Calendars
import Notifications
import TestSupport
import Testing

@testable import Transform

/// Which devices an occurrence goes to when its firing is read again: the last one goes to all zones.
@Suite struct LastOccurrenceTests {
  private static let start: Int64 = 1_700_000_000_000
  private static let zones: [Name] = ["Europe/Rome", "America/New_York"]

  private static func reference(_ offset: UInt64) -> JournalReference {
    JournalReference(
      revision: Revision(timestamp: UInt64(start), partition: 0, offset: offset), id: NotificationID(high: 0, low: offset))
  }

  private static func timed(_ offset: UInt64) -> ScheduleRules.Request {
    let trigger = #"{"type":"calendar","dateComponents":{"hour":9,"minute":0}}"#
    let content = ScheduleRecord.Pending(
      requested: start, lifetime: 86_400, dueTimes: [], trigger: Array(trigger.utf8), headers: [], payload: [1])
    return .init(reference(offset), .timed(content: content, zones: zones))
  }

  /// A schedule, and the lane's firings of it.
  private struct Scene {
    var rules = ScheduleRules()
    var record: ScheduleRecord
    var offset: UInt64 = 100

    init(_ record: ScheduleRecord) { self.record = record }

    mutating func apply(_ request: ScheduleRules.Request) { record = rules.decide(request, record).record ?? record }

    /// Fires the schedule in its next zone.
    mutating func fire() throws -> ScheduleRules.Firing {
      let due = try #require(record.pending?.earliest)
      offset += 1
      let firing = ScheduleRules.Firing(
        revision: Revision(timestamp: UInt64(due.due), partition: 0, offset: offset), at: due.due, schedule: record.newest.revision,
        owner: record.pending?.owner ?? 0, payload: record.pending?.payload ?? [], due)
      record = try #require(rules.decide(firing, record, zones: LastOccurrenceTests.zones).record)
      return firing
    }

    /// Reads a firing again. Returns whether its occurrence goes to all zones.
    mutating func goesToAll(_ firing: ScheduleRules.Firing) throws -> Bool {
      let decision = rules.decide(firing, record, zones: LastOccurrenceTests.zones)
      guard case .firing(.fired) = decision.verdict else { throw Unfit() }
      let key = try #require(ScheduleKey(application: "a.b", target: "user:ada", identifier: "x"))
      let job = ScheduleJob(key, LastOccurrenceTests.reference(firing.revision.offset), at: firing.revision, .firing(firing))
      job.answered([(key, .init(verdict: decision.verdict, standing: decision.record ?? record))])
      return job.hadLastOccurrence
    }

    struct Unfit: Error {}
  }

  private static func scheduled() throws -> Scene {
    var rules = ScheduleRules()
    return Scene(try #require(rules.decide(timed(1), nil).record))
  }

  @Test func `the last occurrence goes to all zones, and no one before it`() throws {
    var scene = try Self.scheduled()
    let first = try scene.fire()
    #expect(try !scene.goesToAll(first))
    let last = try scene.fire()
    #expect(try scene.goesToAll(last))
    // A cancel that comes too late changes nothing.
    scene.apply(.init(Self.reference(200), .cancel))
    #expect(try scene.goesToAll(last))
  }

  @Test func `an occurrence that is read again after the end of its schedule goes to its own zone`() throws {
    for kind in [.cancel, .cancelAll, .now, .place] as [ScheduleRules.Request.Kind] {
      var scene = try Self.scheduled()
      let first = try scene.fire()
      scene.apply(.init(Self.reference(200), kind))
      #expect(scene.record.pending == nil)
      #expect(try !scene.goesToAll(first), "\(kind)")
    }
    for ending in [.evicting, .evicted] as [ScheduleRecord.Ending] {
      var scene = try Self.scheduled()
      let first = try scene.fire()
      scene.record = try #require(scene.rules.end(scene.record, ending))
      #expect(try !scene.goesToAll(first), "\(ending)")
    }
  }

  @Test func `the last occurrence of a newer schedule is not that of the one that it replaced`() throws {
    var scene = try Self.scheduled()
    let former = try scene.fire()
    scene.apply(Self.timed(200))
    #expect(try !scene.goesToAll(former))
    _ = try scene.fire()
    let last = try scene.fire()
    #expect(try scene.goesToAll(last) && !scene.goesToAll(former))
  }
}
