import Calendars
import Notifications
import TestSupport
import Testing

/// Rules that an expectation may ask.
private final class Rules {
  private var rules = ScheduleRules()

  func decide(_ request: ScheduleRules.Request, _ record: ScheduleRecord?, floor: JournalReference? = nil) -> ScheduleRules.Decision {
    rules.decide(request, record, floor: floor)
  }

  func decide(
    _ firing: ScheduleRules.Firing, _ record: ScheduleRecord?, zones: [Name]? = nil, floor: JournalReference? = nil
  ) -> ScheduleRules.Decision {
    rules.decide(firing, record, zones: zones, floor: floor)
  }

  func decide(_ firings: [ScheduleRules.Firing], _ record: ScheduleRecord?, zones: [Name]) -> [ScheduleRules.Decision] {
    rules.decide(firings, record, zones: zones)
  }

  func isMissing(_ zone: Name, in record: ScheduleRecord, isOnly: Bool) -> Bool { rules.isMissing(zone, in: record, isOnly: isOnly) }

  func adapt(_ record: ScheduleRecord, toZones zones: [Name], at now: Int64) -> ScheduleRecord? {
    rules.adapt(record, toZones: zones, at: now)
  }

  func recompute(_ record: ScheduleRecord) -> ScheduleRecord? { rules.recompute(record) }

  func end(_ record: ScheduleRecord, _ ending: ScheduleRecord.Ending) -> ScheduleRecord? { rules.end(record, ending) }
}

/// What requests and firings make of a schedule.
@Suite struct ScheduleRulesTests {
  private static let start: Int64 = 1_700_000_000_000

  private static func reference(_ offset: UInt64, id: UInt64, partition: UInt32 = 0, at time: Int64 = start) -> JournalReference {
    JournalReference(
      revision: Revision(timestamp: UInt64(time), partition: partition, offset: offset), id: NotificationID(high: 0, low: id))
  }

  private static func content(_ trigger: String, requested: Int64 = start, lifetime: Int64 = 86_400) -> ScheduleRecord.Pending {
    ScheduleRecord.Pending(requested: requested, lifetime: lifetime, dueTimes: [], trigger: Array(trigger.utf8), headers: [], payload: [])
  }

  private static let once = #"{"type":"timeInterval","timeInterval":60}"#
  private static let each = #"{"type":"timeInterval","timeInterval":60,"repeats":true,"late":100}"#
  private static let daily = #"{"type":"calendar","dateComponents":{"hour":9,"minute":0},"repeats":true}"#
  private static let nine = #"{"type":"calendar","dateComponents":{"hour":9,"minute":0}}"#

  private static func schedule(_ trigger: String, _ reference: JournalReference, zones: [Name] = ["UTC"]) throws -> ScheduleRecord {
    let rules = Rules()
    let decision = rules.decide(.init(reference, .timed(content: content(trigger), zones: zones)), nil)
    return try #require(decision.record)
  }

  private static func fire(_ record: ScheduleRecord, _ offset: UInt64, at time: Int64? = nil, zone: Name? = nil) throws
    -> ScheduleRules.Firing
  {
    let pending = try #require(record.pending)
    let due = try #require(zone == nil ? pending.earliest : pending.dueTimes.first { $0.zone == zone })
    return .init(
      revision: Revision(timestamp: UInt64(time ?? due.due), partition: 0, offset: offset), at: time ?? due.due,
      schedule: record.newest.revision, due)
  }

  // MARK: The time zone database

  @Test func `a firing of no occurrence moves the due times to those of this time zone database`() throws {
    for (trigger, zone, zones) in [
      (Self.daily, "Europe/Rome" as Name, ["Europe/Rome"] as [Name]?),
      (Self.daily.replacing("\"minute\":0", with: "\"minute\":0,\"timeZone\":\"Europe/Rome\""), "", nil),
    ] {
      let rules = Rules()
      let right = try Self.schedule(trigger, Self.reference(1, id: 1), zones: ["Europe/Rome"])
      #expect(rules.recompute(right) == nil)
      var outdated = right
      var pending = try #require(right.pending)
      pending.dueTimes[0].due += 3_600_000
      outdated.phase = .pending(pending)
      #expect(rules.recompute(outdated)?.pending == right.pending)
      let asking = ScheduleRules.Firing(
        revision: Revision(timestamp: 5, partition: 0, offset: 2), at: Self.start, schedule: right.newest.revision,
        .init(zone: zone, due: 0, name: 0))
      let decision = rules.decide(asking, outdated, zones: zones)
      #expect(decision.record?.pending == right.pending && "\(decision.verdict)" == "ignored")
      // Read again, it may be the only one that writes to Kafka what Redis already has.
      let again = rules.decide(asking, decision.record, zones: zones)
      #expect(again.record == nil && again.isAgain)
      // A firing of the former due time is early now, or fits nothing.
      #expect("\(rules.decide(try Self.fire(outdated, 3), decision.record, zones: zones).verdict)" == "ignored")
    }
  }

  @Test func `a firing that other data of its zone made early moves the due time, and the schedule goes on`() throws {
    for minutes in [-60, 60] as [Int64] {
      let rules = Rules()
      let right = try Self.schedule(Self.daily, Self.reference(1, id: 1), zones: ["Europe/Rome", "Asia/Tokyo"])
      var outdated = right
      var pending = try #require(right.pending)
      let place = try #require(pending.dueTimes.firstIndex { $0.zone == "Europe/Rome" })
      pending.dueTimes[place].due += minutes * 60_000
      outdated.phase = .pending(pending)
      let firing = try Self.fire(outdated, 2, zone: "Europe/Rome")
      for zones in [nil, ["Europe/Rome", "Asia/Tokyo"]] as [[Name]?] {
        let early = rules.decide(firing, outdated, zones: zones)
        #expect("\(early.verdict)" == "ignored" && early.record?.pending?.dueTimes == right.pending?.dueTimes)
      }
      let moved = try #require(rules.decide(firing, outdated).record)
      let fired = rules.decide(try Self.fire(moved, 3, zone: "Europe/Rome"), moved)
      #expect(Self.word(fired.verdict) == "fired")
      let next = try #require(fired.record?.pending?.dueTimes.first { $0.zone == "Europe/Rome" })
      #expect(!next.isOver && next.due == right.pending?.dueTimes.first { $0.zone == "Europe/Rome" }.map { $0.due + 86_400_000 })
    }
  }

  @Test func `an interval does not depend on the time zone database`() throws {
    let rules = Rules()
    var record = try Self.schedule(Self.each, Self.reference(1, id: 1))
    var pending = try #require(record.pending)
    pending.dueTimes[0].due += 3_600_000
    record.phase = .pending(pending)
    #expect(rules.recompute(record) == nil)
  }

  // MARK: Rules

  @Test func `a one-off fires once, and its id starts nothing anew`() throws {
    let rules = Rules()
    let scheduled = try Self.schedule(Self.once, Self.reference(1, id: 1))
    #expect(scheduled.pending?.earliest?.due == Self.start + 60_000)
    let firing = try Self.fire(scheduled, 2)
    let fired = rules.decide(firing, scheduled)
    #expect(Self.word(fired.verdict) == "fired")
    let record = try #require(fired.record)
    #expect(record.phase == .ended(.fired))
    let repeated = rules.decide(firing, record)
    #expect("\(repeated.verdict)" == "\(fired.verdict)" && repeated.record == nil)
    var other = firing
    other.revision = Revision(timestamp: 5, partition: 0, offset: 3)
    #expect("\(rules.decide(other, record).verdict)" == "ignored")
    let same = rules.decide(.init(Self.reference(4, id: 1), .timed(content: Self.content(Self.once), zones: [])), record)
    #expect("\(same.verdict)" == "duplicate" && same.record == nil)
  }

  @Test func `a one-off fires however late it is, until it expires`() throws {
    let scheduled = try Self.schedule(Self.once, Self.reference(1, id: 1))
    for (late, ending) in [(86_400_000, ScheduleRecord.Ending.fired), (86_400_001, .expired)] as [(Int64, ScheduleRecord.Ending)] {
      let rules = Rules()
      let decision = rules.decide(try Self.fire(scheduled, 2, at: Self.start + 60_000 + late), scheduled)
      #expect(decision.record?.phase == .ended(ending))
    }
  }

  @Test func `an occurrence with one attempt expires when that is over, counted from its due time`() throws {
    for trigger in [Self.once, Self.each] {
      for (late, verdict) in [(0, "fired"), (30_000, "fired"), (30_001, "expired")] as [(Int64, String)] {
        let rules = Rules()
        let request = ScheduleRules.Request(Self.reference(1, id: 1), .timed(content: Self.content(trigger, lifetime: 0), zones: []))
        let scheduled = try #require(rules.decide(request, nil).record)
        let decision = rules.decide(try Self.fire(scheduled, 2, at: Self.start + 60_000 + late), scheduled)
        #expect(Self.word(decision.verdict) == verdict, "\(trigger), \(late) ms late")
      }
    }
  }

  @Test func `a firing that is not due, or was made up, reaches nobody`() throws {
    let rules = Rules()
    let scheduled = try Self.schedule(Self.each, Self.reference(1, id: 1))
    var forged: [ScheduleRules.Firing] = []
    for _ in 0..<8 { forged.append(try Self.fire(scheduled, 2)) }
    forged[0].at -= 1
    forged[1].schedule = Revision(timestamp: 1, partition: 2, offset: 3)
    forged[2].dueTime.due -= 60_000
    forged[3].dueTime.name += 1
    forged[4].dueTime.zone = "UTC"
    forged[5].at = .min
    forged[6].payload = [1]
    forged[7].owner = 1
    for firing in forged + [try Self.fire(scheduled, 2)] {
      #expect("\(rules.decide(firing, nil).verdict)" == "ignored")
      let ended = try #require(rules.end(scheduled, .evicted))
      #expect("\(rules.decide(firing, ended).verdict)" == "ignored")
    }
    for firing in forged {
      let decision = rules.decide(firing, scheduled)
      #expect("\(decision.verdict)" == "ignored" && decision.record == nil)
    }
  }

  @Test func `an occurrence fires although its trigger allows no lateness, for no firing comes at once`() throws {
    let rules = Rules()
    let trigger = #"{"type":"timeInterval","timeInterval":60,"repeats":true,"late":0}"#
    let scheduled = try Self.schedule(trigger, Self.reference(1, id: 1))
    for (late, verdict) in [(300, "fired"), (1_000, "fired"), (1_001, "skipped 1")] as [(Int64, String)] {
      #expect(Self.word(rules.decide(try Self.fire(scheduled, 2, at: Self.start + 60_000 + late), scheduled).verdict) == verdict)
    }
  }

  @Test func `what is too late is skipped together, and told with its count`() throws {
    let rules = Rules()
    let scheduled = try Self.schedule(Self.each, Self.reference(1, id: 1))
    // 10 minutes and 30 seconds after the first one was due: the bound of 100 s leaves those that were due 30 s and 90 s ago.
    let decision = rules.decide(try Self.fire(scheduled, 2, at: Self.start + 690_000), scheduled)
    guard case .firing(.skipped(let count)) = decision.verdict else {
      Issue.record("\(decision.verdict)")
      return
    }
    #expect(count == 9)
    #expect(decision.record?.pending?.earliest?.due == Self.start + 600_000)
  }

  @Test func `a record that names a former firing's place shows nothing of its own either`() throws {
    let rules = Rules()
    let scheduled = try Self.schedule(Self.each, Self.reference(1, id: 1))
    let firing = try Self.fire(scheduled, 2)
    let fired = try #require(rules.decide(firing, scheduled).record)
    var forged = firing
    (forged.dueTime.name, forged.payload) = (forged.dueTime.name + 7, [1])
    #expect("\(rules.decide(forged, fired).verdict)" == "ignored")
  }

  /// A producer's clock, or a mistake, may date a trigger years back. Of what is due each minute no more than an hour is made up for.
  @Test(arguments: [
    (#"{"type":"timeInterval","timeInterval":60,"repeats":true,"late":2592000}"#, 61),
    (#"{"type":"calendar","dateComponents":{"second":0},"repeats":true,"late":2592000}"#, 61),
    (#"{"type":"timeInterval","timeInterval":86400,"repeats":true,"late":2592000}"#, 28),
  ])
  func `a catch-up has a bound, however late a trigger allows and whenever it began`(trigger: String, most: Int) throws {
    var rules = ScheduleRules()
    var record = try Self.schedule(trigger, Self.reference(1, id: 1))
    let now = Self.start + 28 * 86_400_000 + 1_000
    var (fired, skipped) = (0, 0)
    for offset in 2..<200 as Range<UInt64> {
      guard let due = record.pending?.earliest, due.due <= now else { break }
      let decision = rules.decide(try Self.fire(record, offset, at: now), record)
      switch decision.verdict {
      case .firing(.skipped(let count)): skipped += count
      case .firing: fired += 1
      default: Issue.record("\(decision.verdict)")
      }
      record = try #require(decision.record)
    }
    #expect((most - 2...most).contains(fired), "\(fired) were shown, \(skipped) skipped")
    #expect(try #require(record.pending?.earliest).due > now, "it goes on as it would have")
  }

  @Test func `a newer request ends the schedule, with or without a trigger, and an older one does nothing`() throws {
    let rules = Rules()
    let old = Self.reference(5, id: 1)
    let scheduled = try Self.schedule(Self.each, old)
    let kinds: [(ScheduleRules.Request.Kind, String)] = [
      (.timed(content: Self.content(Self.once), zones: []), "scheduled"), (.now, "passed"), (.cancel, "canceled"), (.expired, "expired"),
    ]
    for (kind, verdict) in kinds {
      let request = ScheduleRules.Request(Self.reference(6, id: 2), kind)
      let decision = rules.decide(request, scheduled)
      #expect("\(decision.verdict)" == verdict && decision.superseded == old && decision.record?.newest == request.reference)
      // Read again it says the same, and changes nothing.
      let again = rules.decide(request, decision.record)
      #expect("\(again.verdict)" == verdict && again.superseded == old && again.record == nil)
      // The firing of the schedule that it ended.
      #expect("\(rules.decide(try Self.fire(scheduled, 7), decision.record).verdict)" == "ignored")
    }
    let older = Self.reference(4, id: 2)
    #expect("\(rules.decide(.init(older, .cancel), scheduled).verdict)".hasPrefix("stale"))
    #expect("\(rules.decide(.init(older, .now), scheduled).verdict)" == "passed")
    let expired = rules.decide(.init(older, .expired), scheduled)
    #expect("\(expired.verdict)" == "expired" && expired.record == nil && expired.superseded == nil)
    #expect("\(rules.decide(.init(older, .timed(content: Self.content(Self.once), zones: [])), scheduled).verdict)".hasPrefix("stale"))
  }

  @Test func `a cancel after the last firing is too late, and keeps an older request from starting`() throws {
    let rules = Rules()
    let scheduled = try Self.schedule(Self.once, Self.reference(1, id: 1))
    let firing = try Self.fire(scheduled, 2)
    let fired = try #require(rules.decide(firing, scheduled).record)
    let cancel = rules.decide(.init(Self.reference(3, id: 2), .cancel), fired)
    #expect("\(cancel.verdict)" == "tooLate" && cancel.record?.phase == .ended(.fired))
    // The firing that is read again goes to the devices nevertheless.
    #expect("\(rules.decide(firing, cancel.record).verdict)" == "\(ScheduleRules.Verdict.firing(.fired))")
    let tombstone = rules.decide(.init(Self.reference(9, id: 3), .cancel), nil)
    #expect("\(tombstone.verdict)" == "tooLate")
    #expect(tombstone.record?.isPublished == false, "the topic gets nothing of what nobody has scheduled")
    let further = rules.decide(.init(Self.reference(10, id: 5), .cancel), tombstone.record)
    #expect("\(further.verdict)" == "tooLate" && further.record?.isPublished == false)
    let newer = rules.decide(.init(Self.reference(11, id: 6), .timed(content: Self.content(Self.once), zones: [])), further.record)
    #expect("\(newer.verdict)" == "scheduled" && newer.record?.isPublished == true)
    let late = rules.decide(.init(Self.reference(8, id: 4), .timed(content: Self.content(Self.once), zones: [])), tombstone.record)
    #expect("\(late.verdict)".hasPrefix("stale"))
  }

  @Test func `an expired request bars an older one that is read later, and the topic gets nothing of it`() throws {
    let rules = Rules()
    let expired = rules.decide(.init(Self.reference(9, id: 3), .expired), nil)
    #expect("\(expired.verdict)" == "expired" && expired.superseded == nil && expired.record?.isPublished == false)
    let late = rules.decide(.init(Self.reference(8, id: 4), .timed(content: Self.content(Self.once), zones: [])), expired.record)
    #expect("\(late.verdict)".hasPrefix("stale"))
    let newer = rules.decide(.init(Self.reference(10, id: 5), .timed(content: Self.content(Self.once), zones: [])), expired.record)
    #expect("\(newer.verdict)" == "scheduled" && newer.record?.isPublished == true)
  }

  @Test func `a cancel of all ends what is older, leaves what is newer, and bars what is older and comes later`() throws {
    let rules = Rules()
    let scheduled = try Self.schedule(Self.once, Self.reference(1, id: 1))
    let cancel = Self.reference(3, id: 2)
    let request = ScheduleRules.Request(cancel, .cancelAll)
    let ended = rules.decide(request, scheduled)
    #expect("\(ended.verdict)" == "canceled" && ended.record?.phase == .ended(.canceled) && ended.superseded == scheduled.newest)
    let again = rules.decide(request, ended.record)
    #expect("\(again.verdict)" == "canceled" && again.superseded == scheduled.newest && again.record == nil && again.isAgain)
    // What has ended, and what was never there, has no trace of it.
    for record in [nil, rules.decide(try Self.fire(scheduled, 2), scheduled).record] {
      let decision = rules.decide(request, record)
      #expect("\(decision.verdict)" == "tooLate" && decision.record == nil && !decision.isAgain)
    }
    let newer = try Self.schedule(Self.once, Self.reference(4, id: 3))
    #expect(rules.decide(request, newer).record == nil)
    // What waits for a place at the devices is withdrawn.
    let place = ScheduleRules.Request(Self.reference(2, id: 4), .place)
    let placed = rules.decide(place, nil)
    let withdrawn = rules.decide(request, placed.record)
    #expect("\(withdrawn.verdict)" == "canceled" && withdrawn.withdrawn == place.reference && withdrawn.superseded == nil)
    let withdrawnAgain = rules.decide(request, withdrawn.record)
    #expect("\(withdrawnAgain.verdict)" == "canceled" && withdrawnAgain.withdrawn == place.reference && withdrawnAgain.isAgain)
    #expect("\(rules.decide(place, nil, floor: cancel).verdict)".hasPrefix("canceledBefore"))
    #expect("\(rules.decide(place, placed.record, floor: cancel).verdict)" == "passed", "its record is read again")
    // A change of zones does not make it fire.
    let local = try Self.schedule(Self.nine, Self.reference(1, id: 1))
    let inZones = rules.decide(try Self.fire(local, 4), local, zones: ["Asia/Tokyo"], floor: cancel)
    #expect("\(inZones.verdict)" == "ignored" && inZones.record == nil)
    // By the floor.
    for (offset, verdict) in [(2, "canceledBefore"), (5, "scheduled")] as [(UInt64, String)] {
      let timed = ScheduleRules.Request(Self.reference(offset, id: 9), .timed(content: Self.content(Self.once), zones: []))
      #expect("\(rules.decide(timed, nil, floor: cancel).verdict)".hasPrefix(verdict))
    }
    #expect(
      "\(rules.decide(.init(scheduled.newest, .timed(content: Self.content(Self.once), zones: [])), scheduled, floor: cancel).verdict)"
        == "scheduled")
    #expect("\(rules.decide(try Self.fire(scheduled, 4), scheduled, floor: cancel).verdict)" == "ignored")
    #expect("\(rules.decide(try Self.fire(newer, 5), newer, floor: cancel).verdict)" == "\(ScheduleRules.Verdict.firing(.fired))")
  }

  @Test func `a cancel of all ends what is older, although its apns-id is known from another record`() throws {
    let rules = Rules()
    let cancel = ScheduleRules.Request(Self.reference(2, id: 7), .cancelAll)
    let first = try #require(rules.decide(cancel, try Self.schedule(Self.once, Self.reference(1, id: 1))).record)
    let scheduled = rules.decide(.init(Self.reference(3, id: 2), .timed(content: Self.content(Self.once), zones: [])), first)
    let repeated = ScheduleRules.Request(Self.reference(4, id: 7), .cancelAll)
    // An apns-id is also known from the request that scheduled.
    let own = try Self.schedule(Self.once, Self.reference(3, id: 7))
    for record in [try #require(scheduled.record), own] {
      let decision = rules.decide(repeated, record, floor: repeated.reference)
      #expect("\(decision.verdict)" == "canceled" && decision.superseded == record.newest)
      #expect(decision.record?.phase == .ended(.canceled))
      // Each record gets its first verdict again.
      let stored = try Self.stored(try #require(decision.record))
      let again = rules.decide(repeated, stored, floor: repeated.reference)
      #expect("\(again.verdict)" == "canceled" && again.superseded == record.newest && again.isAgain)
    }
    let ended = try #require(rules.decide(repeated, scheduled.record).record)
    #expect(rules.decide(cancel, ended).superseded == Self.reference(1, id: 1))
    let both = try #require(rules.decide(repeated, own).record)
    let again = rules.decide(.init(own.newest, .timed(content: Self.content(Self.once), zones: [])), both)
    #expect("\(again.verdict)" == "scheduled" && again.isAgain)
    // What is newer stays.
    #expect(rules.decide(cancel, scheduled.record).record == nil)
  }

  @Test func `a request without a schedule leaves no trace`() {
    let rules = Rules()
    let decision = rules.decide(.init(Self.reference(1, id: 1), .now), nil)
    #expect("\(decision.verdict)" == "passed" && decision.record == nil)
  }

  @Test func `devices drop what waits for a place when it is canceled or due at a time, and once`() throws {
    let rules = Rules()
    let placing = ScheduleRules.Request(Self.reference(5, id: 1), .place)
    let placed = rules.decide(placing, nil)
    #expect("\(placed.verdict)" == "passed" && placed.record?.placed == placing.reference)
    let again = rules.decide(placing, placed.record)
    #expect("\(again.verdict)" == "passed" && again.record == nil && again.isAgain)
    let kinds: [(ScheduleRules.Request.Kind, String)] = [
      (.timed(content: Self.content(Self.once), zones: []), "scheduled"), (.cancel, "canceled"), (.expired, "expired"),
    ]
    for (kind, verdict) in kinds {
      let request = ScheduleRules.Request(Self.reference(6, id: 2), kind)
      let decision = rules.decide(request, placed.record)
      #expect("\(decision.verdict)" == verdict && decision.withdrawn == placing.reference && decision.superseded == nil)
      let stored = try Self.stored(try #require(decision.record))
      let repeated = rules.decide(request, stored)
      #expect("\(repeated.verdict)" == verdict && repeated.withdrawn == placing.reference && repeated.superseded == nil)
      // The next one finds nothing of it.
      #expect(rules.decide(.init(Self.reference(7, id: 3), .cancel), stored).withdrawn == nil)
      // An older one that comes later is for the devices to decide, and changes nothing here.
      let older = rules.decide(.init(Self.reference(4, id: 4), .place), stored)
      #expect("\(older.verdict)" == "passed" && older.record == nil)
    }
    // A newer notification takes its place at the devices itself.
    let now = rules.decide(.init(Self.reference(6, id: 2), .now), placed.record)
    #expect("\(now.verdict)" == "passed" && now.withdrawn == nil && now.record?.phase == .ended(.replaced))
    // It ends what is due at a time.
    let scheduled = try Self.schedule(Self.each, Self.reference(1, id: 9))
    #expect(rules.decide(placing, scheduled).superseded == scheduled.newest)
  }

  @Test func `a trigger that is never due is rejected, and replaces nothing`() throws {
    let rules = Rules()
    let scheduled = try Self.schedule(Self.each, Self.reference(1, id: 1))
    for trigger in [
      #"{"type":"calendar","dateComponents":{"year":2001}}"#, #"{"type":"calendar","dateComponents":{"hour":9,"timeZone":"Moon/Sea"}}"#,
      #"{"type":"push"}"#,
    ] {
      let decision = rules.decide(.init(Self.reference(2, id: 2), .timed(content: Self.content(trigger), zones: [])), scheduled)
      guard case .rejected(let rejection) = decision.verdict else {
        Issue.record("\(decision.verdict)")
        continue
      }
      #expect(rejection.reason == .badRequestParams && decision.record == nil)
    }
  }

  @Test func `a person's devices in several zones have a due time in each, under one name`() throws {
    let rules = Rules()
    let zones: [Name] = ["Asia/Tokyo", "Europe/Rome", "Asia/Tokyo", "no zone"]
    let scheduled = try Self.schedule(Self.nine, Self.reference(1, id: 1), zones: zones)
    let times = try #require(scheduled.pending?.dueTimes)
    #expect(times.map(\.zone) == ["Asia/Tokyo", "Europe/Rome", "UTC"])
    // 2023-11-14 22:13 UTC: nine o'clock of the 15th in each zone.
    #expect(Set(times.map(\.name)).count == 1 && Set(times.map(\.due)).count == 3)
    let tokyo = try #require(rules.decide(try Self.fire(scheduled, 2, zone: "Asia/Tokyo"), scheduled).record)
    #expect(tokyo.pending?.dueTimes.filter { !$0.isOver }.map(\.zone) == ["Europe/Rome", "UTC"])
    let rome = try #require(rules.decide(try Self.fire(tokyo, 3, zone: "Europe/Rome"), tokyo).record)
    let utc = try #require(rules.decide(try Self.fire(rome, 4, zone: "UTC"), rome).record)
    #expect(utc.phase == .ended(.fired))
  }

  @Test func `a schedule follows its devices' zones`() throws {
    let rules = Rules()
    let scheduled = try Self.schedule(Self.daily, Self.reference(1, id: 1), zones: ["Asia/Tokyo"])
    #expect(rules.adapt(scheduled, toZones: ["Asia/Tokyo"], at: Self.start) == nil)
    let moved = try #require(rules.adapt(scheduled, toZones: ["Europe/Rome"], at: Self.start))
    #expect(moved.pending?.dueTimes.map(\.zone) == ["Europe/Rome"] && moved.serial == scheduled.serial + 1)
    #expect(rules.adapt(scheduled, toZones: [""], at: Self.start)?.pending?.dueTimes.map(\.zone) == ["UTC"])
    // Where there is no device, nobody has moved.
    #expect(rules.adapt(scheduled, toZones: [], at: Self.start) == nil)
    // An interval depends on no zone.
    #expect(rules.adapt(try Self.schedule(Self.each, Self.reference(1, id: 1)), toZones: ["Asia/Tokyo"], at: Self.start) == nil)
    // A one-off whose time is over in the new zone is due there at once.
    let once = try Self.schedule(Self.nine, Self.reference(1, id: 1), zones: ["America/New_York"])
    let now = Self.start + 8 * 3_600_000
    let east = try #require(rules.adapt(once, toZones: ["Asia/Tokyo"], at: now)?.pending?.earliest)
    #expect(east.due < now && east.name == once.pending?.earliest?.name)
  }

  @Test func `a one-off fires once in each of its zones`() throws {
    let rules = Rules()
    let zones: [Name] = ["Asia/Tokyo", "Europe/Rome", "America/New_York"]
    var record = try Self.schedule(Self.nine, Self.reference(1, id: 1), zones: zones)
    var fired: [Name] = []
    while let due = record.pending?.earliest, fired.count < 10 {
      fired.append(due.zone)
      let decision = rules.decide(try Self.fire(record, UInt64(fired.count) + 1), record, zones: zones)
      #expect(Self.word(decision.verdict) == "fired")
      record = try Self.stored(try #require(decision.record))
    }
    #expect(fired == zones && record.phase == .ended(.fired))
  }

  @Test func `in a new zone only the latest occurrence is due at once, however many have passed there`() throws {
    let rules = Rules()
    let each = #"{"type":"calendar","dateComponents":{"second":30},"repeats":true}"#
    var record = try Self.schedule(each, Self.reference(1, id: 1), zones: ["UTC"])
    record = try #require(rules.decide(try Self.fire(record, 2), record, zones: ["UTC"]).record)
    let now = try #require(record.pending?.earliest).due - 1_000
    let moved = try #require(rules.adapt(record, toZones: ["Asia/Kathmandu"], at: now))
    let latest = try #require(moved.pending?.earliest)
    #expect(latest.due <= now && now - latest.due < 60_000 && latest.previous == 0)
    let fired = try #require(rules.decide(try Self.fire(moved, 3, at: now), moved, zones: ["Asia/Kathmandu"]).record)
    #expect(try #require(fired.pending?.earliest).due > now)
  }

  @Test func `the firings of one instant are known again in every zone`() throws {
    let rules = Rules()
    let zones: [Name] = [
      "Europe/Amsterdam", "Europe/Berlin", "Europe/Brussels", "Europe/Copenhagen", "Europe/Madrid", "Europe/Oslo", "Europe/Paris",
      "Europe/Prague", "Europe/Rome", "Europe/Vienna", "Europe/Zurich",
    ]
    for trigger in [Self.nine, Self.daily] {
      var record = try Self.schedule(trigger, Self.reference(1, id: 1), zones: zones)
      let firings = try zones.enumerated().map { try Self.fire(record, UInt64($0) + 2, zone: $1) }
      #expect(Set(firings.map(\.at)).count == 1)
      for firing in firings { record = try Self.stored(try #require(rules.decide(firing, record, zones: zones).record)) }
      for firing in firings { #expect(Self.word(rules.decide(firing, record, zones: zones).verdict) == "fired") }
    }
  }

  @Test func `firings that are decided together have the fates that they have one after the other`() throws {
    let zones: [Name] = ["Asia/Tokyo", "Europe/Rome", "America/New_York"]
    for trigger in [Self.nine, Self.daily] {
      let scheduled = try Self.schedule(trigger, Self.reference(1, id: 1), zones: ["Europe/Rome", "Asia/Dubai"])
      let (rules, together) = (Rules(), Rules())
      let adapted = try #require(rules.adapt(scheduled, toZones: zones, at: Self.start))
      var firings = try zones.enumerated().map { try Self.fire(adapted, UInt64(2 + $0), zone: $1) }
      firings.append(try Self.fire(adapted, 9, zone: "Europe/Rome"))
      var (words, record): ([String], ScheduleRecord) = ([], scheduled)
      for firing in firings {
        let decision = rules.decide(firing, record, zones: zones)
        words.append(Self.word(decision.verdict))
        record = decision.record ?? record
      }
      let decisions = together.decide(firings, scheduled, zones: zones)
      #expect(decisions.map { Self.word($0.verdict) } == words && words.count { $0 == "fired" } == 3)
      #expect(decisions.last { $0.record != nil }?.record == record)
    }
  }

  @Test func `a firing of no occurrence adapts a schedule to its zones, and reaches nobody`() throws {
    let rules = Rules()
    let scheduled = try Self.schedule(Self.daily, Self.reference(1, id: 1), zones: ["America/New_York"])
    #expect(
      rules.isMissing("Europe/Rome", in: scheduled, isOnly: false) && !rules.isMissing("America/New_York", in: scheduled, isOnly: true))
    var firing = try Self.fire(scheduled, 2, at: Self.start)
    firing.dueTime = .init(zone: "Europe/Rome", due: 0, name: 0)
    let decision = rules.decide(firing, scheduled, zones: ["Europe/Rome"])
    let adapted = try #require(decision.record)
    #expect("\(decision.verdict)" == "ignored" && adapted.pending?.dueTimes.map(\.zone) == ["Europe/Rome"])
    #expect(adapted.serial == scheduled.serial + 1 && !rules.isMissing("Europe/Rome", in: adapted, isOnly: true))
    // Read again it changes nothing. Kafka may not have the state yet.
    let again = rules.decide(firing, adapted, zones: ["Europe/Rome"])
    #expect("\(again.verdict)" == "ignored" && again.record == nil && again.isAgain)
    // Of a schedule that was replaced it says nothing.
    firing.schedule = Self.reference(0, id: 9).revision
    let other = rules.decide(firing, scheduled, zones: ["Europe/Rome"])
    #expect(other.record == nil && !other.isAgain)
  }

  // MARK: Random histories

  /// What a person would keep: every event that changed anything, in its order, and nothing derived.
  private struct Model {
    struct Applied {
      var reference: JournalReference
      var verdict: String
    }
    struct Pending {
      var reference: JournalReference
      var requested: Int64
      var interval: Int64
      var repeats: Bool
      /// The due times that have fired, expired or were skipped.
      var over: Int64
    }
    var requests: [Applied] = []
    var firings: [Revision: String] = [:]
    var pending: Pending?

    mutating func request(_ reference: JournalReference, _ kind: Int, at time: Int64) -> String {
      if let same = requests.suffix(ScheduleRecord.maximumRemembered).last(where: { $0.reference.id == reference.id }) {
        return same.reference == reference ? same.verdict : "duplicate"
      }
      let newest = requests.map(\.reference).max { $0.revision.offset < $1.revision.offset }
      if let newest, reference.revision.offset < newest.revision.offset { return kind == 2 ? "passed" : "stale" }
      let wasPending = pending != nil
      let verdict: String
      switch kind {
      case 0, 1:
        pending = Pending(reference: reference, requested: time, interval: 60_000, repeats: kind == 1, over: time)
        verdict = "scheduled"
      case 2:
        if !wasPending { return "passed" }
        (pending, verdict) = (nil, "passed")
      default:
        (pending, verdict) = (nil, wasPending ? "canceled" : "tooLate")
      }
      requests.append(Applied(reference: reference, verdict: verdict))
      return verdict
    }

    var due: Int64? {
      guard let pending else { return nil }
      var due = pending.requested + pending.interval
      while due <= pending.over { due += pending.interval }
      return due
    }

    mutating func fire(_ revision: Revision, schedule: Revision, due: Int64, at time: Int64) -> String {
      if let known = firings[revision] { return known }
      guard var pending, pending.reference.revision == schedule, due == self.due, time >= due else { return "ignored" }
      var verdict = "fired"
      if !pending.repeats {
        verdict = time > due + 86_400_000 ? "expired" : "fired"
        self.pending = nil
      } else if time > due + 100_000 {
        var (skipped, next) = (0, due)
        while next < time - 100_000 { (skipped, next) = (skipped + 1, next + pending.interval) }
        pending.over = next - pending.interval
        self.pending = pending
        verdict = "skipped \(skipped)"
      } else {
        pending.over = due
        self.pending = pending
      }
      firings[revision] = verdict
      return verdict
    }
  }

  private static func word(_ verdict: ScheduleRules.Verdict) -> String {
    switch verdict {
    case .firing(.fired): "fired"
    case .firing(.expired): "expired"
    case .firing(.skipped(let count)): "skipped \(count)"
    case .stale: "stale"
    default: "\(verdict)"
    }
  }

  /// The record is written and read between any two events, as a crash would have it.
  private static func stored(_ record: ScheduleRecord) throws -> ScheduleRecord {
    var buffer = ByteBuffer()
    try record.append(to: &buffer)
    return try #require(buffer.withUnsafeBytes { ScheduleRecord($0) })
  }

  @Test(arguments: 0..<(isComplete ? 300 : 60)) func `a schedule does what its whole history says`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let rules = Rules()
    var model = Model()
    var record: ScheduleRecord?
    var (clock, offset) = (Self.start, UInt64(0))
    var past: [(Rules, inout Model, ScheduleRecord?) throws -> (ScheduleRules.Decision, String)] = []
    for step in 0..<60 {
      clock += [0, 1_000, 59_000, 60_000, 300_000, 90_000_000].randomElement(using: &random) ?? 0
      offset += UInt64.random(in: 1...3, using: &random)
      let event: (Rules, inout Model, ScheduleRecord?) throws -> (ScheduleRules.Decision, String)
      let time = clock
      if Int.random(in: 0..<5, using: &random) < 2 {
        let kind = Int.random(in: 0..<4, using: &random)
        // Some come late, behind newer ones, and some have an id that was there.
        let own = Bool.random(using: &random) ? offset : max(offset, 4) - UInt64.random(in: 0...3, using: &random)
        let id = Int.random(in: 0..<6, using: &random) == 0 ? UInt64.random(in: 1...60, using: &random) : 1000 + UInt64(step)
        let reference = Self.reference(own, id: id, at: time)
        event = { rules, model, record in
          let content = Self.content(kind == 1 ? Self.each : Self.once, requested: time)
          let request = ScheduleRules.Request(reference, kind < 2 ? .timed(content: content, zones: []) : kind == 2 ? .now : .cancel)
          return (rules.decide(request, record), model.request(reference, kind, at: time))
        }
      } else {
        let isForged = Int.random(in: 0..<5, using: &random) == 0
        let revision = Revision(timestamp: UInt64(time), partition: 0, offset: offset)
        let known = record?.pending?.earliest
        let due = (known?.due ?? time) + (isForged ? [0, 60_000, -60_000].randomElement(using: &random) ?? 0 : 0)
        let schedule = record?.newest.revision ?? revision
        // An interval's name is its number.
        let name = record?.pending.map { (due - $0.requested) / 60_000 } ?? 0
        event = { rules, model, record in
          let firing = ScheduleRules.Firing(revision: revision, at: time, schedule: schedule, .init(zone: "", due: due, name: name))
          return (rules.decide(firing, record), model.fire(revision, schedule: schedule, due: due, at: time))
        }
      }
      // A worker that was killed reads its last records once more.
      let events = (Int.random(in: 0..<4, using: &random) == 0 ? past.suffix(3) : []) + [event]
      past.append(event)
      for event in events {
        let (decision, expected) = try event(rules, &model, record)
        #expect(Self.word(decision.verdict) == expected, "seed \(seed), step \(step)")
        if let new = decision.record {
          #expect(new.serial == (record?.serial ?? 0) + 1)
          record = try Self.stored(new)
        }
        #expect((record?.pending?.earliest?.due) == model.due, "seed \(seed), step \(step)")
      }
    }
  }

  // MARK: Devices that move

  /// A person's devices in zones without daylight saving time, and what each was shown: by its date.
  private struct Travellers {
    /// How far the clocks are ahead of UTC, in minutes.
    static let zones: [Name: Int64] = ["Asia/Tokyo": 540, "Asia/Kolkata": 330, "Africa/Lagos": 60, "America/Bogota": -300]
    static let minute: Int64 = 60_000
    static let day = 1_440 * minute

    struct Device {
      var zone: Name
      var shown: Set<Int64> = []
    }
    var devices: [Device]

    /// The first moment after another at which it is nine o'clock on the clock of a zone, and the day's number there.
    static func nine(in zone: Name, after moment: Int64) -> (at: Int64, date: Int64) {
      let ahead = (zones[zone] ?? 0) * minute
      let date = (moment + ahead - 540 * minute) / day + 1
      return (date * day + 540 * minute - ahead, date)
    }

    var here: [Name] { devices.map(\.zone) }
  }

  /// What runs in the lane: each due time is fired as it comes, and each move is followed by a firing of no occurrence.
  private struct Lane {
    let rules = Rules()
    var record: ScheduleRecord
    var offset: UInt64 = 1
    var firings = 0

    mutating func apply(_ time: ScheduleRecord.Pending.DueTime, at now: Int64, _ zones: [Name], isRepeated: Bool) throws -> Bool {
      offset += 1
      let firing = ScheduleRules.Firing(
        revision: Revision(timestamp: UInt64(now), partition: 0, offset: offset), at: now, schedule: record.newest.revision, time)
      let decision = rules.decide(firing, record, zones: zones)
      if let new = decision.record { record = try ScheduleRulesTests.stored(new) }
      if isRepeated {
        let again = rules.decide(firing, record, zones: zones)
        #expect("\(again.verdict)" == "\(decision.verdict)" && again.record == nil && again.isAgain)
      }
      return ScheduleRulesTests.word(decision.verdict) == "fired"
    }
  }

  @Test(arguments: 0..<(isComplete ? 200 : 40)) func `each device is shown nine o'clock at its own nine o'clock, once, wherever it moves`(
    seed: UInt64
  ) throws {
    var random = SeededRandom(seed: seed)
    let repeats = seed % 2 == 0
    let zones = Travellers.zones.keys.sorted()
    var travellers = Travellers(
      devices: (0..<Int.random(in: 1...4, using: &random)).map { _ in .init(zone: zones.randomElement(using: &random) ?? "UTC") })
    var lane = Lane(record: try Self.schedule(repeats ? Self.daily : Self.nine, Self.reference(1, id: 1), zones: travellers.here))
    // The first nine o'clock of the day that begins somewhere after the request.
    let first = zones.map { Travellers.nine(in: $0, after: Self.start).date }.min() ?? 0
    var (clock, moves) = (Self.start, 0)
    var expected = travellers.devices.map { _ in Set<Int64>() }

    func fire(until end: Int64) throws {
      while let due = lane.record.pending?.earliest, due.due <= end {
        let now = max(clock, due.due)
        lane.firings += 1
        try #require(lane.firings < 2_000, "seed \(seed): it fires without end")
        let hasFired = try lane.apply(due, at: now, travellers.here, isRepeated: Bool.random(using: &random))
        guard hasFired else { continue }
        let isLast = lane.record.pending == nil
        for index in travellers.devices.indices where isLast || travellers.devices[index].zone == due.zone {
          let date = Travellers.nine(in: due.zone, after: due.due - 1).date
          // It has the apns-id of this date.
          guard travellers.devices[index].shown.insert(date).inserted else { continue }
          #expect(now >= due.due && (!repeats || now - due.due <= 900_000), "seed \(seed): \(now - due.due) late")
        }
      }
    }

    for _ in 0..<40 {
      if Bool.random(using: &random) {
        let end = clock + Int64.random(in: 1...900, using: &random) * Travellers.minute
        // Whoever is at a place when it is nine o'clock there is shown it.
        for (index, device) in travellers.devices.enumerated() {
          let nine = Travellers.nine(in: device.zone, after: clock)
          if nine.at <= end { expected[index].insert(nine.date) }
        }
        try fire(until: end)
        clock = end
      } else {
        moves += 1
        let index = Int.random(in: 0..<travellers.devices.count, using: &random)
        let zone = zones.randomElement(using: &random) ?? "UTC"
        travellers.devices[index].zone = zone
        if lane.record.pending != nil, lane.rules.isMissing(zone, in: lane.record, isOnly: false) {
          let isFired = try lane.apply(.init(zone: zone, due: 0, name: 0), at: clock, travellers.here, isRepeated: true)
          #expect(!isFired)
        }
        try fire(until: clock)
      }
      for (index, device) in travellers.devices.enumerated() {
        let missing = repeats ? expected[index].subtracting(device.shown) : []
        #expect(missing.isEmpty, "seed \(seed): device \(index) has not been shown \(missing)")
        #expect(device.shown.allSatisfy { $0 >= first })
      }
      #expect(lane.firings <= 40 * travellers.devices.count + moves * travellers.devices.count + 40)
    }
    guard !repeats else { return }
    try fire(until: clock + 2 * Travellers.day)
    #expect(lane.record.pending == nil, "seed \(seed): a one-off ends")
    // Everybody who was there from the beginning has been shown it.
    for (index, device) in travellers.devices.enumerated() { #expect(!device.shown.isEmpty, "seed \(seed): device \(index)") }
  }
}
