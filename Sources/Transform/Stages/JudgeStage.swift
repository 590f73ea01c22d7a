import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Whom the judge tells.
protocol JudgeStageOwner: AnyObject {
  /// A request was judged at one of its person's devices.
  func judged(_ slot: Flow.Slot, _ token: ArenaSpan, _ judgement: JournalJudgement)
  /// A device's mailbox has too much.
  func overflowed(_ token: UnsafeRawBufferPointer, _ overflow: MailboxEntries)
  /// The verdicts of a call are applied.
  func judged()
}

/// Has requests judged for devices, several at a time, and emits what the verdicts come to. Loop-confined.
final class JudgeStage: JudgeHandler {
  private let inFlight: InFlight
  private let judge: Judge
  private let outcomes: Outcomes
  private let rejections: Rejections
  private let metrics: TransformMetrics
  /// Where a Redis is rebuilt: how requests were judged.
  private let journaled: JournaledVerdicts?
  weak var owner: (any JudgeStageOwner)?

  init(
    _ judge: Judge, _ inFlight: InFlight, _ outcomes: Outcomes, _ rejections: Rejections, _ metrics: TransformMetrics,
    _ journaled: JournaledVerdicts?
  ) {
    self.journaled = journaled
    self.judge = judge
    self.inFlight = inFlight
    self.outcomes = outcomes
    self.rejections = rejections
    self.metrics = metrics
    judge.handler = self
  }

  /// Has a request for a device judged: with others, or alone where it has failed with others.
  func take(_ slot: Flow.Slot, _ arena: Arena, _ token: ArenaSpan, _ entry: RequestEntry) {
    inFlight.expect(slot)
    var entry = entry
    if let journaled,
      case .keptAt(let revision) = arena.bytes.withUnsafeBytes({ journaled.verdict(on: inFlight[slot].ticket, at: $0[token]) })
    {
      entry.revision = revision
    }
    judge.add(JudgeRequest(tag: slot, in: arena, token: token, entry), alone: inFlight[slot].isSuspect)
  }

  /// Whether Redis has enough to do. What waits there is written out for it, and gone from the processor's caches when it answers: more
  /// than so many calls, of up to 64 requests, cost more than they gain. They are twenty milliseconds of its work.
  var isBusy: Bool { judge.callsInFlight >= Self.callsMaximum }

  /// Whether that has come down, so that what goes on is worth its turn.
  var hasCaughtUp: Bool { judge.callsInFlight <= Self.callsMaximum / 2 }

  private static let callsMaximum = 64

  /// Sends what was taken.
  func send() { judge.send(now: WallClock.seconds()) }

  // MARK: Verdicts

  func notJudged(_ requests: [JudgeRequest], _ error: StoreError) {
    inFlight.failed(error)
    for request in requests {
      if error.code == .faulty || error.code == .unexplained { inFlight[request.tag].isSuspect = true }
      if requests.count == 1 {
        if error.code == .faulty { inFlight.fault(request.tag, error.message) }
        if error.code == .unexplained { inFlight.note(request.tag, error) }
      }
      inFlight.fail(request.tag)
    }
  }

  func judged(_ requests: [JudgeRequest], _ answer: JudgeAnswer) {
    guard let owner else { return }
    var verdicts = answer.verdicts
    Self.withhold(&verdicts, requests)
    for index in requests.indices { judged(requests[index], verdicts[index], owner) }
    answer.forEachOverflow { index, entries in
      requests[index].arena.bytes.withUnsafeBytes { owner.overflowed($0[requests[index].token], entries) }
    }
    owner.judged()
  }

  /// What a later request of the same call has superseded need not go to the device any more.
  private static func withhold(_ verdicts: inout [Verdict?], _ requests: [JudgeRequest]) {
    let first = requests.indices.reduce(UInt64.max) { min($0, requests[$1].entry.revision.offset) }
    for later in verdicts.indices {
      guard case .new(let application) = verdicts[later], let superseded = application.superseded else { continue }
      // Mostly it was judged in an earlier call: then its offset alone says that it is none of these.
      guard superseded.revision.offset >= first else { continue }
      for earlier in (0..<later).reversed() where requests[earlier].entry.revision.offset == superseded.revision.offset {
        guard case .new(var replaced) = verdicts[earlier], replaced.revision == superseded.revision,
          requests[earlier].entry.id == superseded.id.hash64, sameDevice(requests[earlier], requests[later])
        else { continue }
        replaced.presence = nil
        verdicts[earlier] = .new(replaced)
        break
      }
    }
  }

  private static func sameDevice(_ one: JudgeRequest, _ other: JudgeRequest) -> Bool {
    one.arena.bytes.withUnsafeBytes { a in other.arena.bytes.withUnsafeBytes { b in a[one.token].elementsEqual(b[other.token]) } }
  }

  private func judged(_ request: JudgeRequest, _ verdict: Verdict?, _ owner: any JudgeStageOwner) {
    let slot = request.tag
    guard let verdict, let judgement = JournalJudgement(verdict, own: request.entry.revision, isExpired: request.isExpired),
      let row = DeviceVerdict(judgement.verdict)
    else {
      metrics.redisFailures.increment()
      if case .unreadable(let reason) = verdict {
        inFlight.fault(slot, reason)
      } else {
        inFlight.fault(slot, "the judge's answer cannot be read")
        // Another request of the call may be to blame.
        inFlight[slot].isSuspect = true
      }
      return inFlight.fail(slot)
    }
    metrics.count(judgement.verdict)
    if let journaled, judgement.verdict == .duplicate {
      request.arena.bytes.withUnsafeBytes { journaled.foundRepeat(of: request.entry.id, at: $0[request.token]) }
    }
    emit(row.emission, judgement, of: request)
    if judgement.verdict == .kept, let presence = verdict.presence { deliver(request, judgement.revision, to: presence) }
    if !inFlight.judged(slot, row.record, judgement) { owner.judged(slot, request.token, judgement) }
    inFlight.answered(slot)
  }

  // MARK: What is emitted

  /// Emits what became of a request, and of the one that it has superseded. Of most there is nothing to emit, and their entries are not
  /// read.
  private func emit(_ emission: DeviceVerdict.Emission, _ judgement: JournalJudgement, of request: JudgeRequest) {
    let isStale = judgement.verdict == .stale
    let superseded = isStale ? nil : judgement.other
    if case .nothing = emission, superseded == nil { return }
    let slot = request.tag
    request.arena.bytes.withUnsafeBytes { arena in
      guard let entry = DeliveryEntryView(arena[request.entry.span]) else {
        inFlight.fault(slot, "its delivery entry cannot be read")
        return inFlight.flow.fail(slot)
      }
      let subject = Outcomes.Subject(token: arena[request.token], entry: entry, record: slot)
      if let superseded { inFlight.settle(slot, outcomes.collapsed(superseded, by: subject)) }
      switch emission {
      case .nothing: break
      case .event(let type):
        inFlight.settle(slot, outcomes.emit(type, subject, revision: judgement.revision, by: isStale ? judgement.other?.id : nil))
      case .rejection: rejections.wrongApplication(slot)
      }
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
  /// Where the device is connected that has the request in its mailbox.
  fileprivate var presence: Presence? {
    switch self {
    case .new(let application), .again(let application): application.presence
    default: nil
    }
  }
}
