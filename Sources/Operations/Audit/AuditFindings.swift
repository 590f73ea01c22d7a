public import Notifications

/// The findings of an audit: counts, and the first violations in full.
public struct AuditFindings: Sendable, Equatable {
  /// Records of the requests topic.
  public var records = 0
  /// The number of requests that are older than the remaining events or journal.
  public var untold = 0
  /// Requests; several records of one request count once.
  public var requests = 0
  /// Records of the journal.
  public var journal = 0
  /// Entries of the journal that were read far from their requests. Those were read again.
  public var late = 0
  /// Records of the events topic.
  public var events = 0
  /// Unreadable records of the events and the journal, and unreadable offsets of requests.
  public var unreadable = 0
  /// Records of the dead letters.
  public var deadLetters = 0
  /// The outcomes of requests, one for each of their devices. A request that waits for its device is `queued`.
  public private(set) var outcomes: [Outcome: Int] = [:]
  /// Requests at devices that are too young to be judged.
  public var inFlight = 0
  /// Requests at devices that have no outcome.
  public var lost = 0
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
  /// The maximum number of violations that are kept.
  public let limit: Int

  /// Creates empty findings.
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
