import Foundation
import Notifications
import TestSupport
import Testing

@testable import Calendars

/// When quiet hours hold, against a calendar that is asked minute by minute.
@Suite struct QuietCalendarTests {
  private static func milliseconds(_ text: String) throws -> Int64 {
    Int64(try Date(text, strategy: .iso8601).timeIntervalSince1970 * 1_000)
  }

  /// Whether they hold, as a person would say it who looks at the clock and at the calendar on the wall.
  private static func isQuiet(_ hours: QuietHours, _ calendar: Calendar, _ moment: Date) -> Bool {
    let parts = calendar.dateComponents([.weekday, .hour, .minute], from: moment)
    guard let weekday = parts.weekday, let hour = parts.hour, let minute = parts.minute else { return false }
    let (now, yesterday) = (hour * 60 + minute, weekday == 1 ? 7 : weekday - 1)
    func begins(_ day: Int) -> Bool { hours.days >> UInt8(day - 1) & 1 == 1 }
    if hours.from < hours.to { return begins(weekday) && now >= hours.from && now < hours.to }
    return begins(weekday) && now >= hours.from || begins(yesterday) && now < hours.to
  }

  @Test func `an answer is that of the wall clock, and stands until it says`() throws {
    var (random, calendar) = (SeededRandom(seed: 5), QuietCalendar())
    let zones = [
      "Europe/Rome", "America/New_York", "Africa/Cairo", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu",
      "UTC",
      "America/St_Johns", "Pacific/Kiritimati",
    ]
    for zone in zones {
      var wall = Calendar(identifier: .gregorian)
      wall.timeZone = try #require(TimeZone(identifier: zone))
      var (seen, changes) = (Set<Bool>(), 0)
      for _ in 0..<40 {
        let times = (0..<2).map { _ in Int.random(in: 0..<96, using: &random) * 15 }
        let hours = QuietHours(from: times[0], to: times[1], days: .random(in: 1...0x7F, using: &random), timeZone: zone)
        // Every other one lies at a change of the zone's offset.
        var start = Date(timeIntervalSince1970: TimeInterval(Int.random(in: 1_200_000_000..<1_900_000_000, using: &random)))
        if random.next() % 2 == 0, let change = wall.timeZone.nextDaylightSavingTimeTransition(after: start) {
          start = change.addingTimeInterval(TimeInterval(Int.random(in: -7_200..<7_200, using: &random)))
          changes += 1
        }
        let now = Int64(start.timeIntervalSince1970 * 1_000) + Int64.random(in: 0..<1_000, using: &random)
        let found = calendar.answer(for: hours, at: now)
        let answer = try #require(found)
        #expect(answer.until > now && answer.until <= now + 86_400_000)
        var moment = now
        while moment < answer.until {
          let expected = Self.isQuiet(hours, wall, Date(timeIntervalSince1970: TimeInterval(moment / 1_000)))
          if expected != answer.isQuiet {
            Issue.record("\(hours) at \(moment), \((moment - now) / 1_000) s after \(now)")
            break
          }
          moment = moment / 60_000 * 60_000 + 60_000
        }
        seen.insert(answer.isQuiet)
      }
      #expect(seen == [true, false], "\(zone)")
      if !["UTC", "Asia/Kathmandu", "Pacific/Kiritimati", "Pacific/Apia"].contains(zone) { #expect(changes > 0, "\(zone)") }
    }
  }

  @Test func `they go over midnight, and count for the day on which they begin`() throws {
    var calendar = QuietCalendar()
    // From Friday evening to Saturday morning only.
    let hours = QuietHours(from: 22 * 60, to: 7 * 60, days: 1 << 5, timeZone: "Europe/Rome")
    for (moment, isQuiet, until) in [
      ("2026-11-27T20:59:59Z", false, "2026-11-27T21:00:00Z"), ("2026-11-27T21:00:00Z", true, "2026-11-28T06:00:00Z"),
      ("2026-11-28T05:59:59Z", true, "2026-11-28T06:00:00Z"), ("2026-11-28T06:00:00Z", false, "2026-11-28T21:00:00Z"),
      ("2026-11-28T22:00:00Z", false, "2026-11-29T06:00:00Z"),
    ] {
      let answer = calendar.answer(for: hours, at: try Self.milliseconds(moment))
      #expect(answer == .init(isQuiet: isQuiet, until: try Self.milliseconds(until)), "\(moment)")
    }
  }

  @Test func `equal times are 24 hours, and a zone that nobody knows has no answer`() throws {
    var calendar = QuietCalendar()
    let hours = QuietHours(from: 600, to: 600, timeZone: "UTC")
    for minute in stride(from: 0 as Int64, to: 1_440, by: 7) {
      let answer = calendar.answer(for: hours, at: minute * 60_000)
      #expect(answer?.isQuiet == true)
    }
    let unknown = calendar.answer(for: QuietHours(from: 0, to: 1, timeZone: "Moon/Tycho"), at: 0)
    #expect(unknown == nil)
    #expect(
      DueTimes.hasZones && QuietCalendar.isZone("Europe/Rome") && !QuietCalendar.isZone("Moon/Tycho") && !QuietCalendar.isZone(""))
    let early = calendar.answer(for: hours, at: -1)
    #expect(early?.isQuiet == true, "a moment before 1970 has an answer, too")
  }
}
