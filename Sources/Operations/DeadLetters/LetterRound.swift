import EventLoop
import Kafka
import Notifications
import Worker

/// Writes a bounded number of letters to the requests again, then their states. Loop-confined.
///
/// A letter's state is written when Kafka has its request. If the process is killed in between, the letter is redriven once more with the
/// same origin, and the cluster judges it as a repeat.
final class LetterRound {
  private let requests: Republisher
  private let states: Republisher
  private let by: String
  private let note: String?
  /// The letters whose states Kafka does not have yet, by their opaques.
  private var pending: [UInt64: LetterResult] = [:]
  private var last: UInt64 = 0

  /// - Parameter onDone: called for each letter when Kafka has its state.
  init(on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: Topics, _ order: LetterOrder, onDone: @escaping (LetterResult) -> Void)
    throws(KafkaError)
  {
    (by, note) = (order.by, order.note)
    func republisher(_ topic: String, isInOrder: Bool) throws(KafkaError) -> Republisher {
      try Republisher(
        on: loop, kafka, cluster: order.cluster, topic: topic, batchBytes: order.limits.batchBytes(of: topic), isInOrder: isInOrder)
    }
    requests = try republisher(topics.requests, isInOrder: true)
    states = try republisher(topics.deadLetters, isInOrder: false)
    requests.onWritten = { [unowned self] report in
      guard var result = pending[report.opaque], case .redriven(_, let isExpired) = result.kind else { return }
      let place = report.offset >= 0 ? RecordPlace(partition: report.partition, offset: report.offset) : nil
      result.kind = .redriven(place, isExpired: isExpired)
      write(.redriven, of: result, as: place, opaque: report.opaque)
    }
    states.onWritten = { [unowned self] report in
      if let result = pending.removeValue(forKey: report.opaque) { onDone(result) }
    }
  }

  /// Writes a letter's request. Its state follows when Kafka has the request.
  func redrive(_ request: RequestToRedrive, _ result: LetterResult) {
    last += 1
    pending[last] = result
    requests.begin(request.record)
    if let origin = request.origin { requests.end(from: origin, why: .redrive) }
    withOptionalBytes(request.record.key) { key in
      withOptionalBytes(request.record.value) { requests.write(key: key, value: $0, to: request.partition, opaque: last) }
    }
  }

  /// Writes the state of a discarded letter.
  func discard(_ result: LetterResult) {
    last += 1
    write(.discarded, of: result, opaque: last)
  }

  /// Waits until Kafka has all records.
  func finish() async throws(KafkaError) {
    try await requests.finish()
    try await states.finish()
  }

  /// Closes both producers.
  func close() async {
    await requests.close()
    await states.close()
  }

  private func write(_ kind: LetterState.Kind, of result: LetterResult, as request: RecordPlace? = nil, opaque: UInt64) {
    pending[opaque] = result
    let state = LetterState(
      kind, of: result.letter.facts.place, by: by, at: WallClock.milliseconds(), request: request, id: result.id, note: note)
    for (name, value) in state.headers { states.headers.append(name, value) }
    states.write(key: nil, value: nil, to: state.letter.partition, opaque: opaque)
  }
}
