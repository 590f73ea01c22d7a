/// What an audit has found: counts, and the first violations in full.
public struct AuditFindings: Sendable, Equatable {
  /// How a request can end on a device.
  public enum Outcome: String, Sendable, CaseIterable {
    /// The device has it.
    case delivered
    /// The device has it in place of an older one.
    case updated
    /// What it was to remove is removed.
    case removed
    /// A newer one took its place.
    case collapsed
    /// It came too late.
    case expired
    /// The mailbox was full.
    case evicted
    /// It was not wanted.
    case filtered
    /// The device had the same apns-id.
    case duplicate
    /// Nobody is registered.
    case unregistered
    /// It was called back.
    case canceled
    /// It breaks a rule.
    case rejected
    /// It could not be processed.
    case dead
    /// It came again by a replay, and was published and applied before what is audited.
    case replayed
    /// It waits for its device.
    case pending
    /// It is too young to be judged.
    case inFlight
    /// It has none.
    case lost
  }

  /// Records of the requests topic.
  public var records = 0
  /// Requests that are older than the events or the journal that is left, so that nothing can be said of them.
  public var untold = 0
  /// Requests: records of one request that came again are one.
  public var requests = 0
  /// Records of the journal.
  public var journal = 0
  /// Entries of the journal that came so much before or after their requests that these were read once more.
  public var late = 0
  /// Records of the events topic.
  public var events = 0
  /// Records of the events topic that are no events, of the journal that cannot be read, and offsets of batches that cannot be read.
  public var unreadable = 0
  /// Records of the dead letters.
  public var deadLetters = 0
  /// How requests ended: each of them once for each of its devices.
  public private(set) var outcomes: [Outcome: Int] = [:]
  /// Events that tell what was told before, by the same id.
  public var repeats = 0
  /// Deliveries that a device dropped since it had them.
  public var known = 0
  /// Stale ones that a device dropped.
  public var staleDropped = 0
  /// Acknowledged after their end, by less than an acknowledgement may be under way.
  public var acknowledgedLate = 0
  /// Endings that no event tells, by what else happened.
  public var derived = 0
  /// How many violations of each kind.
  public private(set) var counts: [Violation.Kind: Int] = [:]
  /// The first of them.
  public private(set) var violations: [Violation] = []
  /// How many are kept.
  public let limit: Int

  /// Findings without anything found.
  public init(limit: Int = 20) { self.limit = limit }

  /// How many violations there are.
  public var violationCount: Int { counts.values.reduce(0, +) }

  mutating func count(_ outcome: Outcome, _ count: Int = 1) {
    if count > 0 { outcomes[outcome, default: 0] += count }
  }

  /// Notes a violation; it is only made when there is room for it.
  mutating func add(_ kind: Violation.Kind, _ make: @autoclosure () -> Violation) {
    counts[kind, default: 0] += 1
    if violations.count < limit { violations.append(make()) }
  }
}
