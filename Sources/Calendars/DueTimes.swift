public import Notifications

/// Computes when a timed trigger is due. Each lane has its own.
///
/// The due times depend only on the trigger, the time of its request and its zone. A time of day that a gap skips is due as much later as
/// the gap is long. One that exists twice is due the first time, unless the trigger names no hour: then each hour counts.
public struct DueTimes {
  /// One due time of a trigger.
  public struct Occurrence: Sendable, Hashable {
    /// The due time, in milliseconds since 1970.
    public var due: Int64
    /// The name of the occurrence among those of the trigger. For an interval it is the number, from 1. For a calendar trigger it is the
    /// reading of the wall clock, so 09:00 of a day is one occurrence in all zones.
    var name: Int64
  }

  /// The zone of a trigger that names none, for a device that registered none.
  public static var defaultZone: Name { "UTC" }

  /// The maximum number of cached zones, and of cached answers. A full cache is emptied.
  private let capacity: Int
  private var clocks: [Name: WallClock] = [:]
  private var answers: [Question: Answer] = [:]
  /// The moments of some days near a change of the clock.
  private var changing: [ChangingDay: [Int64]] = [:]

  /// Creates the calendar with a bound of cached zones and answers.
  public init(capacity: Int = 1024) { self.capacity = max(capacity, 1) }

  /// Whether there is a time zone database. A statically linked program may lack it.
  public static var hasZones: Bool { WallClock("Europe/Rome") != nil }

  /// The version of the time zone database, such as `2025b`.
  public static var dataVersion: String { WallClock.dataVersion }

  /// Whether the time zone database has a zone.
  public mutating func isZone(_ zone: Name) -> Bool { clock(zone) != nil }

  // MARK: Asking

  /// Finds the first occurrence strictly after a moment; nil if there is none.
  ///
  /// - Parameters:
  ///   - requested: the time of the request, in milliseconds since 1970. A one-off is due after it, and an interval begins at it.
  ///   - moment: milliseconds since 1970; an earlier time counts as that of the request.
  ///   - deviceZone: the zone of a calendar trigger that names none.
  /// - Throws: a rejection if the database has no such zone.
  public mutating func next(of trigger: TimedTrigger, requested: Int64, after moment: Int64, deviceZone: Name) throws(Rejection)
    -> Occurrence?
  {
    let requested = Timestamp.bounded(requested)
    let earliest = max(requested, Timestamp.bounded(moment), (trigger.notBefore ?? 0) - 1)
    switch trigger.rule {
    case .interval(let interval):
      let number = trigger.repeats ? (earliest - requested) / interval + 1 : 1
      let due = requested + number * interval
      return due > earliest && due <= Timestamp.latest ? Occurrence(due: due, name: number) : nil
    case .calendar(let units, let zone):
      guard let clock = clock(zone ?? deviceZone) else { throw Self.unknownZone }
      // A one-off has only the first time after its request.
      let start = trigger.repeats ? earliest : requested
      guard let due = next(Question(units: units, zone: zone ?? deviceZone), clock, after: start), due > earliest else { return nil }
      return Occurrence(due: due, name: clock.reading(at: due))
    }
  }

  /// Finds the last occurrence of a repeating trigger strictly after a moment and not after another one; nil if there is none.
  ///
  /// A trigger may be due each minute of some days, so it does not walk: it halves the time that may have a later one.
  public mutating func last(of trigger: TimedTrigger, requested: Int64, after start: Int64, until end: Int64, deviceZone: Name)
    throws(Rejection) -> Occurrence?
  {
    func first(after moment: Int64) throws(Rejection) -> Occurrence? {
      let found = try next(of: trigger, requested: requested, after: moment, deviceZone: deviceZone)
      return found.flatMap { $0.due <= end ? $0 : nil }
    }
    guard var last = try first(after: start) else { return nil }
    // From here on there is none.
    var limit = end
    while limit - last.due >= Self.leastDistance {
      let middle = last.due + (limit - last.due) / 2
      if let found = try first(after: middle) { last = found } else { limit = middle }
    }
    return last
  }

  /// How far two occurrences of a repeating trigger are apart at least, in milliseconds.
  private static let leastDistance: Int64 = 60_000

  /// Counts the occurrences strictly between two moments.
  ///
  /// For a calendar trigger it counts to `limit` only, since each occurrence costs a search, and nothing else of the lane goes on meanwhile.
  mutating func count(
    of trigger: TimedTrigger, requested: Int64, after start: Int64, before end: Int64, deviceZone: Name, limit: Int = 100
  ) throws(Rejection) -> Int {
    guard var occurrence = try next(of: trigger, requested: requested, after: start, deviceZone: deviceZone), occurrence.due < end else {
      return 0
    }
    guard trigger.repeats else { return 1 }
    if case .interval(let interval) = trigger.rule {
      return Int((end - 1 - occurrence.due) / interval + 1)
    }
    var count = 0
    while count < limit {
      count += 1
      guard let following = try next(of: trigger, requested: requested, after: occurrence.due, deviceZone: deviceZone), following.due < end
      else { break }
      occurrence = following
    }
    return count
  }

  /// Finds an occurrence of a calendar trigger again, by its name; if there is none, the first one after it.
  ///
  /// Another version of the time zone database may have given it another due time.
  ///
  /// - Throws: a rejection if the database has no such zone.
  mutating func again(_ occurrence: Occurrence, of trigger: TimedTrigger, requested: Int64, deviceZone: Name) throws(Rejection)
    -> Occurrence?
  {
    guard case .calendar(_, let zone) = trigger.rule else { return occurrence }
    guard let clock = clock(zone ?? deviceZone) else { throw Self.unknownZone }
    let reading = clock.reading(at: occurrence.due)
    if reading == occurrence.name { return occurrence }
    if !trigger.repeats { return try next(of: trigger, requested: requested, after: requested, deviceZone: deviceZone) }
    // Names are twice the local seconds.
    let (difference, isBeyond) = occurrence.name.subtractingReportingOverflow(reading)
    guard !isBeyond else { return nil }
    let moved = Timestamp.bounded(occurrence.due) + min(max(difference, -Self.longestMove), Self.longestMove) * 500
    if let found = try next(of: trigger, requested: requested, after: moved - 1, deviceZone: deviceZone), found.name == occurrence.name {
      return found
    }
    // The clock changes between the two moments. The search begins before that, and ends after it.
    var moment = moved - Self.longestChange
    while let found = try next(of: trigger, requested: requested, after: moment, deviceZone: deviceZone) {
      if found.name >= occurrence.name || found.due > moved + Self.longestChange { return found }
      moment = found.due
    }
    return nil
  }

  /// The longest move of a zone's clock that the search expects: two days, as twice their seconds.
  private static let longestMove: Int64 = 2 * 172_800
  /// The longest change of a zone's clock on one day, in milliseconds.
  private static let longestChange: Int64 = 3 * 3_600_000

  /// Checks with the calendar that a trigger's zone exists and that it is ever due.
  public mutating func check(_ trigger: TimedTrigger, requested: Int64, deviceZone: Name) throws(Rejection) {
    func isDue(_ trigger: TimedTrigger) throws(Rejection) -> Bool {
      try next(of: trigger, requested: requested, after: requested, deviceZone: deviceZone) != nil
    }
    if try isDue(trigger) { return }
    if trigger.notBefore != nil, try isDue(TimedTrigger(trigger.rule, repeats: trigger.repeats)) {
      throw Rejection(
        .badRequestParams, field: "trigger.notBefore", rule: "A trigger is due at least once. After its notBefore this one is never due.")
    }
    switch trigger.rule {
    case .interval:
      throw Rejection(
        .badRequestParams, field: "trigger.timeInterval", rule: "A trigger is due at least once, before the year 10000.")
    case .calendar:
      throw Rejection(
        .badRequestParams, field: "trigger.dateComponents",
        rule: "A trigger is due at least once after it was published, and within forty years. At no such time do its dateComponents meet.")
    }
  }

  private static var unknownZone: Rejection {
    Rejection(
      .badRequestParams, field: "trigger.dateComponents.timeZone",
      rule: "A time zone is a name of the IANA time zone database, as it is spelt there, such as Europe/Rome or UTC.")
  }

  // MARK: Answering

  private struct Question: Hashable {
    var units: CalendarUnits
    var zone: Name
  }

  /// A day near which a clock changes. A time of day takes several looks at the zone there, so all of the day are found together.
  private struct ChangingDay: Hashable {
    var question: Question
    var day: Int64
  }

  /// The maximum number of kept days near a change.
  private static let changingDays = 16

  /// A due time that was found from a moment on. It holds for all later moments before the due time.
  private struct Answer {
    var from: Int64
    var due: Int64?
  }

  private mutating func clock(_ zone: Name) -> WallClock? {
    if let clock = clocks[zone] { return clock }
    guard let clock = WallClock(zone) else { return nil }
    if clocks.count >= capacity { clocks.removeAll(keepingCapacity: true) }
    clocks[zone] = clock
    return clock
  }

  private mutating func next(_ question: Question, _ clock: WallClock, after moment: Int64) -> Int64? {
    if let known = answers[question], known.from <= moment, known.due.map({ moment < $0 }) ?? true { return known.due }
    let due = search(question, clock, after: moment)
    if answers.count >= capacity { answers.removeAll(keepingCapacity: true) }
    answers[question] = Answer(from: moment, due: due)
    return due
  }

  /// The maximum number of days to try: the wanted time may have passed on the first of them.
  private static let maximumTries = 8

  /// How long before its noon in UTC a day may begin, in milliseconds: no clock is ahead by more than 14 hours.
  private static let longestLead: Int64 = 26 * 3_600_000

  private mutating func search(_ question: Question, _ clock: WallClock, after moment: Int64) -> Int64? {
    let (search, time) = (DaySearch(question.units), TimeOfDay(question.units))
    // A gap at the end of a day moves its times into the next day.
    var day = clock.day(at: moment)
    day.goBack()
    var earliest: Int64?
    for _ in 0..<Self.maximumTries {
      guard let found = search.first(from: day) else { break }
      day = found
      day.advance()
      // Where it is due once in a period, only the day's first time counts.
      let due = first(time, of: question, clock, on: found, after: search.isOnceInItsPeriod ? .min : moment)
      guard let due, due > moment else { continue }
      let best = min(earliest ?? due, due)
      earliest = best
      // Only where the clock changes may a time of the next day come before one of this day.
      guard clock.changes(near: due), day.noon - Self.longestLead <= best else { break }
    }
    return earliest.flatMap { $0 <= Timestamp.latest ? $0 : nil }
  }

  private mutating func first(_ time: TimeOfDay, of question: Question, _ clock: WallClock, on day: CivilDay, after moment: Int64)
    -> Int64?
  {
    guard clock.changes(near: day.noon) else { return clock.first(time, on: day, after: moment) }
    let key = ChangingDay(question: question, day: day.daysSince1970)
    if changing[key] == nil {
      if changing.count >= Self.changingDays { changing.removeAll(keepingCapacity: true) }
      changing[key] = clock.moments(of: time, on: day)
    }
    return changing[key]?.first { $0 > moment }
  }
}
