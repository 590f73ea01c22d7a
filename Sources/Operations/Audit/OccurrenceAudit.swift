import EventLoop
import Notifications

/// Checks each schedule by its request, its firings and its end. A value.
///
/// Only firings that took effect count. Any producer may write a firing, and the cluster repeats a firing that may be lost. The first one
/// that fits the schedule takes effect, and its record names the previous occurrence. So the occurrences of a schedule form a chain in each
/// zone.
///
/// It does not check what it cannot know: without the request's record neither end nor chain, and without a calendar no wall time.
struct OccurrenceAudit {
  let rules: AuditRules

  /// Checks these facts, which it sorts. They must contain all facts of each schedule.
  func check(_ facts: inout [ScheduleFact], _ findings: inout AuditFindings) {
    facts.sort(by: Self.precedes)
    facts[...].forEachRun(of: \.schedule) { check(History($0), &findings) }
  }

  /// Compares the schedules, then the positions.
  private static func precedes(_ a: ScheduleFact, _ b: ScheduleFact) -> Bool {
    (a.schedule, a.partition, a.offset) < (b.schedule, b.partition, b.offset)
  }

  /// A record of a firing that was not ignored.
  private struct Fired {
    let firing: ScheduleFact.Firing
    let fate: ScheduleFact.Fate
    let place: Violation.Place

    /// Whether the cluster may have written it: it lies in the partition of its schedule.
    var isAtHome: Bool { place.partition == firing.home }
    /// Whether its occurrence depends on its devices' zones, which may leave and return.
    var isOfZone: Bool { firing.zone != 0 }
    /// Whether a worker states that it took effect.
    var tookEffect: Bool { fate != .unknown }
  }

  /// An occurrence in a zone.
  private struct Occurrence: Hashable {
    let zone: UInt64
    let name: Int64
  }

  /// All facts of one schedule.
  private struct History {
    var triggers: [ScheduleFact.Trigger] = []
    var requests: [Violation.Place] = []
    var fired: [Fired] = []
    var occurrences: [Occurrence: [Fired]] = [:]
    /// The offset of the first request in each partition that ended it.
    var superseded: [Int32: Int64] = [:]
    /// The first event of its end.
    var ended: (at: Int64, place: Violation.Place)?

    init(_ facts: ArraySlice<ScheduleFact>) {
      var fates: [RecordPlace: ScheduleFact.Fate] = [:]
      for fact in facts {
        if case .effect(let fate) = fact.statement { fates[fact.place] = fate }
      }
      for fact in facts {
        let place = Violation.Place(topic: .requests, partition: fact.partition, offset: fact.offset)
        switch fact.statement {
        case .request(let trigger):
          triggers.append(trigger)
          requests.append(place)
        case .firing(let firing):
          guard let fate = fates[fact.place] else { continue }
          let one = Fired(firing: firing, fate: fate, place: place)
          fired.append(one)
          occurrences[Occurrence(zone: firing.zone, name: firing.name), default: []].append(one)
        case .effect: break
        case .superseded: superseded[fact.partition] = min(superseded[fact.partition] ?? .max, fact.offset)
        case .ended(let at):
          if at < ended?.at ?? .max { ended = (at, Violation.Place(topic: .events, partition: fact.partition, offset: fact.offset)) }
        }
      }
    }
  }

  private func check(_ history: History, _ findings: inout AuditFindings) {
    for fired in history.fired where fired.tookEffect {
      checkDueTime(fired, history, &findings)
      guard !history.requests.isEmpty else { continue }
      checkEnd(fired, history, &findings)
      checkChain(fired, history, &findings)
    }
    for occurrence in history.occurrences.values where occurrence.count > 1 { checkRepeats(occurrence, history, &findings) }
  }

  private func add(
    _ kind: Violation.Kind, _ fired: Fired, _ history: History, _ detail: String = "", beside places: [Violation.Place] = [],
    _ findings: inout AuditFindings
  ) {
    findings.add(kind, fired.firing.id, history.requests.prefix(1) + places + [fired.place], detail)
  }

  // MARK: The due time

  /// Checks that a firing was not early: by its due time, and by the trigger.
  ///
  /// The worker judges by the time of the record, so no clock needs a tolerance. If the request was published again, any of its records may
  /// be the one that was applied.
  private func checkDueTime(_ fired: Fired, _ history: History, _ findings: inout AuditFindings) {
    let firing = fired.firing
    if firing.at < firing.due {
      let early = ReadableText.duration(milliseconds: firing.due - firing.at)
      return add(.firedEarly, fired, history, "\(early) before it was due", &findings)
    }
    guard let earliest = history.triggers.map({ $0.earliest(firing.name) }).min(), firing.due < earliest else { return }
    let early = ReadableText.duration(milliseconds: earliest.subtractingReportingOverflow(firing.due).partialValue)
    add(.firedEarly, fired, history, "due \(early) before its trigger says", &findings)
  }

  // MARK: The end

  /// Checks that the schedule had not ended before the firing.
  ///
  /// It looks for an earlier request in the partition, and for an event well before the time of the record.
  private func checkEnd(_ fired: Fired, _ history: History, _ findings: inout AuditFindings) {
    let place = fired.place
    if fired.isAtHome, let offset = history.superseded[place.partition], offset < place.offset {
      let ender = Violation.Place(topic: .requests, partition: place.partition, offset: offset)
      return add(.firedAfterEnd, fired, history, "the request at offset \(offset) had ended the schedule", beside: [ender], &findings)
    }
    guard let ended = history.ended, ended.at < fired.firing.at - rules.clockSlack else { return }
    let late = ReadableText.duration(milliseconds: fired.firing.at - ended.at)
    add(.firedAfterEnd, fired, history, "\(late) after the event of its end", beside: [ended.place], &findings)
  }

  // MARK: The chain

  /// Checks that the previous occurrence fired or was skipped.
  private func checkChain(_ fired: Fired, _ history: History, _ findings: inout AuditFindings) {
    let firing = fired.firing
    // The journal of the previous occurrence may be written later.
    guard fired.isAtHome, !rules.isYoung(firing.at), rules.unreadable[fired.place.partition]?.isEmpty ?? true else { return }
    let trigger = history.triggers.count == 1 ? history.triggers.first : nil
    guard firing.previous != 0 else {
      if !fired.isOfZone, let trigger, trigger.repeats, trigger.interval != nil, trigger.notBefore == nil, firing.name > 1 {
        add(.occurrenceMissing, fired, history, "occurrence \(firing.name) is the first", &findings)
      }
      return
    }
    guard let before = history.occurrences[Occurrence(zone: firing.zone, name: firing.previous)] else {
      return add(.occurrenceMissing, fired, history, "the occurrence before it, \(firing.previous), has not fired", &findings)
    }
    // The names of an interval are numbers. Only events tell how many were skipped together.
    guard let trigger, trigger.interval != nil, before.allSatisfy({ $0.fate == .fired }),
      firing.name.subtractingReportingOverflow(firing.previous).partialValue > 1
    else { return }
    let detail = "no occurrence fired between \(firing.previous) and \(firing.name)"
    add(.occurrenceMissing, fired, history, detail, beside: before.map(\.place), &findings)
  }

  // MARK: Twice

  /// Checks that an occurrence took effect only once.
  ///
  /// A zone that left and returned begins a new chain. An occurrence without a previous one may fire again there, because its devices know
  /// it.
  private func checkRepeats(_ occurrence: [Fired], _ history: History, _ findings: inout AuditFindings) {
    var first: Fired?
    for fired in occurrence where fired.tookEffect && fired.isAtHome && !(fired.isOfZone && fired.firing.previous == 0) {
      if let first { add(.firedTwice, fired, history, beside: [first.place], &findings) } else { first = fired }
    }
  }
}

extension ScheduleFact {
  fileprivate var place: RecordPlace { RecordPlace(partition: partition, offset: offset) }
}
