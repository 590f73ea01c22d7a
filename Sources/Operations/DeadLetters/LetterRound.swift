import EventLoop
import Kafka
import Notifications

/// Writes a bounded number of letters to the requests again, then their states. Loop-confined.
///
/// A letter's state is written when Kafka has its request. If the process is killed in between, the letter is redriven once more with the
/// same origin, and the cluster judges it as a repeat.
final class LetterRound {
  /// Called for each letter when Kafka has its state.
  var onDone: ((LetterResult) -> Void)?
  private let republisher: Republisher
  private let states: LetterStateWriter
  private let by: String
  private let note: String?
  private var pending: [UInt64: LetterResult] = [:]
  private var last: UInt64 = 0
  private var failure: KafkaError?
  private var isFull = false
  private var waiting: CheckedContinuation<Void, Never>?

  init(on loop: EventLoop, _ kafka: KafkaConfiguration, _ topics: (requests: String, deadLetters: String), _ order: LetterOrder)
    throws(KafkaError)
  {
    by = order.by
    note = order.note
    republisher = try Republisher(
      on: loop, kafka, cluster: order.cluster, topic: topics.requests, batchBytes: order.limits.batchBytes(of: topics.requests))
    states = try LetterStateWriter(
      on: loop, kafka, topic: topics.deadLetters, batchBytes: order.limits.batchBytes(of: topics.deadLetters))
    republisher.onWritten = { [unowned self] in written($0) }
    republisher.onRoom = { [unowned self] in
      isFull = false
      goOn()
    }
    states.onWritten = { [unowned self] in
      if let result = pending.removeValue(forKey: $0) { onDone?(result) }
      goOn()
    }
    republisher.onFailure = { [unowned self] in fail($0) }
    states.onFailure = { [unowned self] in fail($0) }
  }

  /// Writes a letter's request. Its state follows when Kafka has the request.
  func redrive(_ request: RequestToRedrive, _ result: LetterResult) async throws(KafkaError) {
    republisher.begin(request.record)
    if let origin = request.origin { republisher.end(from: origin, why: .redrive) }
    last += 1
    pending[last] = result
    while failure == nil {
      isFull = !withOptionalBytes(request.record.key) { key in
        withOptionalBytes(request.record.value) { value in
          republisher.write(key: key, value: value, to: request.partition, opaque: last)
        }
      }
      guard isFull else { break }
      await wait { [unowned self] in !isFull }
    }
    if let failure { throw failure }
  }

  /// Writes the state of a discarded letter.
  func discard(_ result: LetterResult) throws(KafkaError) {
    last += 1
    pending[last] = result
    states.write(
      LetterState(.discarded, of: result.letter.place, by: by, at: WallClock.milliseconds(), id: result.id, note: note), opaque: last)
    if let failure { throw failure }
  }

  /// Waits until Kafka has all records.
  func finish() async throws(KafkaError) {
    while failure == nil, !pending.isEmpty { await wait { [unowned self] in pending.isEmpty } }
    if let failure { throw failure }
  }

  /// Closes both producers.
  func close() async {
    await republisher.close(withinMilliseconds: failure == nil ? 10_000 : 1_000)
    await states.close(withinMilliseconds: failure == nil ? 10_000 : 1_000)
  }

  private func written(_ report: DeliveryReport) {
    guard var result = pending[report.opaque] else { return }
    let place = report.offset >= 0 ? RecordPlace(partition: report.partition, offset: report.offset) : nil
    if case .redriven(_, let isExpired) = result.kind { result.kind = .redriven(place, isExpired: isExpired) }
    pending[report.opaque] = result
    let state = LetterState(
      .redriven, of: result.letter.place, by: by, at: WallClock.milliseconds(), request: place, id: result.id, note: note)
    states.write(state, opaque: report.opaque)
  }

  private func fail(_ error: KafkaError) {
    failure = failure ?? error
    goOn()
  }

  private func goOn() {
    let continuation = waiting
    waiting = nil
    continuation?.resume()
  }

  private func wait(unless isDone: () -> Bool) async {
    await withCheckedContinuation { continuation in
      // Checked here, since other tasks may run between a check and an await.
      if isDone() || failure != nil { continuation.resume() } else { waiting = continuation }
    }
  }
}
