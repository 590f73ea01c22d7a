/// How many requests of an application are accepted in each window of time, in each partition.
public struct RateLimit: Sendable, Hashable {
  /// The allowed numbers of requests.
  public static var numbers: ClosedRange<Int64> { 1...1_000_000_000 }
  /// The allowed lengths of a window, in milliseconds.
  ///
  /// After an assignment the records of the last window are read again, so a window is short.
  public static var windows: ClosedRange<Int64> { 100...10_000 }

  /// The requests for one target; nil for any number.
  public var perTarget: Int64?
  /// The requests of the application; nil for any number.
  public var perApplication: Int64?
  /// The length of a window, in milliseconds. Windows begin at multiples of it since 1970.
  public var window: Int64

  /// Creates a limit from its parts, which must be allowed.
  public init(perTarget: Int64?, perApplication: Int64?, window: Int64) {
    (self.perTarget, self.perApplication, self.window) = (perTarget, perApplication, window)
  }
}

/// A limit of an application, from its beginning to the beginning of the next one.
public struct LimitPeriod: Sendable, Hashable {
  /// How long after its record a limit begins, in milliseconds: every working lane has read it by then.
  public static var delayMilliseconds: Int64 { 5_000 }

  /// The beginning, in milliseconds since 1970.
  public var from: Int64
  /// The limit; nil if there is none in this period.
  public var limit: RateLimit?
  /// The person who set it.
  public var by: String

  /// Creates a period from its parts.
  public init(from: Int64, _ limit: RateLimit?, by: String) { (self.from, self.limit, self.by) = (from, limit, by) }
}

/// The history of an application's limits. A value.
public struct LimitHistory: Sendable, Hashable {
  /// The maximum number of periods in a record. The oldest ones are dropped.
  public static var maximumPeriods: Int { 32 }

  /// The periods, oldest first. None begins before the previous one.
  public private(set) var periods: [LimitPeriod]

  /// Creates a history, oldest first.
  public init(_ periods: [LimitPeriod] = []) { self.periods = periods }

  /// Whether there never was a limit, as far as is known.
  public var isEmpty: Bool { periods.isEmpty }

  /// The limit that was set last, which may begin in some seconds; nil if there is none.
  public var last: RateLimit? { periods.last?.limit }

  /// The period of a record with this timestamp; nil before the first.
  ///
  /// - Parameter time: milliseconds since 1970.
  public func period(at time: Int64) -> LimitPeriod? { periods.last { $0.from <= time } }

  /// The time after which no limit was in force; `max` while one is, and `min` if there never was one.
  public var end: Int64 {
    guard let last = periods.last else { return .min }
    return last.limit == nil ? last.from : .max
  }

  /// Whether earlier periods may have been dropped.
  public var mayBeCut: Bool { periods.count >= Self.maximumPeriods }

  /// Returns the history after a change; its last period has no beginning yet. Nil if the change has no effect.
  ///
  /// - Parameter oldest: drops the periods that ended before this time.
  func changed(to limit: RateLimit?, by person: String, forgettingBefore oldest: Int64) -> LimitHistory? {
    guard limit != last else { return nil }
    var kept = forgetting(before: oldest).periods
    // The time of the record is not known, so this is no beginning.
    kept.append(LimitPeriod(from: .max, limit, by: person))
    return LimitHistory(kept.suffix(Self.maximumPeriods))
  }

  /// Returns the history without the periods that ended before a time.
  func forgetting(before oldest: Int64) -> LimitHistory {
    let last = periods.lastIndex { $0.from < oldest } ?? 0
    let kept = periods[last...]
    // A period without a limit at the beginning says nothing.
    return LimitHistory(Array(kept.drop { $0.limit == nil && $0.from < oldest }))
  }
}
