public import Notifications

/// Which applications are stopped, and were, as the records of `notifications.applications` say: a value.
///
/// The newest record of an application tells all; what cannot be read changes nothing.
public struct StoppedApplications: Sendable {
  /// Applications that are remembered at most.
  public static var maximum: Int { 4_096 }

  /// What a record has changed.
  public enum Change: Sendable, Equatable {
    /// The application is stopped, and was not.
    case stopped(ApplicationStop)
    /// The application is not stopped any more.
    case started
    /// Nothing that matters now.
    case nothing
    /// The record counts for nothing, for this reason.
    case refused(String)
  }

  private struct Application {
    let name: [UInt8]
    var stops: ApplicationStops
  }

  /// By the stable hashes of their names.
  private var applications: [UInt64: Application] = [:]

  /// No application was ever stopped.
  public init() {}

  /// Whether no application was ever stopped, as far as is remembered.
  public var isEmpty: Bool { applications.isEmpty }

  /// Takes a record, the records of an application in their order.
  ///
  /// - Parameters:
  ///   - key: the application.
  ///   - value: its stops; nil: it has none any more.
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

  /// Forgets the application that was started again the longest time ago, for one that is stopped.
  private mutating func makeRoom(forOpen isOpen: Bool) -> Bool {
    let ended = applications.compactMap { hash, application in application.stops.stops.last?.to.map { (hash: hash, end: $0) } }
    guard isOpen, let oldest = ended.min(by: { $0.end < $1.end }) else { return false }
    applications[oldest.hash] = nil
    return true
  }

  /// The stops of an application; nil where none are remembered.
  public func stops(of application: UnsafeRawBufferPointer) -> ApplicationStops? {
    guard !applications.isEmpty else { return nil }
    return stops(hash: StableHash.hash(application)) { application }
  }

  /// The same, by the stable hash of the name, which is only asked for where an application with that hash is remembered.
  public func stops(hash: UInt64, name: () -> UnsafeRawBufferPointer) -> ApplicationStops? {
    guard let application = applications[hash], name().elementsEqual(application.name) else { return nil }
    return application.stops
  }
}
