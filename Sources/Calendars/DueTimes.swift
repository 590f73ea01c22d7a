public import Notifications

/// When a timed trigger is due. Each lane has its own.
///
/// All due times of a trigger are fixed by the trigger, the time of its request and its zone, whatever was asked before. As Foundation has it,
/// a time of day that a gap of one hour skips is due an hour later, and is not due on that day where the gap has another length.
public struct DueTimes {
  /// One due time of a trigger.
  public struct Occurrence: Sendable, Hashable {
    /// When it is due, in milliseconds since 1970.
    public var due: Int64
    /// What names it among the trigger's occurrences: for an interval its number, from 1; for a calendar trigger what the wall clock shows,
    /// so that 09:00 of a day is the same occurrence in each zone.
    public var name: Int64

    /// An occurrence of its parts.
    public init(due: Int64, name: Int64) { (self.due, self.name) = (due, name) }
  }

  /// The zone of a trigger without one where the device has told none.
  public static var defaultZone: Name { "UTC" }

  /// How many zones and answers are kept; when there are more, all are forgotten.
  private let capacity: Int
  private var clocks: [Name: WallClock] = [:]
  private var answers: [Question: Answer] = [:]

  /// Due times that remember so many zones, and as many answers.
  public init(capacity: Int = 1024) { self.capacity = max(capacity, 1) }

  /// Whether there is a time zone database: a program that is linked statically may lack it.
  public static var hasZones: Bool { WallClock("Europe/Rome") != nil }

  /// Whether the time zone database has a zone.
  public mutating func isZone(_ zone: Name) -> Bool { clock(zone) != nil }

  // MARK: Asking

  /// The first occurrence strictly after a moment; nil where there is none.
  ///
  /// - Parameters:
  ///   - requested: the time of the request, in milliseconds since 1970: a one-off is due after that, an interval is counted from it.
  ///   - moment: milliseconds since 1970; a time before the request counts as that of the request.
  ///   - deviceZone: the zone of a calendar trigger that names none.
  /// - Throws: a rejection where the database has no such zone.
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

  /// How many occurrences lie strictly between two moments; of a calendar trigger at most `limit`, each of which costs a search.
  public mutating func count(
    of trigger: TimedTrigger, requested: Int64, after start: Int64, before end: Int64, deviceZone: Name, limit: Int = 1000
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

  /// Checks what only a calendar knows of a trigger: that its zone exists and that it is due at all.
  public mutating func check(_ trigger: TimedTrigger, requested: Int64, deviceZone: Name) throws(Rejection) {
    guard try next(of: trigger, requested: requested, after: requested, deviceZone: deviceZone) == nil else { return }
    throw Rejection(
      .badRequestParams, field: "trigger.dateComponents",
      rule: "A trigger is due at least once after it was published, and within forty years. At no such time do its dateComponents meet.")
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

  /// The due time that was found from a moment on: the same is found from each moment before it.
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
    let due = Self.search(question.units, clock, after: moment)
    if answers.count >= capacity { answers.removeAll(keepingCapacity: true) }
    answers[question] = Answer(from: moment, due: due)
    return due
  }

  /// How many days are tried that the zone may lack the time of day on, or on which it is over.
  private static let maximumTries = 8

  private static func search(_ units: CalendarUnits, _ clock: WallClock, after moment: Int64) -> Int64? {
    let search = DaySearch(units)
    var day = clock.day(at: moment)
    for _ in 0..<maximumTries {
      guard let found = search.first(from: day), let start = clock.lastMoment(before: found) else { return nil }
      day = found
      day.advance()
      // Foundation's search passes over times beside a gap of half an hour, and may answer the second of two. So it is asked only for those
      // that a gap skips.
      if let hour = units[.hour], let due = clock.first(on: found, hour: hour, minute: units[.minute] ?? 0, second: units[.second] ?? 0) {
        guard due > moment || due > Timestamp.latest else { continue }
        return due <= Timestamp.latest ? due : nil
      }
      let due = time(units, clock, after: search.isOnceInItsPeriod ? start : max(moment, start))
      guard let due, due <= Timestamp.latest else { return nil }
      guard due > moment else { continue }
      if clock.day(at: due) == found { return due }
      // The time is in a gap at the end of the day, and due after it, or the day lacks it and the next one has it.
      if let next = clock.lastMoment(before: day), time(units, clock, after: next) != due { return due }
    }
    return nil
  }

  /// A unit below all that are given is 0.
  private static func time(_ units: CalendarUnits, _ clock: WallClock, after moment: Int64) -> Int64? {
    let (hour, minute, second) = (units[.hour], units[.minute], units[.second])
    return clock.next(
      hour: hour ?? (minute == nil && second == nil ? 0 : nil), minute: minute ?? (second == nil ? 0 : nil), second: second ?? 0,
      after: moment)
  }
}
