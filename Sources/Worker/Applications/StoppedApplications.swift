public import Notifications

/// Which applications are stopped, and were, and what they were granted, as the records of `notifications.applications` say: a value.
///
/// The newest record of an application has all its stops. An unreadable record changes nothing.
public struct StoppedApplications: Sendable {
  /// Applications that are remembered at most, of those with stops and of those with grants.
  public static var maximum: Int { 4_096 }

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

  private struct Application {
    let name: [UInt8]
    var stops: ApplicationStops
  }

  private struct Grant {
    let name: [UInt8]
    var levels: GrantedLevels
  }

  /// By the stable hashes of their names.
  private var applications: [UInt64: Application] = [:]
  /// The same. Apart, since most applications with grants were never stopped, and each request is looked up among the stops.
  private var grants: [UInt64: Grant] = [:]

  /// A table without stops.
  public init() {}

  /// Whether the table remembers no stop.
  public var isEmpty: Bool { applications.isEmpty }

  /// Takes a record. Those of an application must come in their order.
  ///
  /// - Parameters:
  ///   - key: the application.
  ///   - value: its stops; nil if it has none any more.
  ///   - timestamp: of the record.
  public mutating func take(key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: Int64) -> Change {
    guard let key, ApplicationStops.isApplication(key) else { return .refused(ApplicationStops.nameRule) }
    let hash = StableHash.hash(key)
    var stops = ApplicationStops()
    if let value {
      do throws(FieldError) {
        stops = try ApplicationStops(value, timestamp: timestamp)
      } catch {
        return .refused("\(error)")
      }
    }
    // The stops count, whatever becomes of the grants: an emergency stop is never refused for these.
    let isGranted = take(stops.granted, of: key, hash)
    let former = applications[hash]?.stops.open
    if stops.stops.isEmpty {
      applications[hash] = nil
    } else if applications[hash] != nil || applications.count < Self.maximum || makeRoom(forOpen: stops.open != nil) {
      applications[hash] = Application(name: Array(key), stops: stops)
    } else {
      return .refused("there are more than \(Self.maximum) applications that were stopped")
    }
    switch (former, stops.open) {
    case (nil, let open?): return .stopped(open)
    case (_?, nil): return .started
    default: return isGranted ? .nothing : .refused("there are more than \(Self.maximum) applications that were granted something")
    }
  }

  /// False where there is no room.
  private mutating func take(_ levels: GrantedLevels, of application: UnsafeRawBufferPointer, _ hash: UInt64) -> Bool {
    if levels.isEmpty {
      grants[hash] = nil
    } else {
      guard grants[hash] != nil || grants.count < Self.maximum else { return false }
      grants[hash] = Grant(name: Array(application), levels: levels)
    }
    return true
  }

  /// The interruption levels that an application was granted.
  public func granted(to application: UnsafeRawBufferPointer) -> GrantedLevels {
    guard !grants.isEmpty, let grant = grants[StableHash.hash(application)], application.elementsEqual(grant.name) else { return [] }
    return grant.levels
  }

  /// Forgets the application that was started again the longest time ago, for one that is stopped.
  private mutating func makeRoom(forOpen isOpen: Bool) -> Bool {
    let ended = applications.compactMap { hash, application in application.stops.stops.last?.to.map { (hash: hash, end: $0) } }
    guard isOpen, let oldest = ended.min(by: { $0.end < $1.end }) else { return false }
    applications[oldest.hash] = nil
    return true
  }

  /// The stops of an application; nil if it has none.
  public func stops(of application: UnsafeRawBufferPointer) -> ApplicationStops? {
    guard !applications.isEmpty else { return nil }
    return stops(hash: StableHash.hash(application)) { application }
  }

  /// The stops of an application by the stable hash of its name. `name` is called only if the hash is known.
  public func stops(hash: UInt64, name: () -> UnsafeRawBufferPointer) -> ApplicationStops? {
    guard let application = applications[hash], name().elementsEqual(application.name) else { return nil }
    return application.stops
  }
}
