import Notifications
import Testing

@testable import Operations

/// What must not happen, planted: an audit finds each of it, and nothing else.
@Suite struct ViolationTests {
  private var history = AuditHistory()

  @Test mutating func aReplayIsNoOutcomeOfARequestThatHasNone() {
    history.publish(1)
    history.judge(1, .replayed, at: 10)
    history.publish(1, offset: 50, source: 1, at: 1_000)
    history.judge(1, .replayed, offset: 50, at: 1_010)
    #expect(history.violations == [.lost])
  }

  @Test mutating func aRequestWithoutAnyEventIsLost() {
    history.publish(1)
    history.publish(2)
    history.tell(.delivered, 2, at: 10)
    let findings = history.findings()
    #expect(findings.violations.map(\.kind) == [.lost])
    #expect(findings.violations.first?.id == AuditHistory.id(1))
    #expect(findings.violations.first?.places.first == .init(topic: .requests, partition: 0, offset: 1))
    #expect(findings.violations.first?.places.dropFirst().map(\.topic) == [.journal])
    #expect(findings.outcomes == [.delivered: 1] && findings.lost == 1)
  }

  /// The workers keep it from happening; the topics show where it has happened all the same.
  @Test(arguments: [nil, 7] as [UInt64?])
  mutating func `a request whose place in the mailbox another one took is lost`(collapse: UInt64?) {
    history.publish(1)
    history.keep(1, at: 10)
    history.publish(2, collapse: collapse, offset: 50, source: 1, at: 1_000, .isRedrive)
    history.keep(2, offset: 50, at: 1_010)
    var findings = history.findings()
    #expect(findings.violations.map(\.kind) == [.overwritten] && findings.violations.first?.id == AuditHistory.id(1))
    #expect(findings.outcomes == [.queued: 1] && findings.lost == 1)
    // The other one was delivered, and its acknowledgement has deleted the entry.
    history.tell(.delivered, 2, collapse: collapse, source: 1, at: 2_000)
    findings = history.findings()
    #expect(findings.violations.map(\.kind) == [.overwritten] && findings.outcomes == [.delivered: 1] && findings.lost == 1)
  }

  @Test mutating func `a person's device loses a request whose place another one took`() {
    history.publish(1, for: nil)
    for device in [1, 2] as [UInt64] { history.keep(1, on: device, at: 10) }
    history.tell(.addressed, 1, on: 0, at: 11, number: 2)
    history.publish(2, for: 2, offset: 50, source: 1, at: 1_000, .isRedrive)
    history.keep(2, on: 2, offset: 50, at: 1_010)
    history.tell(.delivered, 1, on: 1, at: 2_000)
    #expect(history.violations == [.overwritten])
    #expect(history.outcomes == [.delivered: 1, .queued: 1] && history.findings().lost == 1)
  }

  @Test mutating func oneOfAPersonsDevicesIsLost() {
    history.publish(1, for: nil)
    history.tell(.delivered, 1, on: 1, at: 10)
    history.keep(1, on: 2, at: 10)
    history.tell(.addressed, 1, on: 0, at: 11, number: 4)
    #expect(history.violations == [.lost])
    #expect(history.outcomes == [.delivered: 1, .queued: 1] && history.findings().lost == 2)
  }

  @Test mutating func aPersonsRequestWithoutItsSumIsLost() {
    history.publish(1, for: nil)
    history.tell(.delivered, 1, at: 10)
    #expect(history.violations == [.lost])
  }

  @Test mutating func aPersonWithoutDevicesHasAnEnding() {
    history.publish(1, for: nil)
    history.tell(.addressed, 1, on: 0, at: 11, number: 0)
    #expect(history.violations == [.lost])
  }

  @Test mutating func aRequestOfWhichTheJournalSaysNothing() {
    for id in 1...4 { history.publish(id, at: id == 4 ? AuditHistory.hour - 10_000 : 0) }
    history.unjournaled = [1, 2, 4]
    // Its offset was committed too early: a crash would have lost it.
    history.tell(.delivered, 1, at: 10)
    for id in 3...4 { history.tell(.delivered, id, at: AuditHistory.hour - 1_000) }
    let findings = history.findings()
    #expect(findings.counts == [.unjournaled: 1, .lost: 1])
    #expect(findings.violations.first { $0.kind == .unjournaled }?.id == AuditHistory.id(1))
    #expect(findings.violations.first { $0.kind == .lost }?.id == AuditHistory.id(2))
  }

  @Test mutating func whatTheJournalSaysOfAnotherRecordCountsForNothing() {
    history.publish(1)
    history.tell(.delivered, 1, at: 10)
    history.keep(1, at: 5, record: 1)
    #expect(history.violations == [.unjournaled])
    history.publish(2)
    history.keep(2, at: 5)
    history.keep(2, at: 10, incarnation: 1, record: 7)
    #expect(Set(history.violations) == [.unjournaled, .lost])
  }

  @Test mutating func aCrashBetweenTwoPagesThatNobodyMends() {
    history.publish(1, for: nil)
    history.page(1, [(1, .queued), (2, .queued)], at: 10)
    history.tell(.delivered, 1, on: 1, at: 20)
    #expect(history.violations == [.lost])
    // Said by the events alone, the journal is missing.
    history.tell(.addressed, 1, on: 0, at: 30, number: 2)
    #expect(history.violations == [.unjournaled])
    // A sum that the pages do not give is none.
    history.page(1, [(3, .queued)], of: [1, 2, 4], at: 40)
    #expect(history.violations == [.unjournaled])
    history.page(1, [(3, .queued)], of: [1, 2, 3], at: 40)
    #expect(history.violations == [.unjournaled], "the third device stands on two pages of one sum")
  }

  @Test mutating func rejectedAndDelivered() {
    history.publish(1)
    history.tell(.rejected, 1, on: 0, at: 10)
    history.tell(.delivered, 1, at: 20)
    #expect(history.violations == [.contradiction])
  }

  @Test mutating func deliveredToADeviceThatTheRequestDoesNotName() {
    history.publish(1, for: 1)
    history.tell(.delivered, 1, on: 1, at: 20)
    history.tell(.delivered, 1, on: 2, at: 20)
    #expect(history.violations == [.wrongDevice])
    history.publish(1, for: 2, offset: 9, source: 1, at: 5)
    history.judge(1, .queued, offset: 9, at: 6)
    #expect(!history.violations.contains(.wrongDevice), "a forged origin gave a request for the second device the source of the first")
    history.tell(.delivered, 1, on: 3, at: 20)
    #expect(history.violations.contains(.wrongDevice))
  }

  @Test mutating func anEventOfARequestThatIsNotThere() {
    history.tell(.delivered, 1, at: 20)
    #expect(history.violations == [.unknownRequest])
  }

  @Test mutating func anEventThatNamesAnotherRecordThanTheRequestsOwn() {
    history.publish(1)
    history.tell(.delivered, 1, at: 20)
    history.tell(.evicted, 1, source: 2, at: 10)
    #expect(history.violations == [.unknownRequest])
  }

  @Test mutating func shownTwiceAsTwoEvents() {
    history.publish(1)
    history.tell(.delivered, 1, at: 20)
    history.tell(.updated, 1, at: 30)
    #expect(history.violations == [.shownTwice])
  }

  @Test mutating func shownTwiceByTwoWorkers() {
    history.publish(1)
    history.tell(.delivered, 1, at: 20, worker: 1)
    history.tell(.delivered, 1, at: 30, worker: 2)
    #expect(history.violations == [.shownTwice])
  }

  @Test mutating func aDuplicateIsShownAsWell() {
    history.publish(1)
    history.publish(1, offset: 2)
    history.tell(.delivered, 1, at: 20)
    history.tell(.delivered, 1, source: 2, at: 90_000)
    let findings = history.findings()
    #expect(findings.violations.map(\.kind) == [.shownTwice])
    #expect(findings.violations.first?.places.count == 2)
  }

  @Test mutating func shownLongAfterItsEnd() {
    history.publish(1, end: 1_000)
    history.keep(1, at: 10)
    history.tell(.delivered, 1, at: 66_001)
    #expect(history.violations == [.shownLate])
  }

  @Test mutating func expiredBeforeItsEnd() {
    history.publish(1, end: 100_000)
    history.keep(1, at: 10)
    history.tell(.expired, 1, at: 90_000)
    #expect(history.violations == [.expiredEarly])
  }

  /// A producer may give its record another request's id, and that one's place as its origin.
  @Test mutating func `a record with a forged origin makes no violation of the request whose place it names`() {
    history.publish(1, for: nil)
    history.page(1, [(1, .queued)], of: [1], at: 5)
    history.tell(.addressed, 1, on: 0, at: 6, number: 1)
    history.tell(.delivered, 1, at: 10)
    history.publish(1, for: 2, offset: 5, source: 1, at: 20)
    history.keep(1, on: 2, offset: 5, at: 25)
    history.tell(.delivered, 1, on: 2, at: 30)
    history.publish(1, for: 3, offset: 6, source: 1, at: 40, end: 1)
    history.judge(1, .expired, offset: 6, at: 45)
    history.tell(.expired, 1, on: 3, at: 50)
    #expect(history.violations.isEmpty)
  }

  @Test mutating func `an expiration that only a worker's fast clock allows is a violation by the broker's clock`() {
    history.publish(1, end: 100_000)
    history.keep(1, at: 10)
    history.tell(.expired, 1, at: 3_000_000, number: AuditHistory.beginning + 12)
    #expect(history.findings().violations.map(\.detail) == ["1 min 39 s before its end by the broker's clock"])
    #expect(history.violations == [.expiredEarly])
  }

  @Test mutating func `an expiration that is read before the request's end is a violation`() {
    history.publish(1, end: 2 * AuditHistory.hour)
    history.keep(1, at: 10)
    history.tell(.expired, 1, at: 2 * AuditHistory.hour + 1)
    #expect(history.findings().violations.map(\.detail) == ["1 h before its end by the clock of this machine"])
  }

  @Test mutating func `an expiration at its end is no violation, by whichever clock`() {
    history.publish(1, end: 100_000)
    history.keep(1, at: 10)
    history.tell(.expired, 1, at: 100_000, number: AuditHistory.beginning + 95_001)
    #expect(history.violations.isEmpty)
  }

  @Test mutating func anOlderOneIsShownLongAfterANewerOne() {
    history.publish(1, collapse: 7)
    history.publish(2, collapse: 7)
    history.keep(1, at: 10)
    history.keep(2, at: 20)
    history.tell(.delivered, 2, collapse: 7, at: 30)
    history.tell(.updated, 1, collapse: 7, at: 65_031)
    let findings = history.findings()
    #expect(findings.violations.map(\.kind) == [.stale])
    #expect(findings.violations.first?.id == AuditHistory.id(1))
    #expect(findings.violations.first?.detail.contains(AuditHistory.id(2).description) == true)
  }

  @Test mutating func theNewestIsDeclaredCollapsed() {
    history.publish(1, collapse: 7)
    history.publish(2, collapse: 7)
    history.keep(1, at: 10)
    history.tell(.delivered, 1, collapse: 7, at: 15)
    history.keep(2, at: 20)
    history.tell(.collapsed, 2, collapse: 7, at: 30, .namesSuccessor)
    #expect(history.violations == [.collapsedByNothing])
  }

  @Test mutating func collapsedByOneOfAnotherDevice() {
    history.publish(1, collapse: 7)
    history.publish(2, for: 2, collapse: 7)
    history.tell(.collapsed, 1, collapse: 7, at: 10, .namesSuccessor)
    history.tell(.delivered, 2, on: 2, collapse: 7, at: 20)
    #expect(history.violations == [.collapsedByNothing])
  }

  /// The removal was older, was for another device, leaves what waits for a place, or came later.
  @Test(arguments: [(Outcome.collapsed, Violation.Kind.collapsedByNothing), (.canceled, .canceledByNothing)])
  func `a device dropped what no removal of all had ended`(outcome: Outcome, kind: Violation.Kind) {
    func found(_ flags: AuditFact.Flags = [], by removal: Int = 2, for device: UInt64 = 1, at time: Int64 = 40) -> [Violation.Kind] {
      var history = history
      history.rules.clockSlack = 0
      history.publish(1, flags)
      history.publish(removal, for: device, [.removesAll, .isRemoval])
      history.tell(outcome, 1, at: time)
      history.keep(removal, on: device, at: 50)
      history.tell(.removed, removal, on: device, at: 60)
      return history.violations
    }
    #expect(found().isEmpty)
    #expect(found(by: 0) == [kind])
    #expect(found(for: 2) == [kind])
    #expect(found(.isOfPending) == [kind])
    #expect(found(at: 1) == [kind], "the removal has the time 2")
  }

  /// Otherwise the event says which removal it was.
  @Test mutating func `a removal of all that is named need not be found`() {
    history.publish(1)
    history.tell(.canceled, 1, at: 40, .namesSuccessor)
    #expect(history.violations.isEmpty)
  }

  @Test mutating func aDuplicateOfNothing() {
    history.publish(1)
    history.tell(.duplicate, 1, at: 10)
    #expect(history.violations == [.duplicateOfNothing])
  }

  @Test mutating func duplicatesOfEachOther() {
    history.publish(1)
    history.publish(1, offset: 2)
    history.tell(.duplicate, 1, at: 10)
    history.tell(.duplicate, 1, source: 2, at: 10)
    #expect(history.violations == [.duplicateOfNothing, .duplicateOfNothing])
  }

  @Test mutating func twoOfOneIdOfWhichNoneCame() {
    history.publish(1)
    history.publish(1, offset: 2)
    history.keep(1, at: 10)
    history.keep(1, offset: 2, at: 10)
    history.deliverLaterOnes()
    #expect(history.violations == [.overlooked])
  }

  @Test mutating func overlookedAfterThePersonHadADeviceAgain() {
    history.publish(1, for: nil)
    history.tell(.addressed, 1, on: 0, at: 10, number: 0)
    history.tell(.unregistered, 1, on: 0, at: 10)
    history.page(1, [], of: [], at: 10)
    history.tell(.addressed, 1, on: 0, at: 5_000, number: 1)
    history.keep(1, at: 5_000)
    history.deliverLaterOnes()
    #expect(history.violations == [.overlooked])
  }

  @Test mutating func overlookedWhileTheDeviceWasServed() {
    history.publish(1)
    history.publish(2)
    history.publish(3)
    for id in 1...3 { history.keep(id, at: 10) }
    history.tell(.delivered, 2, at: 20)
    history.tell(.delivered, 3, at: 70_000)
    #expect(history.violations == [.overlooked])
    #expect(history.outcomes == [.delivered: 2] && history.findings().lost == 1)
  }

  @Test mutating func overlookedBeforeItExpired() {
    history.publish(1, end: 80_000)
    history.publish(2)
    history.publish(3)
    for id in 1...3 { history.keep(id, at: 10) }
    history.tell(.delivered, 2, at: 20)
    history.tell(.delivered, 3, at: 70_000)
    #expect(history.violations == [.overlooked])
    // What was acknowledged after its end says nothing.
    history.facts[0].number = AuditHistory.beginning + 60_000
    #expect(history.violations == [])
    #expect(history.outcomes == [.delivered: 2, .expired: 1])
  }

  @Test mutating func pendingWhereNothingMayBe() {
    history.publish(1)
    history.keep(1, at: 10)
    #expect(history.violations == [])
    history.rules.settings.forbidsPending = true
    #expect(history.violations == [.pending])
  }

  @Test(arguments: [Outcome.unregistered, .rejected]) func aRegisteredDeviceIsDeclaredUnknown(kind: Outcome) {
    var history = history
    history.tell(.registered, 0, at: 0)
    for id in 1...3 { history.publish(id, at: Int64(id) * 100_000) }
    history.tell(.delivered, 1, at: 100_020)
    history.keep(1, at: 100_010)
    history.tell(kind, 2, on: kind == .rejected ? 0 : 1, at: 200_010, .isForOtherApplication)
    history.keep(3, at: 300_010)
    history.tell(.delivered, 3, at: 300_020)
    // A rejection is of the device only where the request came to it as well.
    if kind == .rejected { history.keep(2, at: 290_000) }
    #expect(history.violations == [.wronglyUnregistered])
    history.tell(.registered, 0, at: 250_000)
    #expect(history.violations == [])
  }

  @Test mutating func theSameResponseAsTwoEvents() {
    history.publish(1)
    history.publish(2)
    for id in 1...2 {
      history.tell(.delivered, id, at: 20)
      history.tell(.response, id, at: 30, number: 5)
    }
    #expect(history.violations == [.responseTwice])
  }

  @Test mutating func `a rejection for a rate limit and the counts of the audit agree`() {
    history.publish(1, .isBeyondLimit)
    history.judge(1, .rejected, at: 10)
    history.tell(.rejected, 1, on: 0, at: 10, .isBeyondLimit)
    history.publish(2)
    history.keep(2, at: 10)
    history.tell(.delivered, 2, at: 20)
    #expect(history.violations == [])
    history.publish(3)
    history.judge(3, .rejected, at: 10)
    history.tell(.rejected, 3, on: 0, at: 10, .isBeyondLimit)
    #expect(history.violations == [.rejectedWithinLimit])
    history.publish(4, .isBeyondLimit)
    history.keep(4, at: 10)
    history.tell(.delivered, 4, at: 20)
    // Its headers were read, and should not have been.
    history.publish(5, .isBeyondLimit)
    history.judge(5, .rejected, at: 10)
    history.tell(.rejected, 5, on: 0, at: 10)
    #expect(Set(history.violations) == [.rejectedWithinLimit, .passedBeyondLimit] && history.violations.count == 3)
  }

  @Test mutating func `what the audit cannot count, and what no worker could process, breaks no rate limit`() {
    // Its window began before the range.
    history.publish(1, .isLimitUnknown)
    history.judge(1, .rejected, at: 10)
    history.tell(.rejected, 1, on: 0, at: 10, .isBeyondLimit)
    history.publish(2, .isLimitUnknown)
    history.keep(2, at: 10)
    history.tell(.delivered, 2, at: 20)
    // It crashed workers.
    history.publish(3, .isBeyondLimit)
    history.judge(3, .deadLettered, at: 10)
    history.tell(.rejected, 3, on: 0, at: 10, .isOfPoison)
    history.tell(.deadLetter, 3, on: 0, at: 10)
    // It was accepted, and its replay does not count.
    history.publish(4)
    history.keep(4, at: 10)
    history.tell(.delivered, 4, at: 20)
    history.publish(4, offset: 50, source: 4, at: 1_000)
    history.judge(4, .replayed, offset: 50, at: 1_010)
    // It was rejected for a limit first, and accepted when it was redriven.
    history.publish(5, .isBeyondLimit)
    history.judge(5, .rejected, at: 10)
    history.tell(.rejected, 5, on: 0, at: 10, .isBeyondLimit)
    history.publish(5, offset: 51, source: 5, at: 1_000, .isRedrive)
    history.keep(5, offset: 51, at: 1_010)
    history.tell(.delivered, 5, at: 1_020)
    #expect(history.violations == [])
  }

  @Test mutating func onlyTheFirstViolationsAreToldAndAllAreCounted() {
    for id in 1...50 { history.publish(id) }
    let findings = history.findings(limit: 3)
    #expect(findings.violations.count == 3)
    #expect(findings.counts == [.lost: 50])
    #expect(findings.violationCount == 50)
  }
}
