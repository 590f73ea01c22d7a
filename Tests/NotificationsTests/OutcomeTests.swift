import Notifications
import Testing

@Suite struct OutcomeTests {
  @Test func `the bytes of the journal and the words of the metrics never change`() {
    let verdicts: [Outcome] = [
      .queued, .expired, .collapsed, .duplicate, .unregistered, .wrongUser, .wrongApplication, .filtered, .rejected, .deadLettered,
      .scheduled, .unreadable, .replayed, .canceled, .carriedOut,
    ]
    #expect(verdicts.map(\.journalByte) == (0...14).map { $0 })
    #expect((0...14).map { Outcome(journalByte: $0) } == verdicts)
    #expect((15...255).allSatisfy { Outcome(journalByte: $0) == nil })
    #expect(Outcome.allCases.count { $0.journalByte != nil } == verdicts.count)
    #expect(
      Set(Outcome.allCases.compactMap(\.requestLabel)) == [
        "queued", "expired", "collapsed", "duplicate", "addressed", "unregistered", "rejected", "filtered", "replayed", "poison",
        "scheduled", "carried_out", "canceled",
      ])
    #expect(
      Set(Outcome.allCases.compactMap(\.deviceLabel)) == [
        "queued", "expired", "collapsed", "duplicate", "unregistered", "other_user", "wrong_application",
        "canceled",
      ])
  }

  @Test func `what an event or the journal tells has one final outcome, and the highest counts`() {
    for outcome in Outcome.allCases {
      #expect(outcome.finalOutcome?.finalOutcome == outcome.finalOutcome, "a final outcome is its own")
      if outcome.finalOutcome != nil { #expect(outcome.weight != nil) }
      #expect(Outcome.weightiest(of: [outcome]) == (outcome.weight == nil ? nil : outcome))
      // Only what the device says, and what says that it was not shown, takes an entry out of the mailbox.
      if outcome.endsMailboxEntry { #expect(outcome.finalOutcome == outcome) }
    }
    let notShown: [Outcome] = [.expired, .evicted, .collapsed, .filtered, .unregistered, .canceled, .rejected]
    let seen: [Outcome] = [.updated, .delivered, .removed, .response, .dismissed]
    for lower in notShown {
      for higher in seen {
        #expect(Outcome.weightiest(of: [lower, higher]) == higher && Outcome.weightiest(of: [higher, lower]) == higher)
      }
      #expect(Outcome.weightiest(of: [.queued, lower, .duplicate]) == lower)
    }
    #expect(Outcome.weightiest(of: [.removed, .delivered, .response, .updated]) == .updated)
    #expect(Outcome.weightiest(of: [.duplicate, .queued])?.finalOutcome == nil, "another record's duplicate ends nothing that waits")
  }

  @Test func `every outcome has what there is to know of it, but for these`() {
    func without(_ isMissing: (Outcome) -> Bool) -> Set<Outcome> { Set(Outcome.allCases.filter(isMissing)) }
    let ofDevices: Set<Outcome> = [.registered, .settingsChanged, .unregisteredDevice]
    let ofPeople: Set<Outcome> = [.response, .dismissed]
    #expect(without { !$0.isAboutDevice } == Set(Outcome.allCases).subtracting(ofDevices))
    #expect(
      without { $0.weight == nil } == ofDevices.union([.replayed, .unreadable, .carriedOut, .addressed]))
    #expect(
      without { $0.finalOutcome == nil }
        == ofDevices.union([.replayed, .unreadable, .carriedOut, .addressed, .queued, .scheduled]))
    #expect(
      without { $0.requestLabel == nil }
        == ofDevices.union(ofPeople).union([.delivered, .updated, .removed, .evicted, .wrongUser, .unreadable]))
    #expect(
      without { $0.finalOutcome == $0 && !$0.endsMailboxEntry } == [.duplicate, .wrongUser], "these have no entry in the mailbox")
  }

  @Test func `each event type has one name, and what no event tells has none`() {
    for outcome in Outcome.allCases {
      #expect(Outcome(name: outcome.name) == (outcome.cloudEventsType == nil ? nil : outcome))
      #expect(outcome.cloudEventsType == nil || outcome.event == outcome)
      #expect(outcome.event.map { $0.cloudEventsType != nil } ?? true, "what tells it is an event")
    }
  }
}
