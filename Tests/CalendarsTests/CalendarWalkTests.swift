import Foundation
import Notifications
import TestSupport
import Testing

@testable import Calendars

/// Random triggers against a slow search that was written from the rules: `walk.py`.
///
/// `TESTS_CALENDAR_TRIGGERS` says how many (200), `TESTS_CALENDAR_SEED` with which seed (1).
@Suite struct CalendarWalkTests {
  private struct Question {
    var units: CalendarUnits
    var zone: Name
    var after: Int64
    var until: Int64
    var count: Int

    var line: String {
      let given = CalendarUnits.Unit.allCases.compactMap { unit in units[unit].map { "\"\(unit.name)\": \($0)" } }
      return
        #"{"units": {\#(given.joined(separator: ", "))}, "zone": "\#(zone)", "after": \#(after), "until": \#(until), "count": \#(count)}"#
    }
  }

  /// What the date of a trigger may be given by; the time of day comes in addition.
  private static let dates: [[CalendarUnits.Unit]] = [
    [], [], [], [.day], [.day], [.month, .day], [.month, .day], [.year, .month, .day], [.weekday], [.weekday], [.weekday, .weekdayOrdinal],
    [.month, .weekday, .weekdayOrdinal], [.weekOfMonth], [.weekday, .weekOfMonth], [.weekOfYear], [.weekday, .weekOfYear],
    [.day, .weekday],
    [.quarter], [.month], [.year], [.quarter, .day], [.quarter, .weekday], [.month, .weekday], [.weekdayOrdinal],
    [.year, .weekOfYear, .weekday],
    [.quarter, .month, .weekOfMonth], [.year, .quarter, .day, .weekday],
  ]

  private static func question(_ random: inout SeededRandom, zones: [String]) -> Question {
    var units = CalendarUnits()
    let zone = zones.randomElement(using: &random) ?? "UTC"
    let (first, last) = (Int64(946_684_800), Int64(1_893_456_000))
    var after = Int64.random(in: first...last, using: &random)
    for unit in dates.randomElement(using: &random) ?? [] {
      units[unit] =
        unit == .year
        ? .random(in: 2000...2031, using: &random)
        : .random(in: Int(unit.range.lowerBound)...Int(unit.range.upperBound), using: &random)
    }
    let kind = Int.random(in: 0..<10, using: &random)
    if kind != 8 { units[.hour] = .random(in: 0...23, using: &random) }
    if kind != 9 { units[.minute] = .random(in: 0...59, using: &random) }
    if Int.random(in: 0..<4, using: &random) == 0 { units[.second] = .random(in: 0...59, using: &random) }
    // Each other trigger meets a gap or an overlap, where its zone has one.
    let date = Date(timeIntervalSince1970: Double(after))
    if Bool.random(using: &random), let here = TimeZone(identifier: zone),
      let transition = here.nextDaylightSavingTimeTransition(after: date)
    {
      let at = Int64(transition.timeIntervalSince1970)
      if at < last {
        after = at - Int64.random(in: 1...200_000, using: &random)
        let offset = here.secondsFromGMT(for: transition.addingTimeInterval(Double(Int.random(in: -1...0, using: &random))))
        let wall = at + Int64(offset) + Int64.random(in: -60...60, using: &random) * 60
        // Its date is that of the transition, else few would meet it.
        if let day = WallClock(Name(zone))?.day(at: (at - Int64.random(in: 0...1, using: &random)) * 1000) {
          for unit in CalendarUnits.Unit.allCases where units[unit] != nil { units[unit] = day[unit] ?? units[unit] }
        }
        if units[.hour] != nil { units[.hour] = Int((wall % 86_400 + 86_400) % 86_400 / 3_600) }
        if units[.minute] != nil { units[.minute] = Int((wall % 3_600 + 3_600) % 3_600 / 60) }
      }
    }
    return Question(units: units, zone: Name(zone), after: after, until: after + 3_000 * 86_400, count: 4)
  }

  private static func answers(_ lines: [String]) throws -> [[Int64]] {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("walk.py").path]
    let (input, output) = (Pipe(), Pipe())
    (process.standardInput, process.standardOutput) = (input, output)
    try process.run()
    let writer = Thread {
      try? input.fileHandleForWriting.write(contentsOf: Data((lines.joined(separator: "\n") + "\n").utf8))
      try? input.fileHandleForWriting.close()
    }
    writer.start()
    let text = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return try text.split(separator: UInt8(ascii: "\n")).map { try JSONDecoder().decode([Int64].self, from: Data($0)) }
  }

  @Test func `random triggers are due when a slow search says`() throws {
    let environment = ProcessInfo.processInfo.environment
    let count = environment["TESTS_CALENDAR_TRIGGERS"].flatMap { Int($0) } ?? 200
    var random = SeededRandom(seed: environment["TESTS_CALENDAR_SEED"].flatMap { UInt64($0) } ?? 1)
    var times = DueTimes()
    let zones = TimeZone.knownTimeZoneIdentifiers.sorted()
    for zone in zones where !times.isZone(Name(zone)) { Issue.record("no zone \(zone)") }
    let questions = (0..<count).map { _ in Self.question(&random, zones: zones) }
    let answers = try Self.answers(questions.map(\.line))
    try #require(answers.count == count)
    var differences = 0
    for (question, answer) in zip(questions, answers) {
      var (due, last) = ([Int64](), question.after * 1000)
      let trigger = TimedTrigger(.calendar(question.units, zone: question.zone), repeats: true)
      while due.count < question.count, let next = try times.next(of: trigger, requested: 0, after: last, deviceZone: "UTC"),
        next.due <= question.until * 1000
      {
        due.append(next.due / 1000)
        last = next.due
      }
      if due != answer {
        differences += 1
        if differences <= 20 { Issue.record("\(question.line): due \(due), and the slow search says \(answer)") }
      }
    }
    #expect(differences == 0, "of \(count)")
    #expect(answers.count { !$0.isEmpty } > count / 2, "most triggers are due")
  }
}
