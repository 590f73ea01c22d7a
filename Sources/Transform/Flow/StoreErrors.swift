import Store
import Worker

/// Tells what an error of the store means for the record that has asked, and for the lane. Loop-confined.
final class StoreErrors {
  private let inFlight: InFlight
  private let metrics: TransformMetrics
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
    case .unexplained: inFlight.failed(answer, unexplained: error.message)
    case .newer:
      let record = inFlight[answer.slot]
      if !record.isRegistration { owner?.passes(record.ticket) }
      inFlight.failed(answer)
    case .unavailable, .overloaded, .writesRefused, .bucketLost, .refused: inFlight.failed(answer)
    }
  }
}
