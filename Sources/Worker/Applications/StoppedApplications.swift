public import Notifications

/// The stops of all applications, from the records of the topic `applications`. A value.
///
/// The newest record of an application has all its stops. An unreadable record changes nothing.
public struct StoppedApplications: Sendable {
  /// The most applications that are remembered.
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

  /// By the stable hashes of their names.
  private var applications: [UInt64: Application] = [:]

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
    default: return .nothing
    }
  }

  /// Forgets the application that was started again the longest time ago, in favour of a new one.
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
