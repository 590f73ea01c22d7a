import EventLoop
import Notifications
import Store
import Worker

/// Has requests judged for devices, several in a call, and emits the outcomes of the verdicts.
final class JudgeStage: JudgeHandler {
  private let inFlight: InFlight
  private let errors: StoreErrors
  private let judge: Judge
  private let outcomes: Outcomes
  private let rejections: Rejections
  private let metrics: TransformMetrics
  /// The former verdicts, during a rebuild.
  private let journaled: JournaledVerdicts?
  weak var owner: Pipeline?

  init(
    _ judge: Judge, _ inFlight: InFlight, _ errors: StoreErrors, _ outcomes: Outcomes, _ rejections: Rejections,
    _ metrics: TransformMetrics, _ journaled: JournaledVerdicts?
  ) {
    (self.judge, self.inFlight, self.errors, self.journaled) = (judge, inFlight, errors, journaled)
    (self.outcomes, self.rejections, self.metrics) = (outcomes, rejections, metrics)
    judge.handler = self
  }

  /// Has a request judged for a device: with others, or alone if it has failed with others.
  func take(_ slot: Slot, _ arena: Arena, _ token: ArenaSpan, _ entry: RequestEntry) {
    inFlight.expect(1, of: slot)
    var entry = entry
    if let journaled {
      let verdict = arena.bytes.withUnsafeBytes { journaled.verdict(on: inFlight[slot].ticket, at: $0[token]) }
      if case .keptAt(let revision) = verdict { entry.revision = revision }
      entry.wasKept = verdict.map { $0 != .notKept } ?? false
    }
    judge.add(JudgeRequest(tag: slot.number, in: arena, token: token, entry), alone: inFlight[slot].isSuspect)
  }

  /// Whether Redis has enough to do.
  ///
  /// More than so many calls, of up to 64 requests, cost more than they gain: what the lane keeps of them has left the processor's caches
  /// when Redis answers. They are twenty milliseconds of its work.
  var isBusy: Bool { judge.callsInFlight >= Self.callsMaximum }

  /// Whether Redis has caught up so far that more requests are worth a turn.
  var hasCaughtUp: Bool { judge.callsInFlight <= Self.callsMaximum / 2 }

  private static let callsMaximum = 64

  /// Sends the requests that were taken.
  func send() { judge.send(now: WallClock.seconds()) }

  // MARK: Verdicts

  func notJudged(_ requests: [JudgeRequest], _ error: StoreError) {
    errors.tell(error)
    for request in requests {
      let slot = Slot(number: request.tag)
      let answer = inFlight.answer(slot)
      if error.code == .faulty || error.code == .unexplained { inFlight[slot].isSuspect = true }
      if requests.count == 1 { errors.conclude(answer, error) } else { inFlight.failed(answer) }
    }
  }

  func judged(_ requests: [JudgeRequest], _ answer: JudgeAnswer) {
    guard let owner else { return }
    var verdicts = answer.verdicts
    Self.withhold(&verdicts, requests.span)
    let span = requests.span
    for index in span.indices {
      inFlight.conclude(inFlight.answer(Slot(number: span[index].tag)), judged(span[index], verdicts[index], owner))
    }
    answer.forEachFinding { index, found in
      let request = requests[index]
      request.arena.bytes.withUnsafeBytes { arena in
        switch found {
        case .overflow: owner.foundEndings(arena[request.token], .evicted)
        case .removalOfAll:
          guard let removal = DeliveryEntryView(arena[request.entry.span])?.id else { return }
          owner.foundEndings(arena[request.token], .canceled(by: removal))
        }
      }
    }
    owner.judged()
  }

  /// Withholds from the devices what a later request of the same call has superseded.
  private static func withhold(_ verdicts: inout [Verdict?], _ requests: Span<JudgeRequest>) {
    var first = UInt64.max
    for index in requests.indices { first = min(first, requests[index].entry.revision.offset) }
    for later in verdicts.indices {
      guard let superseded = verdicts[later]?.new?.other else { continue }
      // Mostly it was judged in an earlier call. Then its offset alone shows that.
      guard superseded.revision.offset >= first else { continue }
      for earlier in (0..<later).reversed() where requests[earlier].entry.revision.offset == superseded.revision.offset {
        guard let replaced = verdicts[earlier]?.new, replaced.revision == superseded.revision,
          requests[earlier].entry.id == superseded.id.hash64, sameDevice(requests[earlier], requests[later])
        else { continue }
        verdicts[earlier] = .judged(replaced)
        break
      }
    }
  }

  private static func sameDevice(_ one: JudgeRequest, _ other: JudgeRequest) -> Bool {
    one.arena.bytes.withUnsafeBytes { a in other.arena.bytes.withUnsafeBytes { b in a[one.token].elementsEqual(b[other.token]) } }
  }

  private func judged(_ request: JudgeRequest, _ verdict: Verdict?, _ owner: Pipeline) -> Conclusion {
    let slot = Slot(number: request.tag)
    if case .schedules = verdict { return owner.askSchedules(slot) }
    guard case .judged(var judgement, let effect) = verdict else {
      metrics.redisFailures.increment()
      if case .unreadable(let reason) = verdict { return .poisoned(reason) }
      // Another request of the call may be to blame.
      inFlight[slot].isSuspect = true
      return .poisoned("the judge's answer cannot be read")
    }
    metrics.count(judgement.verdict)
    // An occurrence of a device's schedule ends where the device has another person. A person's request still has the other devices.
    if judgement.verdict == .wrongUser, inFlight[slot].recipients == nil { judgement.verdict = .filtered }
    if let journaled, judgement.verdict == .duplicate {
      request.arena.bytes.withUnsafeBytes { journaled.foundRepeat(of: request.entry.id, at: $0[request.token]) }
    }
    if judgement.verdict == .queued, let presence = effect.presence { deliver(request, judgement.revision, to: presence) }
    let emitted = emit(judgement, of: request)
    guard case .done = emitted else { return emitted }
    if inFlight[slot].recipients != nil { return owner.judged(slot, request.token, judgement) }
    inFlight[slot].end(judgement)
    return .done
  }

  // MARK: Emissions

  /// Emits what became of a request, and of the request that it has superseded. Most have nothing to emit, and their entries are not read.
  private func emit(_ judgement: JournalJudgement, of request: JudgeRequest) -> Conclusion {
    let event = judgement.verdict.event
    let isStale = event == .collapsed || event == .canceled
    let superseded = isStale ? nil : judgement.other
    if event == nil, superseded == nil { return .done }
    let slot = Slot(number: request.tag)
    return request.arena.bytes.withUnsafeBytes { arena in
      guard let entry = DeliveryEntryView(arena[request.entry.span]) else { return .poisoned("its delivery entry cannot be read") }
      let subject = Outcomes.Subject(token: arena[request.token], entry: entry, purpose: OutcomePurpose(.record, slot))
      let collapsed = inFlight.emitted(slot, superseded.map { outcomes.collapsed($0, by: subject) } ?? Outcomes.Produced())
      guard case .done = collapsed, let event else { return collapsed }
      // With a dead letter.
      if judgement.verdict == .wrongApplication { return rejections.wrongApplication(slot) }
      var details = EventDetails.none
      if isStale, let newer = judgement.other { details = .by(newer.id) }
      if judgement.verdict == .filtered { details = .reason(Owner.otherPerson) }
      return inFlight.emitted(slot, outcomes.emit(event, subject, revision: judgement.revision, details))
    }
  }

  private func deliver(_ request: JudgeRequest, _ revision: Revision, to presence: Presence) {
    let isTaken = request.arena.bytes.withUnsafeBytes { arena in
      outcomes.deliver(arena[request.entry.span], request.entry.kind, revision, to: presence, arena[request.token])
    }
    if !isTaken { metrics.deliveriesLost.increment() }
  }
}

extension Verdict {
  /// The judgement on a request that was put into the mailbox now, or would have been in time.
  fileprivate var new: JournalJudgement? {
    guard case .judged(let judgement, let effect) = self, judgement.verdict.wasKept, !effect.isRepeat else { return nil }
    return judgement
  }
}
