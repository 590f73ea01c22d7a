import Calendars
import JSON
import Notifications
import TestSupport
import Testing

@testable import DeviceClient

extension LocalTime {
  /// A time at which both clocks agree.
  init(_ time: Int64) { self.init(wall: time, elapsed: time) }
}

@Suite(.timeLimit(.minutes(10))) struct PendingTableTests {
  /// 2023-11-14, 22:13:20 UTC.
  private static let start: Int64 = 1_700_000_000_000

  static func entry(_ identifier: Name, _ trigger: NotificationTrigger, at time: Int64) throws -> PendingTable.Entry {
    let request = NotificationRequest(identifier: identifier, content: NotificationContent(title: identifier.text), trigger: trigger)
    let notification = DeliveredNotification(
      try request.frame(id: "id"), takenAt: time, isLocal: true, ServiceExtensions(chain: nil, locale: nil))
    return .init(notification: notification, anchor: time, after: time)
  }

  private static func time(hour: Int? = nil, minute: Int? = nil) -> CalendarUnits {
    var units = CalendarUnits()
    (units[.hour], units[.minute]) = (hour, minute)
    return units
  }

  private static let place = NotificationTrigger.location(
    #"{"type":"location","region":{"identifier":"shop","latitude":52.5,"longitude":13.4,"radius":100}}"#)

  @Test(arguments: 0..<(isComplete ? 40 : 8)) func `a table shows what a plain list of requests would show`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var table = PendingTable(limit: 6)
    var naive = NaiveRequests(limit: 6)
    var now = Self.start
    for step in 0..<150 {
      let identifier: Name = ["a", "b", "c", "d", "e", "f", "g", "h", "é", "e\u{301}"].randomElement(using: &random) ?? "a"
      switch Int.random(in: 0..<10, using: &random) {
      case 0...3:
        let repeats = Bool.random(using: &random)
        let trigger: NotificationTrigger =
          switch Int.random(in: 0..<5, using: &random) {
          case 0: Self.place
          case 1: .calendar(Self.time(minute: .random(in: 0...59, using: &random)), repeats: repeats)
          case 2:
            .calendar(
              Self.time(hour: .random(in: 0...23, using: &random), minute: .random(in: 0...59, using: &random)), repeats: repeats)
          default: .timeInterval(Double(Int.random(in: 60...2_000, using: &random)), repeats: repeats)
          }
        let removed = table.add(try Self.entry(identifier, trigger, at: now))
        let expected = naive.add(identifier, trigger, at: now)
        #expect(removed == expected, "step \(step)")
      case 4:
        let (removed, expected) = (table.remove([identifier]), naive.remove(identifier))
        #expect(removed == expected)
      case 5 where step % 4 == 0: now += Int64.random(in: -100_000_000...100_000_000, using: &random)
      default: now += Int64.random(in: 0...600_000, using: &random)
      }
      let due = table.take(now: LocalTime(now), zone: "UTC")
      let expected = naive.take(now)
      #expect(due.notifications.map(\.identifier) == expected, "step \(step)")
      #expect(table.entries.map(\.notification.identifier) == naive.requests.map(\.identifier), "step \(step)")
      if let wait = table.wait(now: LocalTime(now), zone: "UTC") { #expect(wait > 0, "step \(step): something that is due was left") }
    }
  }

  @Test func `at most sixty-four wait, twenty of them for a place, and the last added stay`() throws {
    var table = PendingTable()
    for number in 0..<30 { _ = table.add(try Self.entry("place \(number)", Self.place, at: Self.start)) }
    #expect(table.entries.map(\.notification.identifier) == (10..<30).map { "place \($0)" })
    for number in 0..<60 {
      _ = table.add(try Self.entry("time \(number)", .timeInterval(60, repeats: false), at: Self.start))
    }
    #expect(table.entries.count == 64)
    #expect(table.entries.first?.notification.identifier == "place 26")
    // Added again, it is the newest.
    _ = table.add(try Self.entry("place 26", .timeInterval(60, repeats: false), at: Self.start))
    #expect(table.entries.last?.notification.identifier == "place 26" && table.entries.count == 64)
  }

  @Test func `a one-off is shown however late, a repeating one once and at most fifteen minutes late`() throws {
    var table = PendingTable()
    _ = table.add(try Self.entry("once", .timeInterval(1, repeats: false), at: Self.start))
    _ = table.add(try Self.entry("often", .timeInterval(60, repeats: true), at: Self.start))
    _ = table.add(try Self.entry("daily", .calendar(Self.time(hour: 23, minute: 0), repeats: true), at: Self.start))
    // Two days later at 23:20 the program starts again.
    let later = Self.start + 2 * 86_400_000 + 4_000_000
    let (due, again) = (table.take(now: LocalTime(later), zone: "UTC"), table.take(now: LocalTime(later), zone: "UTC"))
    #expect(due.notifications.map(\.identifier) == ["once", "often"] && again.notifications.isEmpty)
    #expect(table.entries.map(\.notification.identifier) == ["often", "daily"])
  }

  @Test func `after a clock that jumps by a day each is shown once, and none waits for the time that was undone`() throws {
    let day: Int64 = 86_400_000
    for jump in [day, -day] {
      var table = PendingTable()
      _ = table.add(try Self.entry("once", .timeInterval(600, repeats: false), at: Self.start))
      _ = table.add(try Self.entry("often", .timeInterval(600, repeats: true), at: Self.start))
      var (shown, now): ([Name], Int64) = ([], Self.start + jump)
      // An hour of the new time, looked at each minute.
      for _ in 0...60 {
        shown += table.take(now: LocalTime(now), zone: "UTC").notifications.map(\.identifier)
        now += 60_000
      }
      #expect(shown.count { $0 == "once" } == 1 && (6...7).contains(shown.count { $0 == "often" }), "\(jump): \(shown)")
      if let wait = table.wait(now: LocalTime(now), zone: "UTC") { #expect(wait <= 600_000) }
    }
  }

  @Test(arguments: [-3_600_000, 3_600_000, -86_400_000, 0] as [Int64])
  func `a time interval counts elapsed time, and a time of day the clock on the wall, whatever happens to that clock`(step: Int64) throws {
    var table = PendingTable()
    _ = table.add(try Self.entry("tea", .timeInterval(10, repeats: false), at: Self.start))
    _ = table.add(try Self.entry("often", .timeInterval(60, repeats: true), at: Self.start))
    /// The time after so many elapsed seconds. The clock is set after five.
    func time(_ seconds: Double) -> LocalTime {
      let elapsed = Self.start + Int64(seconds * 1000)
      return LocalTime(wall: elapsed + (seconds > 5 ? step : 0), elapsed: elapsed)
    }
    func shown(_ seconds: Double) -> [Name] { table.take(now: time(seconds), zone: "UTC").notifications.map(\.identifier) }
    #expect(shown(6) == [] && table.wait(now: time(6), zone: "UTC") == 4_000)
    #expect(table.next(of: "tea", now: time(6), zone: "UTC") == Self.start + step + 10_000)
    #expect(shown(9.999) == [] && shown(10) == ["tea"])
    #expect(shown(59) == [] && shown(60) == ["often"] && shown(119) == [] && shown(121) == ["often"])
    // 46 minutes and 40 seconds after the start on the wall.
    _ = table.add(try Self.entry("hour", .calendar(Self.time(hour: 23, minute: 0), repeats: false), at: Self.start))
    let (before, at) = (Self.start + 2_799_000, Self.start + 2_800_000)
    #expect(
      table.take(now: LocalTime(wall: before, elapsed: at + step), zone: "UTC").notifications.map(\.identifier).contains("hour") == false)
    #expect(table.take(now: LocalTime(wall: at, elapsed: before - step), zone: "UTC").notifications.map(\.identifier).contains("hour"))
  }

  @Test func `the clock of intervals goes on over starts of the device within one boot of the machine`() async throws {
    let first = ElapsedClock(after: nil, boot: "a", milliseconds: 1_000, wall: 50_000)
    // The clock on the wall was set between two starts.
    for wall: Int64 in [0, 60_000, 9_000_000] { #expect(ElapsedClock(after: first, boot: "a", milliseconds: 11_000, wall: wall) == first) }
    // After another boot no clock has counted but the one on the wall.
    #expect(ElapsedClock(after: first, boot: "b", milliseconds: 10, wall: 70_000) == ElapsedClock(boot: "b", offset: 69_990))
    let unknown = ElapsedClock(boot: "", offset: 5)
    #expect(ElapsedClock(after: unknown, boot: "", milliseconds: 10, wall: 70_000).offset == 69_990)
    try await TestFolder.with { folder in
      var clocks: [ElapsedClock?] = []
      for _ in 1...2 {
        let database = DeviceDatabase.forTests(folder.path + "/state")
        clocks.append(try await database.open().clock)
        await database.closeForTests()
      }
      #expect(clocks[0] != nil && clocks[0] == clocks[1])
    }
  }

  @Test func `a time of day is computed again when the zone changes`() throws {
    var table = PendingTable()
    _ = table.add(try Self.entry("daily", .calendar(Self.time(hour: 9, minute: 0), repeats: true), at: Self.start))
    let now = LocalTime(Self.start)
    let (utc, rome) = (table.wait(now: now, zone: "UTC"), table.wait(now: now, zone: "Europe/Rome"))
    #expect(try #require(utc) - #require(rome) == 3_600_000)
  }

  @Test func `a one-off whose time another zone has passed does not wait for ever, and one of a zone that is unknown here waits`() throws {
    var table = PendingTable()
    var units = Self.time(hour: 23, minute: 0)
    (units[.year], units[.month], units[.day]) = (2023, 11, 14)
    _ = table.add(try Self.entry("moved", .calendar(units, repeats: false), at: Self.start))
    _ = table.add(try Self.entry("fixed", .calendar(units, timeZone: "UTC", repeats: false), at: Self.start))
    _ = table.add(try Self.entry("unknown", .calendar(units, timeZone: "Mars/Olympus", repeats: false), at: Self.start))
    _ = table.add(try Self.entry("place", Self.place, at: Self.start))
    #expect(table.take(now: LocalTime(Self.start), zone: "UTC").missed.isEmpty)
    #expect(table.take(now: LocalTime(Self.start), zone: "America/New_York").missed.isEmpty)
    #expect(table.take(now: LocalTime(Self.start), zone: "Europe/Rome").missed == ["moved"])
    #expect(table.entries.map(\.notification.identifier) == ["fixed", "unknown", "place"])
  }

  @Test func `a request that can never be due is refused with the rule`() throws {
    var table = PendingTable()
    func refused(_ trigger: NotificationTrigger) throws -> Bool {
      guard var text = trigger.json else { return false }
      guard case .timed(let timed)? = try? text.withUTF8({ try Trigger(UnsafeRawBufferPointer($0)) }) else { return true }
      return (try? table.check(timed, now: LocalTime(Self.start), zone: "UTC")) == nil
    }
    var past = Self.time(hour: 9)
    past[.year] = 2020
    #expect(try refused(.calendar(past, repeats: false)))
    #expect(try refused(.calendar(CalendarUnits(), repeats: false)))
    #expect(try refused(.calendar(Self.time(hour: 9), timeZone: "Mars/Olympus", repeats: false)))
    for seconds in [0, -1, Double.nan, .infinity, 1e300] { #expect(try refused(.timeInterval(seconds, repeats: false))) }
    #expect(try refused(.timeInterval(59, repeats: true)))
    #expect(try !refused(.timeInterval(60, repeats: true)))
    #expect(try !refused(.calendar(Self.time(hour: 9), timeZone: "Europe/Rome", repeats: false)))
  }

  @Test func `a trigger says when it is due next, and a waiting request when it is`() throws {
    let nine = NotificationTrigger.calendar(Self.time(hour: 9, minute: 0), repeats: true)
    let rome = NotificationTrigger.calendar(Self.time(hour: 9, minute: 0), timeZone: "Europe/Rome", repeats: false)
    // The next nine o'clock is at 1700038800 s in UTC, and an hour earlier in Rome.
    #expect(nine.nextDue(after: Self.start) == 1_700_038_800_000)
    #expect(nine.nextDue(after: Self.start, timeZone: "Europe/Rome") == 1_700_035_200_000)
    #expect(rome.nextDue(after: Self.start) == 1_700_035_200_000)
    #expect(NotificationTrigger.timeInterval(1.5, repeats: false).nextDue(after: Self.start) == Self.start + 1_500)
    var past = Self.time(hour: 9)
    past[.year] = 2020
    for never in [.push, Self.place, .timeInterval(0, repeats: false), .calendar(past, repeats: true)] as [NotificationTrigger] {
      #expect(never.nextDue(after: Self.start) == nil)
    }
    // One that waits is counted from when it was added, and each occurrence gives the next.
    var table = PendingTable()
    _ = table.add(try Self.entry("often", .timeInterval(60, repeats: true), at: Self.start))
    _ = table.add(try Self.entry("place", Self.place, at: Self.start))
    func next(_ identifier: Name) -> Int64? { table.next(of: identifier, now: LocalTime(Self.start), zone: "UTC") }
    #expect(next("often") == Self.start + 60_000 && next("place") == nil && next("other") == nil)
    _ = table.take(now: LocalTime(Self.start + 90_000), zone: "UTC")
    #expect(next("often") == Self.start + 120_000)
  }

  @Test func `a trigger is read as it was written`() {
    var units = Self.time(hour: 9, minute: 30)
    units[.weekday] = 2
    let triggers: [NotificationTrigger] = [
      .push, Self.place, .timeInterval(1.5, repeats: false), .timeInterval(60, repeats: true), .calendar(units, repeats: true),
      .calendar(units, timeZone: "Europe/Rome", repeats: false),
    ]
    for trigger in triggers { #expect(NotificationTrigger(json: trigger.json) == trigger) }
    #expect(triggers.map(\.repeats) == [false, false, false, true, true, false])
    let entries = #"{"type":"location","repeats":true,"region":{"identifier":"shop","latitude":52.5,"longitude":13.4,"radius":100}}"#
    #expect(NotificationTrigger.location(entries).repeats)
  }
}

/// Requests in a plain list, whose occurrences are found by trying each minute of UTC.
private struct NaiveRequests {
  struct Request {
    var identifier: Name
    var trigger: NotificationTrigger
    var anchor: Int64
    var after: Int64
  }

  let limit: Int
  private(set) var requests: [Request] = []

  init(limit: Int) { self.limit = limit }

  mutating func remove(_ identifier: Name) -> [Name] {
    defer { requests.removeAll { $0.identifier == identifier } }
    return requests.filter { $0.identifier == identifier }.map(\.identifier)
  }

  mutating func add(_ identifier: Name, _ trigger: NotificationTrigger, at now: Int64) -> [Name] {
    _ = remove(identifier)
    requests.append(Request(identifier: identifier, trigger: trigger, anchor: now, after: now))
    return requests.count > limit ? remove(requests[0].identifier) : []
  }

  mutating func take(_ now: Int64) -> [Name] {
    var shown: [(at: Int64, place: Int, identifier: Name)] = []
    var kept: [Request] = []
    for (place, former) in requests.enumerated() {
      var request = former
      if request.after > now, !isLocation(request) { (request.anchor, request.after) = (now, now) }
      let passed = occurrences(request, upTo: now)
      let repeats: Bool
      switch request.trigger {
      case .timeInterval(_, let flag), .calendar(_, _, let flag): repeats = flag
      case .push, .location: repeats = true
      }
      if repeats {
        if let last = passed.last {
          request.after = max(last, now - 900_001)
          if now - last <= 900_000 { shown.append((last, place, request.identifier)) }
        }
        kept.append(request)
      } else if let first = passed.first {
        shown.append((first, place, request.identifier))
      } else {
        kept.append(request)
      }
    }
    requests = kept
    return shown.sorted { ($0.at, $0.place) < ($1.at, $1.place) }.map(\.identifier)
  }

  private func isLocation(_ request: Request) -> Bool { if case .location = request.trigger { true } else { false } }

  private func occurrences(_ request: Request, upTo now: Int64) -> [Int64] {
    switch request.trigger {
    case .timeInterval(let seconds, _):
      let interval = Int(seconds * 1000)
      return stride(from: request.anchor + Int64(interval), through: now, by: interval).filter { $0 > request.after }
    case .calendar(let units, _, _):
      let first = (request.after / 60_000 + 1) * 60_000
      return stride(from: first, through: now, by: 60_000).filter { time in
        let minute = Int(time / 60_000 % 1440)
        return minute % 60 == units[.minute] && (units[.hour] == nil || units[.hour] == minute / 60)
      }
    case .push, .location: return []
    }
  }
}
