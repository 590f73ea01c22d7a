import Notifications
import Store
import Worker

/// Ends requests that go to no device.
///
/// A request that breaks a rule, and a record that cannot be processed, gets an event and a dead letter. A request of a stopped
/// application, or beyond a rate limit, gets an event.
final class Rejections {
  private let inFlight: InFlight
  private let outcomes: Outcomes
  private let reader: RequestReader
  private let metrics: TransformMetrics
  /// Called with each record that is rejected by its headers or value, or is dead-lettered.
  var onRefusal: (Slot, RequestEnvelope) -> Void = { _, _ in }

  init(_ inFlight: InFlight, _ outcomes: Outcomes, _ reader: RequestReader, _ metrics: TransformMetrics) {
    (self.inFlight, self.outcomes, self.reader, self.metrics) = (inFlight, outcomes, reader, metrics)
  }

  /// A record breaks a rule of the requests.
  func reject(_ slot: Slot, _ rejection: Rejection, _ envelope: RequestEnvelope) -> Conclusion {
    inFlight[slot].end(JournalJudgement(.rejected, revision: inFlight[slot].source.impliedRevision))
    onRefusal(slot, envelope)
    return emit(slot, rejection, envelope)
  }

  /// A request's device is registered for another application.
  func wrongApplication(_ slot: Slot) -> Conclusion {
    reader.readAccepted(inFlight[slot].record) { view in
      let rejection = Rejection(
        .deviceTokenNotForTopic, field: "apns-topic", rule: "The device is registered for another application than the topic names.")
      return emit(slot, rejection.naming(view.unknownHeader), view.envelope)
    }
  }

  /// A request was published while its application was stopped. A request for a person has one event, and its devices are not read.
  func filter(_ slot: Slot, _ content: RequestContent, by stop: ApplicationStop) -> Conclusion {
    inFlight[slot].end(JournalJudgement(.filtered, revision: content.entry.revision))
    return reader.readAccepted(inFlight[slot].record) { view in
      content.arena.bytes.withUnsafeBytes { arena in
        return inFlight.emitted(
          slot,
          outcomes.filtered(view, device: content.receiver.device.map { arena[$0] }, revision: content.entry.revision, by: stop, slot: slot)
        )
      }
    }
  }

  /// A request is beyond a rate limit of its application. Only its headers are read, whether it breaks a rule or not.
  func limit(_ slot: Slot, _ excess: RateExcess) -> Conclusion {
    inFlight[slot].end(JournalJudgement(.rejected, revision: inFlight[slot].source.impliedRevision))
    if inFlight.attempts(slot) == 0 { metrics.rateLimited(excess.scope) }
    return reader.readEnvelope(inFlight[slot].record) {
      inFlight.emitted(slot, outcomes.limited(inFlight[slot].record, excess, $0, slot: slot))
    }
  }

  private func emit(_ slot: Slot, _ rejection: Rejection, _ envelope: RequestEnvelope) -> Conclusion {
    emit(slot, reason: rejection.reason.rawValue, isPoison: false) { missing in
      outcomes.reject(
        inFlight[slot].record, rejection, envelope, tries: inFlight.attempts(slot) + 1, missing: missing, slot: slot)
    }
  }

  /// A record cannot be processed. Only its headers are read.
  func deadLetter(_ slot: Slot) -> Conclusion {
    let record = inFlight[slot].record
    inFlight[slot].end(JournalJudgement(.deadLettered, revision: inFlight[slot].source.impliedRevision))
    if inFlight[slot].isRegistration { inFlight[slot].verdict = .registration(.poison) }
    return reader.readEnvelope(record) { envelope in
      if !inFlight[slot].isRegistration { onRefusal(slot, envelope) }
      return emit(slot, reason: DeadLetter.poison, isPoison: true) { missing in
        outcomes.deadLetter(
          record, inFlight[slot].isRegistration ? nil : envelope, error: inFlight.reason(slot), tries: inFlight.faults(slot),
          missing: missing, slot: slot)
      }
    }
  }

  /// Emits what Kafka does not have yet of a letter and its event.
  private func emit(_ slot: Slot, reason: String, isPoison: Bool, _ emit: (MissingLetter) -> Outcomes.Produced) -> Conclusion {
    let missing = inFlight[slot].letter.begin(isPoison: isPoison)
    let produced = emit(missing)
    if missing.letter, produced.isComplete { metrics.deadLettered(reason) }
    return inFlight.emitted(slot, produced)
  }
}
