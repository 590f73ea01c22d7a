import EventLoop
import Notifications

/// Checks each device by all its facts: order, derived endings, registrations, responses. A value.
///
/// A missing ending is derived. If a newer revision of the identifier entered the mailbox, the request collapsed. If a newer removal of all
/// did, it was canceled. Otherwise it is expired after its end, and pending before.
///
/// A request is *overlooked*, which is a loss, if the device acknowledged later requests at two moments while it waited. The moments lie
/// further apart than a takeover takes. Sessions read mailboxes from the oldest entry on, at their start and from time to time. So the
/// request would have been among the first at the second moment.
///
/// A request is *overwritten*, which is a loss too, if another request entered the mailbox later at the same revision.
struct DeviceAudit {
  let rules: AuditRules
  /// Called for each request that must still be in its mailbox, overlooked ones included.
  var onWaiting: (AuditFact) -> Void = { _ in }

  /// Checks these facts, which it sorts. They must contain all facts of each device.
  func check(_ facts: inout [AuditFact], _ findings: inout AuditFindings) {
    facts.sort(by: Self.precedes)
    facts[...].forEachRun(of: \.device) { check($0, &findings) }
  }

  /// Compares device and identifier, then time.
  private static func precedes(_ a: AuditFact, _ b: AuditFact) -> Bool {
    if a.device != b.device { return a.device < b.device }
    if a.identifier != b.identifier { return a.identifier < b.identifier }
    if a.time != b.time { return a.time < b.time }
    return (a.partition, a.offset, a.kind.rank) < (b.partition, b.offset, b.kind.rank)
  }

  private func check(_ facts: ArraySlice<AuditFact>, _ findings: inout AuditFindings) {
    let hasOpen = facts.contains { $0.kind == .open }
    let hasCollapsed = facts.contains { $0.outcome == .collapsed }
    let needsRegistrations = facts.contains { $0.outcome == .unregistered || $0.kind == .refused }
    let responses = facts.count { $0.outcome?.isByPerson == true }
    let taken = hasOpen ? Taken(facts) : Taken([])
    let contests = hasOpen || hasCollapsed ? Contests(facts) : Contests([])
    let removals = Removals(facts)
    facts.forEachRun(of: \.identifier) { run in
      if run.first?.identifier != 0 { checkIdentifier(run, taken, contests, removals, &findings) }
    }
    if needsRegistrations { checkRegistrations(facts, &findings) }
    if responses > 1 { checkResponses(facts, &findings) }
  }

  // MARK: Order

  private func checkIdentifier(
    _ facts: ArraySlice<AuditFact>, _ taken: Taken, _ contests: Contests, _ removals: Removals, _ findings: inout AuditFindings
  ) {
    var newest = Newest()
    var shows = 0
    for fact in facts {
      if fact.isKept { newest.take(fact) }
      if fact.isNewShow { shows += 1 }
    }
    for fact in facts {
      if fact.kind == .open {
        if let other = contests.overwriter(of: fact) {
          findings.lost += 1
          onWaiting(fact)
          findings.add(.overwritten, fact.id, [fact, other], "by \(other.id)")
          continue
        }
        let ending: Outcome? =
          if newest.isNewer(than: fact) { .collapsed } else if removals.bar(fact) { .canceled } else { nil }
        checkOpen(fact, derived: ending, taken, &findings)
      } else if rules.isAudited(fact), !rules.isYoung(fact.time), let kind = wrongEnding(fact, newest, contests, removals) {
        findings.add(kind, fact.id, facts.filter { $0.id == fact.id })
      }
    }
    if shows > 1 { checkShows(facts.filter(\.isNewShow), &findings) }
  }

  /// Checks that what was declared to have ended by another request has one that ends it.
  private func wrongEnding(_ fact: AuditFact, _ newest: Newest, _ contests: Contests, _ removals: Removals) -> Violation.Kind? {
    // A device drops what is older than its removal of all.
    if fact.outcome == .collapsed {
      let hasReason = newest.supersedes(fact) || contests.hasOther(than: fact)
      return hasReason || removals.explain(fact, slack: rules.clockSlack) ? nil : .collapsedByNothing
    }
    // Where the device does not say it, the event names the removal.
    guard fact.outcome == .canceled, !fact.flags.contains(.namesSuccessor) else { return nil }
    return removals.explain(fact, slack: rules.clockSlack) ? nil : .canceledByNothing
  }

  /// The revisions that the device kept for an identifier.
  ///
  /// For each partition these are the newest one, and the one with the highest offset.
  private struct Newest {
    private var newest: [UInt32: JournalReference] = [:]
    private var highest: [UInt32: Revision] = [:]

    mutating func take(_ fact: AuditFact) {
      let kept = fact.order
      if newest[fact.log].map({ $0.revision.isKeptBefore(kept) }) ?? true {
        newest[fact.log] = JournalReference(revision: kept, id: fact.id)
      }
      if highest[fact.log].map({ $0.offset < kept.offset }) ?? true { highest[fact.log] = kept }
    }

    /// Whether a newer revision was kept than that of a fact which was also kept.
    ///
    /// A record that comes again may have an earlier time than the first one of its request.
    func isNewer(than fact: AuditFact) -> Bool {
      newest.values.contains { fact.order.isKeptBefore($0.revision) && !($0.id == fact.id && $0.revision.sharesPlace(with: fact.order)) }
    }

    /// Whether a request may have collapsed.
    ///
    /// Its revision was kept and is older, or its published position is stale.
    func supersedes(_ fact: AuditFact) -> Bool {
      let own = highest[fact.log].map { [$0] } ?? []
      return isNewer(than: fact) || (own + newest.values.map(\.revision)).contains { fact.order.isOlder(than: $0) }
    }
  }

  /// The removals of all notifications that entered the device's mailbox.
  private struct Removals {
    private var newest = Newest()
    private var all: [AuditFact] = []

    init(_ facts: ArraySlice<AuditFact>) {
      for fact in facts where fact.isKept && fact.flags.contains(.removesAll) {
        newest.take(fact)
        all.append(fact)
      }
    }

    /// Whether one of them ends a request.
    func bar(_ fact: AuditFact) -> Bool { !fact.flags.contains(.isOfPending) && newest.isNewer(than: fact) }

    /// Whether one of them ended a request at the time at which that was told.
    func explain(_ fact: AuditFact, slack: Int64) -> Bool {
      bar(fact) && all.contains { fact.order.isKeptBefore($0.order) && Int64(clamping: $0.revision) <= fact.time + slack }
    }
  }

  /// Checks the order of shows.
  ///
  /// An acknowledgement may be delayed by a takeover. If it is later than that, the notification was also shown later.
  private func checkShows(_ shows: [AuditFact], _ findings: inout AuditFindings) {
    var newest: AuditFact?
    var next = 0
    for show in shows {
      while shows[next].time < show.time - rules.certainlyLater {
        if newest.map({ $0.order.isKeptBefore(shows[next].order) }) ?? true { newest = shows[next] }
        next += 1
      }
      if let newest, show.order.isKeptBefore(newest.order), rules.isAudited(show) {
        let detail = "\(ReadableText.duration(milliseconds: show.time - newest.time)) after \(newest.id)"
        findings.add(.stale, show.id, [newest, show], detail)
      }
    }
  }

  // MARK: Endings

  private func checkOpen(_ open: AuditFact, derived: Outcome?, _ taken: Taken, _ findings: inout AuditFindings) {
    if let derived {
      findings.derived += 1
      return findings.count(derived)
    }
    if let (first, last) = taken.later(than: open, until: min(open.number, rules.now)), last.time - first.time > rules.certainlyLater {
      findings.lost += 1
      onWaiting(open)
      let detail =
        "later ones were acknowledged \(ReadableText.duration(milliseconds: first.time - open.time)) and \(ReadableText.duration(milliseconds: last.time - open.time)) after it was queued"
      return findings.add(.overlooked, open.id, [open, first, last], detail)
    }
    if open.number <= rules.now {
      findings.derived += 1
      return findings.count(.expired)
    }
    findings.count(.queued)
    if !rules.isYoung(open.time) { onWaiting(open) }
    if rules.settings.forbidsPending {
      findings.add(.pending, open.id, [open], "queued \(ReadableText.duration(milliseconds: rules.now - open.time)) ago")
    }
  }

  /// The mailbox entries whose position several requests have. All but one have a foreign origin.
  private struct Contests {
    private struct Place: Hashable {
      let log: UInt32
      let offset: Int64

      init(_ fact: AuditFact) { (log, offset) = (fact.log, fact.sourceOffset) }
    }

    private var entries: [Place: [AuditFact]] = [:]
    /// The requests with an event that they collapsed.
    private var collapsed: [Place: Set<NotificationID>] = [:]

    init(_ facts: ArraySlice<AuditFact>) {
      var ids: [Place: NotificationID] = [:]
      var places: Set<Place> = []
      for fact in facts where fact.isEntry {
        let place = Place(fact)
        if let id = ids.updateValue(fact.id, forKey: place), id != fact.id { places.insert(place) }
      }
      for fact in facts where fact.outcome == .collapsed {
        let place = Place(fact)
        collapsed[place, default: []].insert(fact.id)
        if let id = ids[place], id != fact.id { places.insert(place) }
      }
      guard !places.isEmpty else { return }
      for fact in facts where fact.isEntry && places.contains(Place(fact)) { entries[Place(fact), default: []].append(fact) }
    }

    /// Returns another request that entered the mailbox at the same revision and did not collapse.
    ///
    /// It entered at the same time or later.
    func overwriter(of open: AuditFact) -> AuditFact? {
      let place = Place(open)
      return entries[place]?.first { other in
        other.id != open.id && other.order == open.order && other.entered >= open.time && collapsed[place]?.contains(other.id) != true
      }
    }

    /// Whether another request entered the mailbox from the same position.
    func hasOther(than fact: AuditFact) -> Bool { entries[Place(fact)]?.contains { $0.id != fact.id } ?? false }
  }

  /// The device's acknowledgements, in order of time.
  private struct Taken {
    private let facts: [AuditFact]
    /// The number of tries to find a later revision. It nearly always suffices.
    private static let steps = 64

    init(_ facts: ArraySlice<AuditFact>) {
      self.facts = facts.filter(\.isTaken).sorted { $0.time < $1.time }
    }

    /// Returns the first and last acknowledgement of a later revision while this request waited.
    func later(than open: AuditFact, until end: Int64) -> (AuditFact, AuditFact)? {
      let order = open.order
      let begin = facts.place { $0.time < open.time }
      let stop = facts.place { $0.time < end }
      guard begin < stop, let first = facts[begin..<stop].prefix(Self.steps).first(where: { order.isKeptBefore($0.order) }),
        let last = facts[begin..<stop].suffix(Self.steps).last(where: { order.isKeptBefore($0.order) })
      else { return nil }
      return (first, last)
    }
  }

  // MARK: Registrations

  /// Checks `unregistered`.
  ///
  /// A device with deliveries before and after was registered, unless it registered again in between.
  private func checkRegistrations(_ facts: ArraySlice<AuditFact>, _ findings: inout AuditFindings) {
    let changes = Moments(facts.compactMap { $0.outcome == .registered || $0.outcome == .unregisteredDevice ? $0.time : nil })
    let kept = Moments(
      facts.compactMap { $0.outcome == .queued || $0.kind == .open ? $0.time : $0.isTaken && $0.number != 0 ? $0.number : nil })
    let slack = rules.clockSlack
    for fact in facts where fact.outcome == .unregistered || fact.kind == .refused {
      guard fact.kind == .refused || rules.isAudited(fact), let before = kept.last(before: fact.time - slack),
        let after = kept.first(from: fact.time + slack + 1), changes.first(from: before - slack) ?? .max > after + slack
      else { continue }
      let word = fact.kind == .refused ? "registered for another application" : "unregistered"
      let detail =
        "\(word), though something was queued \(ReadableText.duration(milliseconds: fact.time - before)) before and \(ReadableText.duration(milliseconds: after - fact.time)) after"
      findings.add(.wronglyUnregistered, fact.id, [fact], detail)
    }
  }

  /// Times in order.
  private struct Moments {
    private let times: [Int64]

    init(_ times: [Int64]) { self.times = times.sorted() }

    func first(from time: Int64) -> Int64? {
      let place = times.place { $0 < time }
      return place < times.count ? times[place] : nil
    }

    func last(before time: Int64) -> Int64? {
      let place = times.place { $0 < time }
      return place > 0 ? times[place - 1] : nil
    }
  }

  // MARK: Responses

  /// Checks that a response has only one event, which may be repeated.
  private func checkResponses(_ facts: ArraySlice<AuditFact>, _ findings: inout AuditFindings) {
    let responses = facts.filter { $0.outcome?.isByPerson == true && $0.number != 0 }
      .sorted { ($0.number, $0.time, $0.offset) < ($1.number, $1.time, $1.offset) }
    responses[...].forEachRun(of: \.number) { all in
      if let first = all.first, all.contains(where: { $0.statement != first.statement }), all.contains(where: rules.isAudited) {
        findings.add(.responseTwice, first.id, all)
      }
    }
  }
}

extension AuditFact {
  /// Whether the device keeps the request's revision.
  fileprivate var isKept: Bool { kind == .open || outcome?.auditUse.contains(.keepsRevision) == true }

  /// Whether the request was in the mailbox.
  fileprivate var isEntry: Bool { outcome == .queued || kind == .open || isTaken }

  /// The time at which it entered the mailbox, if known.
  fileprivate var entered: Int64 { isTaken && number != 0 ? number : time }
}

extension ArraySlice {
  /// Calls `body` with each stretch of neighbours that have the same key.
  func forEachRun<Key: Equatable>(of key: (Element) -> Key, _ body: (ArraySlice) -> Void) {
    var rest = self
    while let first = rest.first.map(key) {
      let run = rest.prefix { key($0) == first }
      rest = rest[run.endIndex...]
      body(run)
    }
  }
}

extension Array {
  /// Returns the index of the first element for which `isBefore` is false. Earlier ones must pass.
  fileprivate func place(_ isBefore: (Element) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if isBefore(self[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
