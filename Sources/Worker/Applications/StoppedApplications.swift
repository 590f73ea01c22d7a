public import Notifications

/// The stops, grants and rate limits of all applications. A value.
///
/// It holds what the records of `notifications.applications` say.
/// The newest record of an application has all of them. An unreadable record changes nothing.
public struct StoppedApplications: Sendable {
  /// Applications that are remembered at most, of those with stops, of those with grants and of those with limits.
  static var maximum: Int { 4_096 }

  /// The effect of a record.
  public enum Change: Sendable, Equatable {
    /// The application is stopped now, and was not before.
    case stopped(ApplicationStop)
    /// The application is not stopped any more.
    case started
    /// Nothing changed for now.
    case nothing
    /// The record is ignored for this reason.
    case refused(String)
  }

  /// What is known of an application, with its name: a hash alone may be that of another one.
  private struct Known<Value: Sendable>: Sendable {
    let name: [UInt8]
    let value: Value
  }

  /// By the name hashes.
  private var applications: [UInt64: Known<ApplicationStops>] = [:]
  /// The same. Apart, since most applications with grants were never stopped, and each request is looked up among the stops.
  private var grants: [UInt64: Known<GrantedLevels>] = [:]
  /// The same. Most applications with limits were never stopped.
  private var limits: [UInt64: Known<LimitHistory>] = [:]
  /// The time after which no application had a limit; `max` while one has, and `min` if none ever had.
  public private(set) var limitsEnd = Int64.min

  /// A table without stops.
  public init() {}

  /// Whether the table remembers no stop.
  public var isEmpty: Bool { applications.isEmpty }

  /// Whether an application has a rate limit, or had one.
  public var hasLimits: Bool { limitsEnd != .min }

  /// Takes a record. Those of an application must come in their order.
  ///
  /// - Parameters:
  ///   - key: the application.
  ///   - value: its stops; nil if it has none any more.
  ///   - timestamp: of the record.
  public mutating func take(key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: Int64) -> Change {
    guard let key, ApplicationStops.isApplication(key) else { return .refused(ApplicationStops.nameRule) }
    let hash = NameHash.hash(key)
    var stops = ApplicationStops()
    if let value {
      do throws(FieldError) {
        stops = try ApplicationStops(value, timestamp: timestamp)
      } catch {
        return .refused("\(error)")
      }
    }
    // The stops count, whatever becomes of the rest: an emergency stop is never refused for it.
    let isGranted = Self.set(stops.granted.isEmpty ? nil : stops.granted, of: key, hash, in: &grants)
    let hadLimits = limits[hash] != nil
    let isLimited = Self.set(stops.limits.isEmpty ? nil : stops.limits, of: key, hash, in: &limits)
    if hadLimits || limits[hash] != nil { limitsEnd = limits.values.map(\.value.end).max() ?? .min }
    let former = applications[hash]?.value.open
    if stops.stops.isEmpty {
      applications[hash] = nil
    } else if applications[hash] != nil || applications.count < Self.maximum || makeRoom(forOpen: stops.open != nil) {
      applications[hash] = Known(name: Array(key), value: stops)
    } else {
      return .refused("there are more than \(Self.maximum) applications that were stopped")
    }
    switch (former, stops.open) {
    case (nil, let open?): return .stopped(open)
    case (_?, nil): return .started
    default:
      if !isLimited { return .refused("there are more than \(Self.maximum) applications with rate limits") }
      return isGranted ? .nothing : .refused("there are more than \(Self.maximum) applications that were granted something")
    }
  }

  /// False where there is no room.
  private static func set<Value>(
    _ value: Value?, of application: UnsafeRawBufferPointer, _ hash: UInt64, in table: inout [UInt64: Known<Value>]
  ) -> Bool {
    guard value == nil || table[hash] != nil || table.count < maximum else { return false }
    table[hash] = value.map { Known(name: Array(application), value: $0) }
    return true
  }

  private static func value<Value>(of application: UnsafeRawBufferPointer, in table: [UInt64: Known<Value>]) -> Value? {
    guard !table.isEmpty, let known = table[NameHash.hash(application)], application.elementsEqual(known.name) else { return nil }
    return known.value
  }

  /// The limits of an application, present and past.
  public func limits(of application: UnsafeRawBufferPointer) -> LimitHistory? { Self.value(of: application, in: limits) }

  /// The period of an application's limits in which a record was published, and the name hash of the application.
  ///
  /// - Parameter time: the record's timestamp.
  func limit(of application: UnsafeRawBufferPointer, at time: Int64) -> (hash: UInt64, period: LimitPeriod)? {
    guard time < limitsEnd, !application.isEmpty else { return nil }
    let hash = NameHash.hash(application)
    guard let limited = limits[hash], application.elementsEqual(limited.name) else { return nil }
    return limited.value.period(at: time).map { (hash, $0) }
  }

  /// The interruption levels that an application was granted.
  public func granted(to application: UnsafeRawBufferPointer) -> GrantedLevels { Self.value(of: application, in: grants) ?? [] }

  /// Forgets the application that was started again the longest time ago, for one that is stopped.
  private mutating func makeRoom(forOpen isOpen: Bool) -> Bool {
    let ended = applications.compactMap { hash, application in application.value.stops.last?.to.map { (hash: hash, end: $0) } }
    guard isOpen, let oldest = ended.min(by: { $0.end < $1.end }) else { return false }
    applications[oldest.hash] = nil
    return true
  }

  /// The stops of an application; nil if it has none.
  public func stops(of application: UnsafeRawBufferPointer) -> ApplicationStops? { Self.value(of: application, in: applications) }

  /// The stops of an application by its name hash. `name` is called only if the hash is known.
  public func stops(hash: UInt64, name: () -> UnsafeRawBufferPointer) -> ApplicationStops? {
    guard let application = applications[hash], name().elementsEqual(application.name) else { return nil }
    return application.value
  }
}
