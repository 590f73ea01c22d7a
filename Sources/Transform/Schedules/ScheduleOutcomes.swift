import Calendars
import Kafka
import Notifications
import Store
import Worker

/// Emits what became of requests at their schedules, and writes how the schedules stand. Loop-confined.
final class ScheduleOutcomes {
  /// A state of a schedule that was given to Kafka.
  private struct Written {
    let key: ScheduleKey
    let record: ScheduleRecord
    /// The request that the record in flight is of, or that its firing is of.
    let request: Revision

    /// Whether no newer request has changed the schedule: such a one may still have to tell what it has ended.
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
  private let evictions: ScheduleEvictions
  /// States whose reports are to come, and those that Kafka has.
  private var written: [UInt32: (slot: Slot, state: Written, forgets: Bool)] = [:]
  private var durable: [Slot: [Written]] = [:]
  private var last: UInt32 = 0

  init(
    _ inFlight: InFlight, _ outcomes: Outcomes, _ rejections: Rejections, _ reader: RequestReader, _ writer: ScheduleWriter,
    _ schedules: Schedules, _ errors: StoreErrors, _ firings: Firings, _ evictions: ScheduleEvictions
  ) {
    (self.inFlight, self.outcomes, self.rejections, self.reader, self.writer) = (inFlight, outcomes, rejections, reader, writer)
    (self.schedules, self.errors, self.firings, self.evictions) = (schedules, errors, firings, evictions)
  }

  /// How a request goes on.
  enum Step {
    /// To its devices.
    case passed
    /// It has ended, or has failed.
    case ended(Conclusion)
  }

  /// Tells and writes what became of a request at its schedule.
  func finish(_ slot: Slot, _ content: RequestContent, _ job: ScheduleJob) -> Step {
    switch job.answer {
    case .none: .ended(end(slot, content, .expired))
    case .applied(let applied): finish(slot, content, job, applied, isForAnother: false)
    case .appliedForAnother(let applied): finish(slot, content, job, applied, isForAnother: true)
    case .canceled(let canceled): .ended(finish(slot, content, job, canceled))
    }
  }

  private func finish(
    _ slot: Slot, _ content: RequestContent, _ job: ScheduleJob, _ canceled: [(key: ScheduleKey, applied: ScheduleApplier.Applied)]
  ) -> Conclusion {
    for (key, applied) in canceled {
      firings.applied(applied, to: key, isFiring: false)
      if let failure = tell(applied, of: key, by: job, slot) { return failure }
    }
    if canceled.isEmpty { return end(slot, content, .expired, .reason(Self.nothingIsPending)) }
    return end(slot, content, .carriedOut)
  }

  private static let nothingIsPending: StaticString = "nothing is pending that could be canceled"

  /// Writes how a schedule stands, and tells of what was superseded and withdrawn. Returns the conclusion where that has failed.
  private func tell(_ applied: ScheduleApplier.Applied, of key: ScheduleKey, by job: ScheduleJob, _ slot: Slot) -> Conclusion? {
    if applied.isToBeWritten, let record = applied.standing {
      guard write(Written(key: key, record: record, request: job.request), slot) else { return .failed }
    }
    if let withdrawn = applied.withdrawn {
      guard writer.withdraw(withdrawn, of: key, by: job.reference.id, .record(slot)) else { return .failed }
      inFlight.expect(1, of: slot)
    }
    guard let superseded = applied.superseded else { return nil }
    let outcome = applied.verdict.isCancel ? Outcome.canceled : .collapsed
    let told = inFlight.emitted(slot, outcomes.ended(outcome, superseded, of: key, by: job.reference.id, .record(slot)))
    if case .done = told { return nil }
    return told
  }

  private func finish(
    _ slot: Slot, _ content: RequestContent, _ job: ScheduleJob, _ applied: ScheduleApplier.Applied, isForAnother: Bool
  ) -> Step {
    let isFiring = if case .firing = job.purpose { true } else { false }
    firings.applied(applied, to: job.key, isFiring: isFiring)
    if let overflow = applied.overflow { evictions.begin(overflow) }
    if let failure = tell(applied, of: job.key, by: job, slot) { return .ended(failure) }
    switch applied.verdict {
    case .passed: return .passed
    case .scheduled: return .ended(end(slot, content, .scheduled, other: applied.superseded))
    case .canceled: return .ended(end(slot, content, .carriedOut, other: applied.superseded))
    case .tooLate: return .ended(end(slot, content, .expired, .reason(Self.nothingIsPending)))
    case .duplicate: return .ended(end(slot, content, .duplicate))
    case .stale(let newer): return .ended(end(slot, content, .collapsed, .by(newer.id), other: newer))
    case .canceledBefore(let cancel): return .ended(end(slot, content, .canceled, .by(cancel.id), other: cancel))
    case .rejected(let rejection):
      return .ended(reader.readAccepted(inFlight[slot].record) { rejections.reject(slot, rejection, $0.envelope) })
    case .firing(.fired) where isForAnother:
      return .ended(end(slot, content, .filtered, .reason("the device belongs to another person now")))
    case .firing(.fired): return .passed
    case .firing(.expired): return .ended(end(slot, content, .expired))
    case .firing(.skipped(let count)): return .ended(end(slot, content, .expired, .skipped(count)))
    case .ignored: return .ended(end(slot, content, .replayed))
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
        return inFlight.emitted(slot, outcomes.ended(event, view, device: device, revision: revision, details, .record(slot)))
      }
    }
  }

  // MARK: The topic

  /// Gives Kafka a state, or has it forget the schedule.
  private func write(_ state: Written, _ slot: Slot, forgets: Bool = false) -> Bool {
    inFlight.expect(1, of: slot)
    last &+= 1
    guard forgets ? writer.forget(state.key, .schedule(last)) : writer.write(state.record, of: state.key, .schedule(last)) else {
      inFlight.failed(inFlight.answer(slot))
      return false
    }
    written[last] = (slot, state, forgets)
    return true
  }

  /// Kafka has the state of a schedule, or has not.
  ///
  /// Where another lane has changed the schedule meanwhile, its record may lie before this one, and compaction would keep the older one. So
  /// the state is read once more, and written again until it is what Kafka has last.
  func reported(_ number: UInt32, failure: KafkaError.Code?) {
    guard let (slot, state, hasForgotten) = written.removeValue(forKey: number) else { return }
    let answer = inFlight.answer(slot)
    if failure == .messageTooLarge { return inFlight.poisoned(answer, "the record of its schedule is too large for Kafka") }
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

  /// Compares a state that Kafka has with the one that stands. Returns whether the record goes on: what is still to be written is under way.
  private func settle(_ state: Written, _ found: Schedules.State, _ slot: Slot, hasForgotten: Bool) -> Bool {
    // Its end is being told, and lies in the topic soon: the record is done again afterwards.
    if found.record?.phase == .ended(.evicting) { return false }
    if let record = found.record, record.isPublished {
      if record != state.record || hasForgotten { return write(Written(key: state.key, record: record, request: state.request), slot) }
    } else if found.record != nil || state.record.pending == nil, !found.isUnreadable {
      // It was forgotten meanwhile. The tombstone may lie before this state.
      if !hasForgotten { return write(state, slot, forgets: true) }
    } else if found.isMissing {
      // What is pending is never forgotten: it is applied again.
      return false
    }
    durable[slot, default: []].append(state)
    return true
  }
}

extension ScheduleOutcomes {
  /// A request has ended, with all that it has told and written, or has left.
  ///
  /// Not before this it may be forgotten that something waited for its target: done again, it would not ask its schedule.
  func ended(_ slot: Slot, isDone: Bool) {
    guard !durable.isEmpty, let states = durable.removeValue(forKey: slot), isDone else { return }
    for state in states where state.isOwn && state.record.pending == nil { schedules.settle(state.record, of: state.key) { _ in } }
  }
}

extension ScheduleJudge.Verdict {
  fileprivate var isCancel: Bool { if case .canceled = self { true } else { false } }
}
