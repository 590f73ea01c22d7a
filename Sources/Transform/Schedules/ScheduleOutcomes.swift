import Calendars
import Kafka
import Notifications
import Store

/// Emits the outcomes of requests at their schedules, writes the schedules to Kafka, and evicts those of targets that have too many.
final class ScheduleOutcomes {
  /// A state of a schedule that was given to Kafka.
  private struct Written {
    let key: ScheduleKey
    let record: ScheduleRecord
    /// The revision of the request; for a firing, of the request that scheduled it.
    let request: Revision

    /// Whether no newer request has changed the schedule. A newer request may still have to emit events.
    var isOwn: Bool { record.newest.revision == request }
  }

  private let inFlight: InFlight
  private let outcomes: Outcomes
  private let rejections: Rejections
  private let reader: RequestReader
  private let writer: ScheduleWriter
  private let schedules: Schedules
  private let errors: StoreErrors
  private let firings: Firings
  private let applier: ScheduleApplier
  private let followUps: ScheduleFollowUps
  /// The schedules that are being evicted.
  private var evicting: Set<ScheduleKey> = []
  /// The maximum number of evictions at a time. The target's next request that schedules something finds the others again.
  private static let maximumEvicting = 256
  /// The states that Kafka has not reported, and those that it has.
  private var written: [UInt32: (slot: Slot, state: Written, forgets: Bool)] = [:]
  private var durable: [Slot: [Written]] = [:]
  private var last: UInt32 = 0

  init(
    _ inFlight: InFlight, _ outcomes: Outcomes, _ rejections: Rejections, _ reader: RequestReader, _ writer: ScheduleWriter,
    _ schedules: Schedules, _ errors: StoreErrors, _ firings: Firings, _ applier: ScheduleApplier, _ followUps: ScheduleFollowUps
  ) {
    (self.inFlight, self.outcomes, self.rejections, self.reader, self.writer) = (inFlight, outcomes, rejections, reader, writer)
    (self.schedules, self.errors, self.firings, self.applier, self.followUps) = (schedules, errors, firings, applier, followUps)
  }

  private static let nothingIsPending: StaticString = "nothing is pending that could be canceled"

  /// Writes the state, and emits what the request superseded or withdrew. Returns the conclusion if that fails.
  private func tell(_ applied: ScheduleApplier.Applied, of key: ScheduleKey, by job: ScheduleJob, _ slot: Slot) -> Conclusion? {
    if applied.isToBeWritten, let record = applied.standing {
      guard write(Written(key: key, record: record, request: job.request), slot) else { return .failed }
    }
    if let withdrawn = applied.withdrawn {
      guard writer.withdraw(withdrawn, of: key, by: job.reference.id, OutcomePurpose(.record, slot)) else { return .failed }
      inFlight.expect(1, of: slot)
    }
    guard let superseded = applied.superseded else { return nil }
    let outcome = applied.verdict.isCancel ? Outcome.canceled : .collapsed
    let told = inFlight.emitted(slot, outcomes.ended(outcome, superseded, of: key, by: job.reference.id, OutcomePurpose(.record, slot)))
    if case .done = told { return nil }
    return told
  }

  /// Emits the outcome of a request, and writes its schedules to Kafka. Returns nil if the request passes to its devices.
  func finish(_ slot: Slot, _ content: RequestContent, _ job: ScheduleJob) -> Conclusion? {
    guard let answers = job.answers else { return .poisoned("its schedule was not asked") }
    for (key, applied) in answers {
      firings.applied(applied, to: key, isFiring: job.isFiring)
      if let overflow = applied.overflow { evict(overflow) }
      if let failure = tell(applied, of: key, by: job, slot) { return failure }
    }
    guard !job.cancelsAll, let applied = answers.last?.applied else {
      return answers.isEmpty ? end(slot, content, .expired, .reason(Self.nothingIsPending)) : end(slot, content, .carriedOut)
    }
    switch applied.verdict {
    case .passed, .firing(.fired): return nil
    case .scheduled: return end(slot, content, .scheduled, other: applied.superseded)
    case .canceled: return end(slot, content, .carriedOut, other: applied.superseded)
    case .expired, .firing(.expired): return end(slot, content, .expired)
    case .tooLate: return end(slot, content, .expired, .reason(Self.nothingIsPending))
    case .duplicate: return end(slot, content, .duplicate)
    case .stale(let newer): return end(slot, content, .collapsed, .by(newer.id), other: newer)
    case .canceledBefore(let cancel): return end(slot, content, .canceled, .by(cancel.id), other: cancel)
    case .rejected(let rejection): return reader.readAccepted(inFlight[slot].record) { rejections.reject(slot, rejection, $0.envelope) }
    case .firing(.skipped(let count)): return end(slot, content, .expired, .skipped(count))
    case .ignored: return end(slot, content, .replayed)
    }
  }

  /// Applies a firing whose record is rejected or dead-lettered to its schedule. Most such records are no firings.
  ///
  /// The occurrence is over, and the schedule goes on to the next one. Otherwise it would stay due, and `Firings` would write the same
  /// firing again and again.
  func refused(_ slot: Slot, _ envelope: RequestEnvelope) {
    let record = inFlight[slot]
    let job = ScheduleJob(refused: envelope, record.record, incarnation: record.source.incarnation)
    guard let job, let firing = job.firing else { return }
    inFlight.expect(1, of: slot)
    // The zones of the devices are not read, since they may be why the record cannot be processed.
    applier.apply(firing, to: job.key) { [self] result in
      let answer = inFlight.answer(slot)
      switch result {
      case .success(let applied):
        firings.applied(applied, to: job.key, isFiring: true)
        if tell(applied, of: job.key, by: job, slot) == nil { inFlight.done(answer) } else { inFlight.failed(answer) }
      case .failure(let error) where error.code == .faulty || error.code == .unexplained:
        // The record ends nevertheless. A state that cannot be read does not fire.
        errors.tell(error)
        inFlight.done(answer)
      case .failure(let error): errors.failed(answer, error)
      }
    }
  }

  /// Begins to evict the oldest schedule of a target that has too many, unless its eviction has begun.
  ///
  /// It ends in Redis first, if its state is still the one that was read. From then on nothing fires it, and its follow-up emits `evicted`. A
  /// schedule that changed meanwhile stays: it may have fired, and the target may have room. If not, the target's next request that
  /// schedules something finds the oldest again.
  private func evict(_ overflow: ScheduleApplier.Overflow) {
    let key = overflow.schedule.key
    guard evicting.count < Self.maximumEvicting, evicting.insert(key).inserted else { return }
    applier.evict(overflow) { [self] evicted in
      evicting.remove(key)
      switch evicted {
      case .success(.ended(let next)):
        followUps.begin(key, at: firings.place(of: key, overflow.end))
        if let next { evict(next) }
      case .success(.stays): break
      case .failure(let error): errors.tell(error)
      }
    }
  }

  /// Ends a request that goes to no device.
  private func end(
    _ slot: Slot, _ content: RequestContent, _ outcome: Outcome, _ details: EventDetails = .none, other: JournalReference? = nil
  ) -> Conclusion {
    let revision = content.entry.revision
    inFlight[slot].end(JournalJudgement(outcome, revision: revision, other: other))
    guard let event = outcome.event else { return .done }
    return reader.readAccepted(inFlight[slot].record) { view in
      content.arena.bytes.withUnsafeBytes { arena in
        let device = content.receiver.device.map { arena[$0] }
        return inFlight.emitted(
          slot, outcomes.ended(event, view, device: device, revision: revision, details, OutcomePurpose(.record, slot)))
      }
    }
  }

  // MARK: The topic

  /// Writes a state or a tombstone to Kafka. Returns whether a report will come.
  private func write(_ state: Written, _ slot: Slot, forgets: Bool = false) -> Bool {
    inFlight.expect(1, of: slot)
    last &+= 1
    guard
      forgets
        ? writer.forget(state.key, OutcomePurpose(.schedule, last))
        : writer.write(state.record, of: state.key, OutcomePurpose(.schedule, last))
    else {
      inFlight.failed(inFlight.answer(slot))
      return false
    }
    written[last] = (slot, state, forgets)
    return true
  }

  /// Takes Kafka's report of a state.
  ///
  /// Another lane may have changed the schedule meanwhile. If its record lies before this one, compaction would keep the older state. So
  /// the lane reads the state again, and writes it until Kafka's last record equals it.
  func reported(_ number: UInt32, failure: KafkaError.Code?) {
    guard let (slot, state, hasForgotten) = written.removeValue(forKey: number) else { return }
    let answer = inFlight.answer(slot)
    if failure == .messageTooLarge {
      // A dead letter ends without it. Redis has the state, and Kafka keeps the former one.
      if inFlight.isDeadLetter(slot) { return inFlight.done(answer) }
      return inFlight.poisoned(answer, "the record of its schedule is too large for Kafka")
    }
    if failure != nil { return inFlight.failed(answer) }
    inFlight.expect(1, of: slot)
    schedules.read(state.key) { [self] found in
      let answer = inFlight.answer(slot)
      switch found {
      case .failure(let error): errors.failed(answer, error)
      case .success(let found):
        if settle(state, found, slot, hasForgotten: hasForgotten) { inFlight.done(answer) } else { inFlight.failed(answer) }
      }
    }
    inFlight.done(answer)
  }

  /// Compares the state that Kafka has got with that in Redis. Returns false to retry the request.
  ///
  /// | Redis has | then |
  /// |---|---|
  /// | an end `evicting`, or a newer layout | the request is retried |
  /// | a published state | it is written, if Kafka has got another one or a tombstone |
  /// | an unpublished state; or none, where the one that was written had ended | a tombstone is written, unless it was |
  /// | none, where the one that was written is pending: Redis has lost it | the request is retried |
  /// | something unreadable | nothing: Kafka's state is the better one |
  private func settle(_ state: Written, _ found: Schedules.State, _ slot: Slot, hasForgotten: Bool) -> Bool {
    // Its follow-up soon emits the eviction. The request is retried after that. A newer program's state waits for such a program.
    if found.record?.phase == .ended(.evicting) || found.newerVersion != nil { return false }
    if let record = found.record, record.isPublished {
      if record != state.record || hasForgotten { return write(Written(key: state.key, record: record, request: state.request), slot) }
    } else if found.record != nil || state.record.pending == nil, !found.isUnreadable {
      // Redis forgot the schedule meanwhile. Its tombstone may lie before this state, so another one follows.
      if !hasForgotten { return write(state, slot, forgets: true) }
    } else if found.isMissing {
      // Redis never forgets a pending schedule, so it has lost this one. The retry applies the request again.
      return false
    }
    durable[slot, default: []].append(state)
    return true
  }
}

extension ScheduleOutcomes {
  /// Settles the schedules of a request that has ended.
  ///
  /// Redis may then forget that the target had schedules. Earlier than that, a retried request would not ask its schedule.
  func ended(_ slot: Slot, isDone: Bool) {
    guard !durable.isEmpty, let states = durable.removeValue(forKey: slot), isDone else { return }
    for state in states where state.isOwn && state.record.pending == nil { schedules.settle(state.record, of: state.key) { _ in } }
  }
}

extension ScheduleRules.Verdict {
  fileprivate var isCancel: Bool { if case .canceled = self { true } else { false } }
}
