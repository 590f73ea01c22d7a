import Kafka
import Notifications
import Store

/// Applies firings whose records are rejected or dead-lettered to their schedules. Loop-confined.
///
/// The occurrence is over, and the schedule goes on to the next one. Otherwise it would stay due, and `Firings` would write the same
/// firing again and again.
final class RefusedFirings {
  private let inFlight: InFlight
  private let applier: ScheduleApplier
  private let outcomes: ScheduleOutcomes
  private let errors: StoreErrors

  init(_ inFlight: InFlight, _ applier: ScheduleApplier, _ outcomes: ScheduleOutcomes, _ errors: StoreErrors) {
    (self.inFlight, self.applier, self.outcomes, self.errors) = (inFlight, applier, outcomes, errors)
  }

  /// Takes a record that is rejected or dead-lettered. Most such records are no firings.
  func take(_ slot: Slot, _ envelope: RequestEnvelope) {
    let record = inFlight[slot]
    let job = ScheduleJob(refused: envelope, record.record, incarnation: record.source.incarnation)
    guard let job, case .firing(let firing) = job.purpose else { return }
    inFlight.expect(1, of: slot)
    // The zones of the devices are not read, since they may be why the record cannot be processed.
    applier.apply(firing, to: job.key) { [self] result in
      let answer = inFlight.answer(slot)
      switch result {
      case .success(let applied):
        if outcomes.refused(slot, job, applied) { inFlight.done(answer) } else { inFlight.failed(answer) }
      case .failure(let error) where error.code == .faulty || error.code == .unexplained:
        // The record ends nevertheless. A state that cannot be read does not fire.
        errors.tell(error)
        inFlight.done(answer)
      case .failure(let error): errors.failed(answer, error)
      }
    }
  }
}
