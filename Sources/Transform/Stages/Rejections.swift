import Kafka
import Notifications
import Store

/// Where requests end that go to no device: those that break a rule, and records that cannot be processed, with an event and in the dead
/// letters; those of a stopped application with an event. Loop-confined.
final class Rejections {
  private let inFlight: InFlight
  private let outcomes: Outcomes
  private let reader: RequestReader
  private let metrics: TransformMetrics

  init(_ inFlight: InFlight, _ outcomes: Outcomes, _ reader: RequestReader, _ metrics: TransformMetrics) {
    (self.inFlight, self.outcomes, self.reader, self.metrics) = (inFlight, outcomes, reader, metrics)
  }

  /// A record breaks a rule of the requests.
  func reject(_ slot: Flow.Slot, _ rejection: Rejection, _ envelope: RequestEnvelope) {
    inFlight[slot].verdict = .rejected
    inFlight[slot].judgement = JournalJudgement(.rejected, revision: inFlight[slot].source.impliedRevision)
    emit(slot, rejection, envelope)
  }

  /// A request's device is registered for another application.
  func wrongApplication(_ slot: Flow.Slot) {
    reader.readAccepted(slot, inFlight) { view in
      let rejection = Rejection(
        .deviceTokenNotForTopic, field: "apns-topic", rule: "The device is registered for another application than the topic names.")
      emit(slot, rejection.naming(view.unknownHeader), view.envelope)
    }
  }

  /// A request was published while its application was stopped. One for a person has one event: its devices are not looked for.
  func filter(_ slot: Flow.Slot, _ content: RequestContent, by stop: ApplicationStop) {
    inFlight[slot].verdict = .filtered
    inFlight[slot].judgement = JournalJudgement(.filtered, revision: content.entry.revision)
    reader.readAccepted(slot, inFlight) { view in
      content.arena.bytes.withUnsafeBytes { arena in
        let device: UnsafeRawBufferPointer? = if case .device(let token) = content.receiver { arena[token] } else { nil }
        inFlight.settle(slot, outcomes.filtered(view, device: device, revision: content.entry.revision, by: stop, slot: slot))
      }
    }
  }

  private func emit(_ slot: Flow.Slot, _ rejection: Rejection, _ envelope: RequestEnvelope) {
    settle(slot, reason: rejection.reason.rawValue) { missing in
      outcomes.reject(
        inFlight[slot].record, rejection, envelope, tries: inFlight.flow.attempts(slot) + 1, missing: missing, slot: slot)
    }
  }

  /// A record cannot be processed; nothing of it is looked at but its headers.
  func deadLetter(_ slot: Flow.Slot) {
    let record = inFlight[slot].record
    inFlight[slot].verdict = .poison
    inFlight[slot].judgement = JournalJudgement(.deadLettered, revision: inFlight[slot].source.impliedRevision)
    reader.readEnvelope(record) { envelope in
      settle(slot, reason: DeadLetter.poison) { missing in
        outcomes.deadLetter(
          record, inFlight[slot].isRegistration ? nil : envelope, error: inFlight[slot].reason, tries: inFlight.flow.faults(slot),
          missing: missing, slot: slot)
      }
    }
  }

  /// Emits what Kafka does not have yet of a letter and its event.
  private func settle(_ slot: Flow.Slot, reason: String, _ emit: (Flow.MissingLetter) -> Outcomes.Produced) {
    let missing = inFlight.flow.beginLetter(slot)
    let produced = emit(missing)
    if missing.letter, produced.isComplete { metrics.deadLettered(reason) }
    inFlight.settle(slot, produced)
  }
}
