package import Notifications

/// The findings of an audit: counts, and the first violations in full.
package struct AuditFindings: Sendable, Equatable {
  /// Records of the requests topic.
  package var records = 0
  /// The number of requests that are older than the remaining events or journal.
  package var untold = 0
  /// Requests; several records of one request count once.
  package var requests = 0
  /// Records of the journal.
  package var journal = 0
  /// Records of the events topic.
  package var events = 0
  /// Unreadable records of the events and the journal, and unreadable offsets of requests.
  package var unreadable = 0
  /// Records of the dead letters.
  package var deadLetters = 0
  /// The outcomes of requests, one for each of their devices. A request that waits for its device is `queued`.
  package private(set) var outcomes: [Outcome: Int] = [:]
  /// Requests at devices that are too young to be checked.
  package var inFlight = 0
  /// Requests at devices that have no outcome.
  package var lost = 0
  /// Events with an id that was seen before.
  package var repeats = 0
  /// Deliveries that a device dropped because it had them.
  package var known = 0
  /// Stale deliveries that a device dropped.
  package var staleDropped = 0
  /// Acknowledgements after the end of their requests, by less than an acknowledgement may take.
  package var acknowledgedLate = 0
  /// Endings without an event, derived from other events.
  package var derived = 0
  /// The number of violations of each kind.
  package private(set) var counts: [Violation.Kind: Int] = [:]
  /// The first violations.
  package private(set) var violations: [Violation] = []
  /// The maximum number of violations that are kept.
  package let limit: Int

  /// Creates empty findings.
  package init(limit: Int = 20) { self.limit = limit }

  /// The number of violations.
  package var violationCount: Int { counts.values.reduce(0, +) }

  mutating func count(_ outcome: Outcome, _ count: Int = 1) {
    if count > 0 { outcomes[outcome, default: 0] += count }
  }

  /// Counts a violation, and keeps it unless the limit is reached.
  mutating func add(
    _ kind: Violation.Kind, _ id: NotificationID, _ places: some Sequence<Violation.Place>, _ detail: @autoclosure () -> String = ""
  ) {
    counts[kind, default: 0] += 1
    guard violations.count < limit else { return }
    var violation = Violation(kind: kind, id: id, detail: detail(), places: [])
    for place in places where place.offset >= 0 && violation.places.count < Violation.maximumPlaces {
      if !violation.places.contains(place) { violation.places.append(place) }
    }
    violations.append(violation)
  }

  /// Counts a violation with the records of these facts.
  mutating func add(
    _ kind: Violation.Kind, _ id: NotificationID, _ facts: some Sequence<AuditFact>, _ detail: @autoclosure () -> String = ""
  ) {
    add(kind, id, facts.lazy.map(\.place), detail())
  }
}
