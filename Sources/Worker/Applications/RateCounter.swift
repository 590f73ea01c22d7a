public import Notifications

/// Why a request is beyond a rate limit of its application.
public struct RateExcess: Sendable, Hashable {
  /// What has too many requests.
  public enum Scope: Sendable, Hashable, CaseIterable {
    /// The target, of this application.
    case target
    /// The application.
    case application
  }

  // In this order it takes sixteen bytes: many may be kept.

  /// The end of the window, in milliseconds since 1970.
  public let retryAfter: Int64
  private let number: UInt32
  private let milliseconds: UInt16
  /// What has too many requests.
  public let scope: Scope

  /// The number of requests that were accepted in the window.
  public var limit: Int64 { Int64(number) }
  /// The length of the window, in milliseconds.
  public var window: Int64 { Int64(milliseconds) }

  /// Creates an excess over a limit, which must be allowed.
  init(scope: Scope, limit: Int64, window: Int64, retryAfter: Int64) {
    (self.scope, self.retryAfter) = (scope, retryAfter)
    (number, milliseconds) = (UInt32(clamping: limit), UInt16(clamping: window))
  }
}

/// Counts the requests of one partition by the rate limits of their applications. A value.
///
/// It must get every record of the partition from some offset on, in the order of the log, each once. Its answers follow from these records
/// and from the limits alone. So they are the same after a crash, in another worker, and in the audit.
///
/// The windows follow the latest timestamp of the partition: while a timestamp steps back, the present window stays open. So its records
/// stand together in the log. The counts of a window are complete if the first record that was given is the partition's first one
/// with a timestamp of ``historyMilliseconds`` before, or later.
public struct RateCounter: Sendable {
  /// How far before a record the counting must begin, in milliseconds: one window.
  public static var historyMilliseconds: Int64 { RateLimit.windows.upperBound - 1 }
  /// How far a timestamp may step back, in milliseconds. Beyond that the later one was wrong, and must not keep its window open.
  public static var maximumStepBack: Int64 { 60_000 }
  /// The number of targets that are counted in a window of an application. Further ones are not limited in it.
  public static var maximumTargets: Int { 100_000 }

  /// The windows of one limit of an application.
  private struct Key: Hashable {
    let application: UInt64
    /// The length of the window, in milliseconds.
    let window: Int64
    /// The beginning of the limit.
    let from: Int64
    /// Whether removals are counted. Devices publish some, so they take no room of the notifications.
    let isOfRemovals: Bool
  }

  private struct Window {
    let number: Int64
    var total: Int64 = 0
    /// By the targets' hashes.
    var targets: [UInt64: Int64] = [:]

    /// Counts a request. Returns what has too many.
    mutating func count(_ target: UInt64?, _ limit: RateLimit, maximumTargets: Int) -> RateExcess.Scope? {
      total += 1
      if let target, let most = limit.perTarget, targets.count < maximumTargets || targets[target] != nil {
        targets[target, default: 0] += 1
        if targets[target, default: 0] > most { return .target }
      }
      return limit.perApplication.map { total > $0 } == true ? .application : nil
    }
  }

  private var windows: [Key: Window] = [:]
  private let maximumTargets: Int
  /// The latest timestamp; `min` before the first.
  private(set) var latest = Int64.min
  /// The timestamp at which windows that are over are dropped.
  private var nextSweep = Int64.min

  /// Creates a counter that has seen no record.
  public init(maximumTargets: Int = RateCounter.maximumTargets) { self.maximumTargets = maximumTargets }

  /// Counts the next record of the partition. Returns why it is beyond a limit; nil if it is not.
  ///
  /// - Parameters:
  ///   - request: the record, as far as its headers can be read.
  ///   - timestamp: of the record, in milliseconds since 1970; negative if it has none. Such a record counts in the present window.
  public mutating func count(_ request: RequestEnvelope, at timestamp: Int64, _ applications: StoppedApplications) -> RateExcess? {
    if timestamp >= 0 { advance(to: timestamp) }
    let timestamp = timestamp >= 0 ? timestamp : latest
    guard timestamp >= 0, request.countsForLimits, let limited = applications.limit(of: request.application, at: timestamp),
      let limit = limited.period.limit
    else { return nil }
    let target = limit.perTarget == nil ? nil : request.targetHash
    return count(
      Key(application: limited.hash, window: limit.window, from: limited.period.from, isOfRemovals: request.isRemoval), target, limit)
  }

  /// The beginning of the present window of a length, in milliseconds since 1970.
  public func windowStart(of length: Int64) -> Int64 { latest == .min ? .min : latest / length * length }

  private mutating func advance(to timestamp: Int64) {
    if timestamp > latest {
      latest = timestamp
    } else if latest - timestamp > Self.maximumStepBack {
      (latest, windows, nextSweep) = (timestamp, [:], .min)
    }
    guard latest >= nextSweep else { return }
    let now = latest
    // A window that is over is never counted in again: while the windows stay, the latest timestamp only grows.
    windows = windows.filter { key, window in (window.number + 1) * key.window > now }
    nextSweep = now + RateLimit.windows.upperBound
  }

  private mutating func count(_ key: Key, _ target: UInt64?, _ limit: RateLimit) -> RateExcess? {
    let number = latest / limit.window
    if windows[key]?.number != number { windows[key] = Window(number: number) }
    guard let scope = windows[key]?.count(target, limit, maximumTargets: maximumTargets) else { return nil }
    let most = scope == .target ? limit.perTarget : limit.perApplication
    return RateExcess(scope: scope, limit: most ?? 0, window: limit.window, retryAfter: (number + 1) * limit.window)
  }

  /// The number of windows that are kept.
  var keptWindows: Int { windows.count }
}

extension RequestEnvelope {
  /// Whether the record counts for the limits of its application.
  ///
  /// A replay has no effect. A firing comes from the cluster; one of another producer shows what the schedule shows, or nothing. A record that
  /// only has the header is none.
  public var countsForLimits: Bool {
    guard origin?.purpose != .replay else { return false }
    return firing.isEmpty || (try? FiringHeader(firing))?.occurrence != id
  }

  /// The hash of the target; nil if the target breaks a rule. Such a record counts for its application alone.
  var targetHash: UInt64? { Target(target)?.hash }
}
