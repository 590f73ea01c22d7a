import Foundation
import Notifications
import Testing

@testable import Calendars

/// When triggers are due: the rows of the table of triggers, and what is refused.
@Suite struct DueTimesTests {
  private typealias Unit = CalendarUnits.Unit

  private static func trigger(_ units: KeyValuePairs<Unit, Int>, _ zone: Name? = nil, repeats: Bool = true, notBefore: Int64? = nil)
    -> TimedTrigger
  {
    var all = CalendarUnits()
    for (unit, value) in units { all[unit] = value }
    return TimedTrigger(.calendar(all, zone: zone), repeats: repeats, notBefore: notBefore)
  }

  private static func moment(_ text: String) throws -> Int64 { try #require(Timestamp.parse(text)) }

  /// The first due times after a moment, as the zone's clocks show them.
  private static func due(_ trigger: TimedTrigger, _ zone: Name, after text: String, count: Int) throws -> [String] {
    var times = DueTimes()
    let clock = DateFormatter()
    clock.locale = Locale(identifier: "en_US_POSIX")
    clock.timeZone = TimeZone(identifier: zone.text)
    clock.dateFormat = "yyyy-MM-dd HH:mm:ss"
    let requested = try moment(text)
    var (found, last) = ([String](), requested)
    while found.count < count, let next = try times.next(of: trigger, requested: requested, after: last, deviceZone: zone) {
      #expect(next.due > last)
      found.append(clock.string(from: Date(timeIntervalSince1970: Double(next.due) / 1000)))
      last = next.due
    }
    return found
  }

  /// A row of the table: what is asked for, where, from when on, and when it is due.
  private struct Row: CustomTestStringConvertible, Sendable {
    var title: String
    var trigger: TimedTrigger
    var zone: Name
    var after: String
    var due: [String]

    var testDescription: String { title }
  }

  private static let rows: [Row] = [
    Row(
      title: "a wall time that a gap skips", trigger: trigger([.hour: 2, .minute: 30]), zone: "America/New_York",
      after: "2022-03-12T12:00:00Z", due: ["2022-03-13 03:30:00", "2022-03-14 02:30:00"]),
    Row(
      title: "a wall time that exists twice", trigger: trigger([.hour: 1, .minute: 30]), zone: "America/New_York",
      after: "2021-11-06T12:00:00Z", due: ["2021-11-07 01:30:00", "2021-11-08 01:30:00"]),
    Row(
      title: "midnight in a gap", trigger: trigger([.hour: 0, .minute: 0]), zone: "Africa/Cairo", after: "2023-04-27T12:00:00Z",
      due: ["2023-04-28 01:00:00", "2023-04-29 00:00:00"]),
    Row(
      title: "a half-hour gap", trigger: trigger([.hour: 2, .minute: 15]), zone: "Australia/Lord_Howe", after: "2026-10-03T12:00:00Z",
      due: ["2026-10-04 02:45:00", "2026-10-05 02:15:00"]),
    Row(
      title: "each hour through a half-hour gap", trigger: trigger([.minute: 15]), zone: "Australia/Lord_Howe",
      after: "2026-10-03T14:00:00Z", due: ["2026-10-04 01:15:00", "2026-10-04 02:45:00", "2026-10-04 03:15:00"]),
    Row(
      title: "a gap of two hours", trigger: trigger([.hour: 2, .minute: 0]), zone: "Antarctica/Troll", after: "2027-03-27T12:00:00Z",
      due: ["2027-03-28 04:00:00", "2027-03-29 02:00:00"]),
    Row(
      title: "a gap that ends at midnight", trigger: trigger([.hour: 23, .minute: 30]), zone: "America/Nuuk", after: "2027-03-27T12:00:00Z",
      due: ["2027-03-28 00:30:00", "2027-03-28 23:30:00"]),
    Row(
      title: "a gap that ends at midnight, asked from behind it", trigger: trigger([.hour: 23, .minute: 30]), zone: "America/Nuuk",
      after: "2027-03-28T01:10:00Z", due: ["2027-03-28 00:30:00", "2027-03-28 23:30:00"]),
    Row(
      title: "the only day has a gap that ends at midnight",
      trigger: trigger([.year: 2027, .month: 3, .day: 27, .hour: 23, .minute: 30], repeats: false), zone: "America/Scoresbysund",
      after: "2027-03-01T12:00:00Z", due: ["2027-03-28 00:30:00"]),
    Row(
      title: "each hour through a gap that ends at midnight", trigger: trigger([.minute: 30]), zone: "America/Nuuk",
      after: "2027-03-28T00:00:00Z", due: ["2027-03-27 22:30:00", "2027-03-28 00:30:00", "2027-03-28 01:30:00"]),
    Row(
      title: "a day that does not exist", trigger: trigger([.hour: 9]), zone: "Pacific/Apia", after: "2011-12-29T12:00:00Z",
      due: ["2011-12-29 09:00:00", "2011-12-31 09:00:00", "2012-01-01 09:00:00"]),
    Row(
      title: "day 31", trigger: trigger([.day: 31]), zone: "America/Los_Angeles", after: "2016-07-15T12:00:00Z",
      due: [
        "2016-07-31 00:00:00", "2016-08-31 00:00:00", "2016-10-01 00:00:00", "2016-10-31 00:00:00", "2016-12-01 00:00:00",
        "2016-12-31 00:00:00", "2017-01-31 00:00:00", "2017-03-01 00:00:00", "2017-03-31 00:00:00", "2017-05-01 00:00:00",
        "2017-05-31 00:00:00", "2017-07-01 00:00:00",
      ]),
    Row(
      title: "29 February", trigger: trigger([.month: 2, .day: 29]), zone: "UTC", after: "2026-01-01T00:00:00Z",
      due: ["2026-03-01 00:00:00", "2027-03-01 00:00:00", "2028-02-29 00:00:00", "2029-03-01 00:00:00"]),
    Row(
      title: "30 February", trigger: trigger([.month: 2, .day: 30]), zone: "UTC", after: "2026-01-01T00:00:00Z",
      due: ["2026-03-01 00:00:00", "2027-03-01 00:00:00", "2028-03-01 00:00:00"]),
    Row(
      title: "the fifth Monday", trigger: trigger([.weekday: 2, .weekdayOrdinal: 5]), zone: "UTC", after: "2026-01-01T00:00:00Z",
      due: ["2026-03-30 00:00:00", "2026-06-29 00:00:00", "2026-08-31 00:00:00"]),
    Row(
      title: "the second quarter", trigger: trigger([.quarter: 2]), zone: "UTC", after: "2026-01-01T00:00:00Z",
      due: ["2026-04-01 00:00:00", "2027-04-01 00:00:00"]),
    Row(
      title: "a month, asked from within it", trigger: trigger([.month: 4, .hour: 9]), zone: "UTC", after: "2026-04-01T10:00:00Z",
      due: ["2027-04-01 09:00:00", "2028-04-01 09:00:00"]),
    Row(
      title: "the first Thursday of December, asked from within December", trigger: trigger([.month: 12, .weekday: 5, .hour: 6]),
      zone: "Africa/Cairo", after: "2043-12-02T12:00:00Z", due: ["2043-12-03 06:00:00", "2044-12-01 06:00:00"]),
    Row(
      title: "the last month of a quarter gives nothing to the next", trigger: trigger([.quarter: 2, .day: 31]), zone: "UTC",
      after: "2026-01-01T00:00:00Z", due: ["2026-05-01 00:00:00", "2027-05-01 00:00:00"]),
    Row(
      title: "a year that is past", trigger: trigger([.year: 2025, .month: 6, .day: 1]), zone: "UTC", after: "2026-01-01T00:00:00Z", due: []
    ),
    Row(
      title: "a day of one year", trigger: trigger([.year: 2026, .month: 2, .day: 30]), zone: "UTC", after: "2025-01-01T00:00:00Z",
      due: ["2026-03-01 00:00:00"]),
    Row(
      title: "each hour through an overlap", trigger: trigger([.minute: 30]), zone: "America/New_York", after: "2021-11-07T04:00:00Z",
      due: ["2021-11-07 00:30:00", "2021-11-07 01:30:00", "2021-11-07 01:30:00", "2021-11-07 02:30:00"]),
    Row(
      title: "a half-hour gap at the end of a day", trigger: trigger([.hour: 23, .minute: 45]), zone: "Asia/Pyongyang",
      after: "2018-05-04T12:00:00Z", due: ["2018-05-05 00:15:00", "2018-05-05 23:45:00", "2018-05-06 23:45:00"]),
    Row(
      title: "not before a time", trigger: trigger([.hour: 9], notBefore: 1_767_258_000_000), zone: "UTC", after: "2020-01-01T00:00:00Z",
      due: ["2026-01-01 09:00:00", "2026-01-02 09:00:00"]),
  ]

  @Test(arguments: rows)
  private func `a calendar trigger is due as the table says`(row: Row) throws {
    #expect(try Self.due(row.trigger, row.zone, after: row.after, count: max(row.due.count, 1)) == row.due)
  }

  @Test func `the end of a day that comes again after midnight is not that of the next day`() throws {
    let trigger = Self.trigger([.weekday: 1, .hour: 23, .minute: 49])
    // There clocks went back from 00:01 of the fourth to 23:01 of the third.
    #expect(
      try Self.due(trigger, "America/St_Johns", after: "2007-11-02T01:00:00Z", count: 2) == ["2007-11-04 23:49:00", "2007-11-11 23:49:00"])
  }

  @Test func `a wall time that exists twice is due the first time only`() throws {
    var times = DueTimes()
    let requested = try Self.moment("2021-11-06T12:00:00Z")
    let trigger = Self.trigger([.hour: 1, .minute: 30])
    let first = try #require(try times.next(of: trigger, requested: requested, after: requested, deviceZone: "America/New_York"))
    #expect(try first.due == Self.moment("2021-11-07T05:30:00Z"))
    let second = try times.next(of: trigger, requested: requested, after: first.due, deviceZone: "America/New_York")
    #expect(try second?.due == Self.moment("2021-11-08T06:30:00Z"))
  }

  @Test func `a trigger's own zone outranks the device's`() throws {
    var times = DueTimes()
    let trigger = Self.trigger([.hour: 9, .minute: 0], "Europe/Rome")
    let requested = try Self.moment("2026-07-01T00:00:00Z")
    let next = try times.next(of: trigger, requested: requested, after: requested, deviceZone: "Asia/Tokyo")
    #expect(try next?.due == Self.moment("2026-07-01T07:00:00Z"))
  }

  @Test func `an interval is counted from the request, without drift`() throws {
    var times = DueTimes()
    let once = TimedTrigger(.interval(1))
    #expect(try times.next(of: once, requested: 5_000, after: 0, deviceZone: "UTC") == .init(due: 5_001, name: 1))
    #expect(try times.next(of: once, requested: 5_000, after: 5_001, deviceZone: "UTC") == nil)
    let repeating = TimedTrigger(.interval(60_000), repeats: true)
    for (after, due, name) in [(0, 65_000, 1), (64_999, 65_000, 1), (65_000, 125_000, 2), (6_004_999, 6_005_000, 100)]
      as [(Int64, Int64, Int64)]
    {
      #expect(try times.next(of: repeating, requested: 5_000, after: after, deviceZone: "UTC") == .init(due: due, name: name))
    }
    let later = TimedTrigger(.interval(60_000), repeats: true, notBefore: 125_001)
    #expect(try times.next(of: later, requested: 5_000, after: 5_000, deviceZone: "UTC") == .init(due: 185_000, name: 3))
    #expect(try times.count(of: repeating, requested: 5_000, after: 65_000, before: 305_000, deviceZone: "UTC") == 3)
    #expect(try times.count(of: repeating, requested: 0, after: 0, before: 600_000_001, deviceZone: "UTC", limit: 7) == 10_000)
    let hourly = Self.trigger([.minute: 0])
    // Near a change of the clock, too, where the day has an hour more or less.
    let minutely = Self.trigger([.second: 0], "Europe/Rome")
    for (midnight, minutes) in [
      ("2026-03-27T23:00:00Z", 1_440), ("2026-03-28T23:00:00Z", 1_380), ("2026-10-24T22:00:00Z", 1_500), ("2026-10-25T23:00:00Z", 1_440),
    ] {
      let midnight = try Self.moment(midnight)
      #expect(
        try times.count(
          of: minutely, requested: 0, after: midnight - 1, before: midnight + Int64(minutes) * 60_000, deviceZone: "UTC", limit: 2_000)
          == minutes)
    }
    #expect(try times.count(of: minutely, requested: 0, after: 0, before: .max, deviceZone: "UTC") == 100)
    #expect(try times.count(of: hourly, requested: 0, after: 0, before: .max, deviceZone: "UTC", limit: 7) == 7)
  }

  @Test func `the last occurrence of a stretch is the one at which a walk ends`() throws {
    var times = DueTimes()
    var random = SystemRandomNumberGenerator()
    let triggers = [
      Self.trigger([.minute: 0]), Self.trigger([.hour: 9]), Self.trigger([.weekday: 1, .second: 0], "Europe/Rome"),
      Self.trigger([.weekOfMonth: 1, .second: 30]), Self.trigger([.second: 0], "Australia/Lord_Howe"),
      TimedTrigger(.interval(61_000), repeats: true),
    ]
    for _ in 0..<20 {
      let trigger = try #require(triggers.randomElement(using: &random))
      let start = try Self.moment("2026-03-20T00:00:00Z") + Int64.random(in: 0..<400 * 86_400_000, using: &random)
      let end = start + Int64.random(in: 0..<16 * 3_600_000, using: &random)
      var walked: DueTimes.Occurrence?
      while let next = try times.next(of: trigger, requested: 0, after: walked?.due ?? start, deviceZone: "UTC"), next.due <= end {
        walked = next
      }
      let last = try times.last(of: trigger, requested: 0, after: start, until: end, deviceZone: "UTC")
      #expect(last == walked, "\(trigger) \(start) \(end)")
    }
  }

  @Test func `a one-off is due the first time only`() throws {
    var times = DueTimes()
    let requested = try Self.moment("2026-11-26T12:00:00Z")
    let trigger = Self.trigger([.hour: 9], repeats: false)
    let first = try #require(try times.next(of: trigger, requested: requested, after: requested, deviceZone: "UTC"))
    #expect(try first.due == Self.moment("2026-11-27T09:00:00Z"))
    #expect(try times.next(of: trigger, requested: requested, after: first.due - 1, deviceZone: "UTC") == first)
    #expect(try times.next(of: trigger, requested: requested, after: first.due, deviceZone: "UTC") == nil)
  }

  @Test func `numbers from outside never trap`() throws {
    var times = DueTimes()
    let triggers = [
      TimedTrigger(.interval(1)), TimedTrigger(.interval(315_532_800_000), repeats: true, notBefore: Timestamp.latest),
      Self.trigger([.second: 59]), Self.trigger([.year: 9999, .month: 12, .day: 31]), Self.trigger([.day: 31], notBefore: Timestamp.latest),
    ]
    for trigger in triggers {
      for requested in [Int64.min, -1, 0, 1_700_000_000_000, Timestamp.latest, .max] {
        for after in [Int64.min, 0, requested, Timestamp.latest - 1, .max] {
          let next = try times.next(of: trigger, requested: requested, after: after, deviceZone: "Pacific/Kiritimati")
          if let next { #expect(next.due > max(after, 0) && next.due <= Timestamp.latest) }
          _ = try times.count(of: trigger, requested: requested, after: after, before: .max, deviceZone: "UTC", limit: 3)
        }
      }
    }
  }

  @Test(
    arguments: [
      "Europe/rome", "europe/Rome", "Rome", "", "GMT+3", "GMT+1", "GMT+00", "+03:00", "IST", "PST", "Europe/Rome ", "../../etc/passwd",
      "Etc/Unknown",
      "Europe/Romé",
    ] as [Name])
  func `a zone that the database does not have is refused`(zone: Name) throws {
    var times = DueTimes()
    let isZone = times.isZone(zone)
    #expect(!isZone)
    let rejection = #expect(throws: Rejection.self) {
      try times.check(Self.trigger([.hour: 9], zone), requested: 0, deviceZone: "UTC")
    }
    #expect(rejection?.reason == .badRequestParams && rejection?.field.description == "trigger.dateComponents.timeZone")
  }

  @Test(
    arguments: [
      "UTC", "Etc/UTC", "GMT", "EST", "CET", "Asia/Calcutta", "US/Pacific", "Europe/Kyiv", "Europe/Kiev", "Etc/GMT+5", "GMT+0", "GMT-0",
      "GMT0",
    ] as [Name])
  func `a zone that the database has is found, old names too`(zone: Name) {
    var times = DueTimes()
    let isZone = times.isZone(zone)
    #expect(isZone)
  }

  @Test func `a trigger that is never due is refused`() throws {
    var times = DueTimes()
    let now = try Self.moment("2026-11-26T12:00:00Z")
    let never: [TimedTrigger] = [
      Self.trigger([.year: 2025, .hour: 9]), Self.trigger([.year: 2026, .month: 11, .day: 26, .hour: 9], "UTC", repeats: false),
      Self.trigger([.month: 2, .quarter: 3]), Self.trigger([.month: 6, .weekOfYear: 2]), Self.trigger([.day: 7, .weekdayOrdinal: 3]),
      Self.trigger([.year: 2068]),
    ]
    for trigger in never {
      let rejection = #expect(throws: Rejection.self) { try times.check(trigger, requested: now, deviceZone: "UTC") }
      #expect(rejection?.reason == .badRequestParams && rejection?.field.description == "trigger.dateComponents")
    }
    try times.check(Self.trigger([.year: 2026, .month: 11, .day: 26, .hour: 13]), requested: now, deviceZone: "UTC")
  }

  @Test(.timeLimit(.minutes(10))) func `a search that finds nothing ends after a bounded number of steps`() throws {
    // No two of these ask for the same, so nothing is remembered, and each would take the search through all years.
    for minute in 0..<60 {
      for hour in 0..<24 {
        let requested = Int64(hour * 60 + minute) * 3_600_000
        var times = DueTimes()
        for units in [[.month: 2, .quarter: 3], [.month: 6, .weekOfYear: 2], [.day: 7, .weekdayOrdinal: 3]] as [[Unit: Int]] {
          var all = CalendarUnits()
          for (unit, value) in units { all[unit] = value }
          (all[.hour], all[.minute]) = (hour, minute)
          let trigger = TimedTrigger(.calendar(all, zone: "America/New_York"), repeats: true)
          #expect(try times.next(of: trigger, requested: requested, after: requested, deviceZone: "UTC") == nil)
        }
      }
    }
  }

  @Test func `the rejection of a trigger that is never due names the member that is the cause`() throws {
    let now = try Self.moment("2026-11-26T12:00:00Z")
    let far = Timestamp.latest
    let cases: [(TimedTrigger, requested: Int64, String)] = [
      (TimedTrigger(.interval(60_000), repeats: true, notBefore: far), now, "trigger.notBefore"),
      (Self.trigger([.year: 2027], notBefore: try Self.moment("2030-01-01T00:00:00Z")), now, "trigger.notBefore"),
      (Self.trigger([.year: 2025], notBefore: try Self.moment("2030-01-01T00:00:00Z")), now, "trigger.dateComponents"),
      (TimedTrigger(.interval(60_000)), far, "trigger.timeInterval"),
      (TimedTrigger(.interval(60_000), repeats: true, notBefore: far), far, "trigger.timeInterval"),
    ]
    for (trigger, requested, field) in cases {
      var times = DueTimes()
      let rejection = #expect(throws: Rejection.self) { try times.check(trigger, requested: requested, deviceZone: "UTC") }
      #expect(rejection?.reason == .badRequestParams && rejection?.field.description == field)
    }
  }

  @Test func `an occurrence is named by its wall time, the same in each zone`() throws {
    var times = DueTimes()
    let requested = try Self.moment("2026-11-26T00:00:00Z")
    func name(_ zone: Name, _ units: KeyValuePairs<Unit, Int>, after: Int64) throws -> DueTimes.Occurrence {
      try #require(try times.next(of: Self.trigger(units), requested: 0, after: after, deviceZone: zone))
    }
    let rome = try name("Europe/Rome", [.hour: 9, .minute: 0], after: requested)
    let tokyo = try name("Asia/Tokyo", [.hour: 9, .minute: 0], after: try Self.moment("2026-11-25T20:00:00Z"))
    #expect(rome.name == tokyo.name && rome.due != tokyo.due)
    // What a clock shows twice has two names, in their order.
    let first = try name("America/New_York", [.minute: 30], after: try Self.moment("2021-11-07T05:00:00Z"))
    let second = try name("America/New_York", [.minute: 30], after: first.due)
    #expect(second.due - first.due == 3_600_000 && second.name == first.name + 1)
  }

  @Test func `an occurrence that was computed with other data of its zone is found again by its name`() throws {
    var random = SystemRandomNumberGenerator()
    let zones: [Name] = ["Europe/Rome", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kathmandu"]
    for number in 0..<120 {
      var times = DueTimes()
      let zone = zones[number % zones.count]
      var units = CalendarUnits()
      if Bool.random(using: &random) { units[.hour] = .random(in: 0...23, using: &random) }
      units[.minute] = .random(in: 0...59, using: &random)
      let trigger = TimedTrigger(.calendar(units, zone: nil), repeats: number % 4 > 0)
      let requested = Int64.random(in: 1_600_000_000_000...1_800_000_000_000, using: &random)
      let right = try #require(try times.next(of: trigger, requested: requested, after: requested, deviceZone: zone))
      for minutes in [-1440, -60, 0, 30, 120] as [Int64] {
        var wrong = right
        wrong.due += minutes * 60_000
        let found = try times.again(wrong, of: trigger, requested: requested, deviceZone: zone)
        // At the wrong moment a clock that is set back may show the same reading again.
        #expect(found == right || found == wrong && minutes != 0, "\(zone) \(units) \(requested) \(minutes)")
      }
    }
    // The occurrence is gone: the next one takes its place.
    var times = DueTimes()
    let requested = try Self.moment("2026-11-26T00:00:00Z")
    let gone = DueTimes.Occurrence(due: try Self.moment("2026-11-26T07:30:00Z"), name: 2 * (try Self.moment("2026-11-26T09:30:00Z") / 1000))
    let next = try times.again(gone, of: Self.trigger([.hour: 9, .minute: 0]), requested: requested, deviceZone: "Europe/Rome")
    #expect(next?.due == (try Self.moment("2026-11-27T08:00:00Z")))
  }

  @Test(arguments: [Int64.min, -1, 0, 1, Timestamp.latest, .max], [Int64.min, 0, .max])
  func `no occurrence that is looked for again traps`(due: Int64, name: Int64) throws {
    var times = DueTimes()
    for repeats in [false, true] {
      _ = try times.again(
        .init(due: Timestamp.bounded(due), name: name), of: Self.trigger([.hour: 9], repeats: repeats), requested: due, deviceZone: "UTC")
    }
  }

  @Test func `remembered answers are those of a search`() throws {
    var remembering = DueTimes(capacity: 3)
    var random = SystemRandomNumberGenerator()
    for _ in 0..<400 {
      let trigger = Self.trigger([.weekday: .random(in: 1...3, using: &random), .hour: .random(in: 0...1, using: &random)])
      let after = Int64.random(in: 1_700_000_000_000...1_702_000_000_000, using: &random)
      var fresh = DueTimes()
      let zone: Name = Bool.random(using: &random) ? "UTC" : "Europe/Rome"
      let due = try fresh.next(of: trigger, requested: 0, after: after, deviceZone: zone)
      #expect(try remembering.next(of: trigger, requested: 0, after: after, deviceZone: zone) == due)
    }
  }
}
