import Store
import Worker

/// Tells what an error of the store means for the record that has asked, and for the lane.
final class StoreErrors {
  private let inFlight: InFlight
  private let metrics: TransformMetrics
  private var unexplained = UnexplainedErrors()
  weak var owner: (any PipelineOwner)?

  init(_ inFlight: InFlight, _ metrics: TransformMetrics) { (self.inFlight, self.metrics) = (inFlight, metrics) }

  /// A call has failed, and this is the answer that a record gets.
  func failed(_ answer: consuming Answer, _ error: StoreError) {
    tell(error)
    conclude(answer, error)
  }

  /// A call has failed: what that says of Redis is the lane's business.
  func tell(_ error: StoreError) {
    switch error.code {
    case .bucketLost: owner?.redisLostBucket()
    case .writesRefused: owner?.redisRefusedWrites(error)
    case .newer:
      owner?.foundNewer(error)
      return
    case .unavailable, .overloaded, .refused, .unexplained, .faulty: break
    }
    if error.code != .bucketLost { metrics.redisFailures.increment() }
  }

  /// Consumes the answer of a record that was alone in its call, by the verb that the error asks for.
  func conclude(_ answer: consuming Answer, _ error: StoreError) {
    switch error.code {
    case .faulty: inFlight.poisoned(answer, error.message)
    case .unexplained:
      unexplained.note(answer.slot, order: inFlight.order(of: answer.slot), error.message)
      inFlight.failed(answer)
    case .newer:
      let record = inFlight[answer.slot]
      if !record.isRegistration { owner?.setAside(record.ticket) }
      inFlight.failed(answer)
    case .unavailable, .overloaded, .writesRefused, .bucketLost, .refused: inFlight.failed(answer)
    }
  }

  // MARK: Unexplained errors

  /// A check of the store begins: it explains the errors that have come so far.
  func checkBegins() { unexplained.checkBegins() }

  /// The check has ended. Where the store does all that workers need, the records were to blame for the errors.
  ///
  /// - Returns: whether other errors have come since it began, which another check has to explain.
  func checkEnded(passed: Bool) -> Bool {
    let (explained, isAnotherDue) = unexplained.checkEnded { inFlight.has($0, order: $1) }
    if passed { for (slot, message) in explained { inFlight.blame(slot, message) } }
    return isAnotherDue
  }
}
