/// The findings of an audit: counts, and the first violations in full.
public struct AuditFindings: Sendable, Equatable {
  /// How a request can end on a device.
  public enum Outcome: String, Sendable, CaseIterable {
    /// The device has it.
    case delivered
    /// The device has it in place of an older one.
    case updated
    /// The device has removed the notifications that it names.
    case removed
    /// A newer one replaced it.
    case collapsed
    /// It expired.
    case expired
    /// The mailbox was full.
    case evicted
    /// It was filtered out.
    case filtered
    /// The device had the same apns-id.
    case duplicate
    /// The device is not registered.
    case unregistered
    /// It was withdrawn.
    case canceled
    /// It breaks a rule.
    case rejected
    /// It could not be processed.
    case dead
    /// A replay published it again. Its first record was applied before the audited range.
    case replayed
    /// It is in the device's mailbox.
    case pending
    /// It is too young to judge.
    case inFlight
    /// It has no outcome.
    case lost
  }

  /// Records of the requests topic.
  public var records = 0
  /// Requests older than the remaining events or journal, so nothing can be said of them.
  public var untold = 0
  /// Requests; several records of one request count once.
  public var requests = 0
  /// Records of the journal.
  public var journal = 0
  /// Entries of the journal that came so far from their requests that these were read once more.
  public var late = 0
  /// Records of the events topic.
  public var events = 0
  /// Unreadable records of the events and the journal, and unreadable offsets of requests.
  public var unreadable = 0
  /// Records of the dead letters.
  public var deadLetters = 0
  /// The outcomes of requests, one for each of their devices.
  public private(set) var outcomes: [Outcome: Int] = [:]
  /// Events with an id that was seen before.
  public var repeats = 0
  /// Deliveries that a device dropped because it had them.
  public var known = 0
  /// Stale deliveries that a device dropped.
  public var staleDropped = 0
  /// Acknowledgements after the end of their requests, by less than an acknowledgement may take.
  public var acknowledgedLate = 0
  /// Endings without an event, derived from other events.
  public var derived = 0
  /// The number of violations of each kind.
  public private(set) var counts: [Violation.Kind: Int] = [:]
  /// The first violations.
  public private(set) var violations: [Violation] = []
  /// The most violations that are kept.
  public let limit: Int

  /// Makes findings without any count.
  public init(limit: Int = 20) { self.limit = limit }

  /// The number of violations.
  public var violationCount: Int { counts.values.reduce(0, +) }

  mutating func count(_ outcome: Outcome, _ count: Int = 1) {
    if count > 0 { outcomes[outcome, default: 0] += count }
  }

  /// Counts a violation, and keeps it unless the limit is reached.
  mutating func add(_ kind: Violation.Kind, _ make: @autoclosure () -> Violation) {
    counts[kind, default: 0] += 1
    if violations.count < limit { violations.append(make()) }
  }
}
