import Calendars
import Notifications
import TestSupport
import Testing

@testable import Operations

/// What an audit finds in schedules and their firings.
@Suite(.onThreadsOfTheirOwn) struct OccurrenceTests {
  private var history = AuditHistory()

  private static let hour = AuditHistory.hour

  /// A request that fires each minute, and two of its firings.
  private mutating func fireTwoOccurrences() {
    history.schedule(1)
    history.fire(2, of: 1, 1, due: 60_000)
    history.fire(3, of: 1, 2, after: 1, due: 120_000)
  }

  // MARK: What may happen

  @Test mutating func `a chain of occurrences is no violation`() {
    fireTwoOccurrences()
    #expect(history.violations == [])
    #expect(history.outcomes == [.scheduled: 1, .delivered: 2])
  }

  @Test mutating func `a firing that is written again, late or by anybody, and that takes no effect is no violation`() {
    fireTwoOccurrences()
    history.fire(4, of: 1, 1, due: 60_000, at: 130_000, .replayed)
    history.fire(5, of: 1, 9, after: 8, due: 540_000, at: 1_000, .replayed)
    history.cancel(6, of: 1, at: 140_000)
    history.fire(7, of: 1, 3, after: 2, due: 180_000, at: 900_000, .replayed)
    #expect(history.violations == [])
  }

  @Test mutating func `a firing that is read again after it was forgotten is judged by its first verdict`() {
    fireTwoOccurrences()
    history.judge(2, .replayed, at: 200_000)
    #expect(history.violations == [])
  }

  @Test mutating func `skipped occurrences leave no gap`() {
    history.schedule(1)
    history.fire(2, of: 1, 1, due: 60_000, at: 1_000_000, .expired, isSkipped: true)
    history.fire(3, of: 1, 17, after: 1, due: 17 * 60_000)
    #expect(history.violations == [])
  }

  @Test mutating func `a record with the apns-id of a scheduled one is its duplicate once the occurrence was shown`() {
    history.schedule(1, repeats: false)
    history.fire(2, of: 1, 1, due: 60_000)
    history.publish(1, offset: 5, at: 70_000)
    history.tell(.duplicate, 1, source: 5, at: 70_010)
    #expect(history.violations == [])
  }

  @Test mutating func `each zone has a chain of its own, and one that comes again begins anew`() {
    history.schedule(1, interval: nil)
    history.fire(2, of: 1, 900, due: 60_000, zone: 7)
    history.fire(3, of: 1, 900, due: 120_000, zone: 8)
    history.fire(4, of: 1, 1800, after: 900, due: 180_000, zone: 7)
    history.fire(5, of: 1, 900, due: 60_000, at: 190_000, zone: 7)
    #expect(history.violations == [])
  }

  @Test mutating func `a range that begins after the request proves nothing of the end and the chain`() {
    history.fire(3, of: 1, 5, after: 4, due: 120_000)
    history.cancel(4, of: 1, at: 130_000)
    history.fire(5, of: 1, 7, after: 6, due: 180_000)
    history.facts.removeAll { $0.outcome == .canceled }
    #expect(history.violations == [])
  }

  @Test mutating func `a firing whose fate nobody knows is a link of the chain`() {
    history.schedule(1)
    history.fire(2, of: 1, 1, due: 60_000, .deadLettered)
    history.tell(.rejected, 2, on: 0, at: 60_020, .isOfPoison)
    history.fire(3, of: 1, 2, after: 1, due: 120_000)
    #expect(history.violations == [])
  }

  @Test mutating func `offsets that nobody could read may have had the missing occurrence`() {
    history.schedule(1)
    history.fire(3, of: 1, 2, after: 1, due: 120_000)
    history.rules.unreadable[0] = [2..<3]
    #expect(history.violations == [])
  }

  @Test mutating func `a redriven trigger counts from the record that was applied`() {
    history.schedule(1, at: 30_000)
    history.publish(1, offset: 2, source: 1, at: 0, [.isRedrive, .isLater])
    history.judge(1, .scheduled, offset: 2, at: 10)
    let trigger = ScheduleFact.Trigger(requested: AuditHistory.beginning, interval: 60_000, notBefore: nil, repeats: true)
    history.schedules.append(ScheduleFact(schedule: history.schedules[0].schedule, statement: .request(trigger), partition: 0, offset: 2))
    history.fire(3, of: 1, 1, due: 60_000)
    #expect(history.violations == [])
  }

  // MARK: What must not happen

  @Test mutating func `an occurrence that fires before its due time is found, however little that is`() {
    history.schedule(1)
    history.fire(2, of: 1, 1, due: 60_000, at: 59_999)
    #expect(history.violations == [.firedEarly])
    #expect(
      history.findings().violations.first?.places == [
        .init(topic: .requests, partition: 0, offset: 1), .init(topic: .requests, partition: 0, offset: 2),
      ])
  }

  @Test(arguments: [(59_000, nil), (60_000, 61_000)] as [(Int64, Int64?)])
  func `a due time that lies before what the trigger says is found`(due: Int64, notBefore: Int64?) {
    var history = history
    history.schedule(1, repeats: notBefore != nil, notBefore: notBefore)
    history.fire(2, of: 1, 1, due: due, at: 70_000)
    #expect(history.violations == [.firedEarly])
  }

  @Test mutating func `an occurrence that fires twice is found`() {
    fireTwoOccurrences()
    history.fire(4, of: 1, 2, after: 1, due: 120_000, at: 130_000)
    #expect(history.violations == [.firedTwice])
  }

  @Test mutating func `an occurrence of one zone that fires twice is found`() {
    history.schedule(1, interval: nil)
    history.fire(2, of: 1, 900, due: 60_000, zone: 7)
    history.fire(3, of: 1, 1800, after: 900, due: 120_000, zone: 7)
    history.fire(4, of: 1, 1800, after: 900, due: 120_000, zone: 7)
    #expect(history.violations == [.firedTwice])
  }

  @Test mutating func `an occurrence that fires behind the cancel is found, however soon`() {
    fireTwoOccurrences()
    history.cancel(4, of: 1, at: 179_999)
    history.fire(5, of: 1, 3, after: 2, due: 180_000)
    #expect(history.violations == [.firedAfterEnd])
    #expect(history.findings().violations.first?.places.contains(.init(topic: .requests, partition: 0, offset: 4)) == true)
  }

  @Test mutating func `an occurrence that fires behind the request that replaced its schedule is found`() {
    fireTwoOccurrences()
    history.schedule(4, at: 179_000, superseding: 1)
    history.fire(5, of: 1, 3, after: 2, due: 180_000)
    #expect(history.violations == [.firedAfterEnd])
  }

  /// A notification that is shown at once replaces it, and an eviction is no request. The event alone tells.
  @Test(arguments: [Outcome.collapsed, .evicted]) func `an occurrence that fires well after the event of the end is found`(end: Outcome) {
    var history = history
    history.schedule(1)
    history.tell(end, 1, at: 50_000)
    history.fire(2, of: 1, 1, due: 60_000)
    #expect(history.violations == [.firedAfterEnd])
    // Two clocks may differ by so much.
    history.rules.clockSlack = 10_000
    #expect(history.violations == [])
  }

  @Test(arguments: [Outcome.replayed, nil]) func `an occurrence that never took effect before the next one is found`(verdict: Outcome?) {
    var history = history
    history.schedule(1)
    if let verdict { history.fire(2, of: 1, 1, due: 60_000, verdict) }
    history.fire(3, of: 1, 2, after: 1, due: 120_000)
    #expect(history.violations == [.occurrenceMissing])
  }

  @Test mutating func `a number that an interval passed over is found`() {
    history.schedule(1)
    history.fire(2, of: 1, 1, due: 60_000)
    history.fire(3, of: 1, 3, after: 1, due: 180_000)
    #expect(history.violations == [.occurrenceMissing])
  }

  @Test mutating func `a chain that does not begin with the first occurrence is found`() {
    history.schedule(1)
    history.fire(2, of: 1, 2, due: 120_000)
    #expect(history.violations == [.occurrenceMissing])
  }

  // MARK: Random histories

  /// A firing that took effect, as a reader of the log would note it.
  private struct Noted {
    var name: Int64
    var previous: Int64
    var due: Int64
    var at: Int64
    var isSkip: Bool
  }

  @Test(arguments: 0..<(isComplete ? 200 : 40)) func `an audit finds what a walk through the log finds`(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var history = history
    (history.rules.now, history.rules.written) = (AuditHistory.beginning + 100 * Self.hour, AuditHistory.beginning + 100 * Self.hour)
    history.schedule(1)
    var noted: [Noted] = []
    var canceled = false
    var expected: [Violation.Kind: Int] = [:]
    func expect(_ kind: Violation.Kind, _ holds: Bool) { if holds { expected[kind, default: 0] += 1 } }
    var (name, previous): (Int64, Int64) = (1, 0)
    for id in 2..<30 {
      if Int.random(in: 0..<25, using: &random) == 0, !canceled {
        history.cancel(id, of: 1, at: noted.map(\.at).max() ?? 1)
        canceled = true
        continue
      }
      // Mostly the one that is due; sometimes another, which should have been ignored.
      var fired = Noted(name: name, previous: previous, due: name * 60_000, at: 0, isSkip: Int.random(in: 0..<8, using: &random) == 0)
      let isOdd = Int.random(in: 0..<6, using: &random) == 0
      if isOdd {
        fired.name = max(1, name + Int64.random(in: -2...2, using: &random))
        fired.previous = max(0, fired.name - Int64.random(in: 0...2, using: &random))
        fired.due = fired.name * 60_000
      }
      fired.at = fired.due + (Int.random(in: 0..<10, using: &random) == 0 ? -1 : Int64.random(in: 0...5_000, using: &random))
      if fired.previous == fired.name { fired.previous = 0 }
      let isIgnored = Int.random(in: 0..<4, using: &random) == 0
      let verdict: Outcome = isIgnored ? .replayed : fired.isSkip ? .expired : .queued
      history.fire(
        id, of: 1, fired.name, after: fired.previous, due: fired.due, at: fired.at, verdict, isSkipped: fired.isSkip && !isIgnored)
      guard !isIgnored else { continue }
      expect(.firedEarly, fired.at < fired.due)
      expect(.firedAfterEnd, canceled)
      expect(.firedTwice, noted.contains { $0.name == fired.name })
      noted.append(fired)
      if !isOdd { (name, previous) = (fired.isSkip ? name + Int64.random(in: 1...3, using: &random) : name + 1, name) }
    }
    for fired in noted {
      let before = noted.filter { $0.name == fired.previous }
      let isGap =
        fired.previous == 0 ? fired.name > 1 : before.isEmpty || before.allSatisfy { !$0.isSkip } && fired.name > fired.previous + 1
      expect(.occurrenceMissing, isGap)
    }
    #expect(history.findings(limit: 0).counts == expected, "seed \(seed)")
  }

  private static let triggers = [
    #"{"type":"timeInterval","timeInterval":60,"repeats":true}"#, #"{"type":"timeInterval","timeInterval":60,"repeats":true,"late":90}"#,
    #"{"type":"timeInterval","timeInterval":90}"#, #"{"type":"calendar","dateComponents":{"second":30,"timeZone":"UTC"},"repeats":true}"#,
    #"{"type":"calendar","dateComponents":{"minute":0},"repeats":true}"#, #"{"type":"calendar","dateComponents":{"hour":9}}"#,
    #"{"type":"calendar","dateComponents":{"hour":9},"repeats":true,"notBefore":1700100000}"#,
  ]

  /// The rules of the workers decide; it is killed and reads again, and firings are written twice, forged and late.
  @Test(arguments: 0..<(isComplete ? 200 : 20)) func `an audit finds nothing in what the rules of schedules allow`(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var history = history
    let zones: [Name] = ["Europe/Rome", "America/New_York", "Asia/Tokyo", "UTC", "Asia/Kathmandu"]
    var rules = ScheduleRules()
    var record: ScheduleRecord?
    var clock: Int64 = 0
    var decided: [(Int, ScheduleRules.Firing)] = []
    var ignored: Set<Int> = []
    for id in 1..<60 {
      clock += [0, 1, 30_000, 60_000, 600_000, 7_200_000].randomElement(using: &random) ?? 0
      let now = AuditHistory.beginning + clock
      let revision = Revision(timestamp: UInt64(AuditHistory.beginning) + UInt64(id), partition: 0, offset: UInt64(id))
      let reference = JournalReference(revision: revision, id: AuditHistory.id(id))
      let present = zones.filter { _ in Bool.random(using: &random) }
      guard let pending = record?.pending, let due = pending.dueTimes.randomElement(using: &random),
        Int.random(in: 0..<12, using: &random) > 0
      else {
        // A request of the identifier: one that is scheduled, a cancel, or one that is shown at once.
        let text = Self.triggers.randomElement(using: &random) ?? ""
        let trigger = try #require(try? Array(text.utf8).withUnsafeBytes { try Trigger($0) })
        guard case .timed(let timed) = trigger else { continue }
        let content = ScheduleRecord.Pending(
          requested: now, lifetime: 3600, dueTimes: [], trigger: Array(text.utf8), headers: [], payload: [])
        let kind: ScheduleRules.Request.Kind =
          [.timed(content: content, zones: present), .timed(content: content, zones: present), .cancel, .now].randomElement(using: &random)
          ?? .now
        let decision = rules.decide(.init(reference, kind), record)
        record = decision.record ?? record
        let former = decision.superseded.map { Int($0.id.low) }
        switch (kind, decision.verdict) {
        case (.timed, .scheduled):
          let fact = ScheduleFact.Trigger(timed, requested: now)
          history.schedule(
            id, at: clock, interval: fact.interval, repeats: fact.repeats, notBefore: fact.notBefore.map { $0 - AuditHistory.beginning },
            superseding: former)
          if let former { history.tell(.collapsed, former, at: clock + 10) }
        case (.cancel, .canceled): history.cancel(id, of: former ?? 0, at: clock)
        case (.cancel, _):
          history.publish(id, at: clock, end: clock, .isRemoval)
          history.tell(.expired, id, at: clock + 10, .isSkipped)
        case (.now, _):
          history.publish(id, at: clock, end: clock + 86_400_000)
          history.tell(.delivered, id, at: clock + 10)
          if let former { history.tell(.collapsed, former, at: clock + 10) }
        default: Issue.record("seed \(seed): \(decision.verdict)")
        }
        decided = []
        continue
      }
      // Mostly what is due; sometimes what is not, or what is over.
      clock = max(clock, due.due - AuditHistory.beginning + ([0, 1, -1, 1_000, 2_000_000].randomElement(using: &random) ?? 0))
      var firing = ScheduleRules.Firing(
        revision: revision, at: AuditHistory.beginning + clock, schedule: record?.newest.revision ?? revision, due)
      if Int.random(in: 0..<5, using: &random) == 0, let old = decided.randomElement(using: &random) { firing.dueTime = old.1.dueTime }
      let schedule = Int(record?.newest.id.low ?? 0)
      func judged(_ firing: ScheduleRules.Firing) -> ScheduleRules.Verdict {
        let decision = rules.decide(firing, record, zones: firing.dueTime.zone == "" ? nil : present)
        record = decision.record ?? record
        return decision.verdict
      }
      let verdict: Outcome
      var isSkipped = false
      switch judged(firing) {
      case .firing(.fired): verdict = .queued
      case .firing(.skipped): (verdict, isSkipped) = (.expired, true)
      case .firing(.expired): verdict = .expired
      default: verdict = .replayed
      }
      let time = firing.dueTime
      history.fire(
        id, of: schedule, time.name, after: time.previous, due: time.due - AuditHistory.beginning, at: clock,
        zone: time.zone == "" ? 0 : StableHash.hash(time.zone), verdict, isSkipped: isSkipped)
      decided.append((id, firing))
      if verdict == .replayed { ignored.insert(id) }
      if Int.random(in: 0..<6, using: &random) == 0 {
        for (id, firing) in decided.suffix(3) {
          // One that took no effect may take it now, if the zone of its due time has come again. This history has one end for each.
          guard case .ignored = rules.decide(firing, record, zones: firing.dueTime.zone == "" ? nil : present).verdict else {
            if !ignored.contains(id) { _ = judged(firing) }
            continue
          }
          history.judge(id, .replayed, at: clock + 50)
        }
      }
    }
    (history.rules.now, history.rules.written) = (AuditHistory.beginning + clock + Self.hour, AuditHistory.beginning + clock + Self.hour)
    let findings = history.findings()
    #expect(findings.violations == [], "seed \(seed)")
    #expect(findings.lost == 0)
  }
}
