import EventLoop
import Kafka
import Notifications
import Worker

/// Selects letters, writes them to the requests again, and notes their states.
///
/// A letter's state is written when Kafka has its request. If the process is killed in between, the letter is redriven once more with the
/// same origin, and the cluster judges it as a repeat.
final class LetterSource {
  /// The counts of finished letters.
  private(set) var counts = RunCounts()
  /// The rules of redriving; nil for discarding.
  var redriving: RedriveRules?
  /// Letters of this round from the first one on whose record is not in it. They wait for the end of the round, so that all keep their order.
  private var waiting: [(letter: LetterFacts, record: StoredRecord?)] = []
  private let run: RepublishingRun
  private let order: LetterOrder
  private let onResult: (LetterResult) -> Void
  /// Writes states; nil in a dry run.
  private let states: Republisher?
  /// Whether a letter that ended workers was taken.
  private var hasForced = false
  /// The letters whose states Kafka does not have yet, by their opaques.
  private var pending: [UInt64: LetterResult] = [:]
  private var last: UInt64 = 0
  /// The letters of this round.
  private var taken = 0
  /// When the round had its first letter, in steady milliseconds. So each round has one, however slowly Kafka begins to answer.
  private var began: Int64?

  /// The most letters of a round.
  static let roundLetters = 2_000
  /// The most letters that wait for its end. Their records may be as large as Kafka takes them.
  private static let roundRecords = 16
  /// How long a round takes letters, in milliseconds. Before each round the claim is checked.
  private static let roundMilliseconds: Int64 = 5_000

  /// - Parameters:
  ///   - states: writes into the dead letters.
  ///   - onResult: called for each matching letter when it is done. Letters that were handled before are skipped.
  init(
    _ run: RepublishingRun, _ order: LetterOrder, states: Republisher?, onResult: @escaping (LetterResult) -> Void
  ) {
    (self.run, self.order, self.states, self.onResult) = (run, order, states, onResult)
    run.writer?.onWritten = { [unowned self] report in
      guard var result = pending[report.opaque], case .redriven(_, let isExpired) = result.kind else { return }
      let place = report.offset >= 0 ? RecordPlace(partition: report.partition, offset: report.offset) : nil
      result.kind = .redriven(place, isExpired: isExpired)
      note(.redriven, result, as: place, opaque: report.opaque)
    }
    states?.onWritten = { [unowned self] report in
      if let result = pending.removeValue(forKey: report.opaque) { done(result) }
    }
    states?.onFailure = { [run] in run.fail($0) }
  }

  /// Whether no more letters may be taken in this round.
  var isRoundFull: Bool {
    run.isStopping || taken >= Self.roundLetters || waiting.count >= Self.roundRecords
      || began.map { SteadyClock.milliseconds() - $0 >= Self.roundMilliseconds } ?? false
  }

  /// Takes a letter that was read.
  func take(_ letter: LetterSummary, _ record: RecordView) {
    began = began ?? SteadyClock.milliseconds()
    guard order.filter.matches(letter.facts, letter.standing) else { return counts.add(.passedOver) }
    if letter.standing != .pending, !order.isAgain { return counts.add(.handled) }
    taken += 1
    guard let redriving else { return discard(letter.facts) }
    do throws(RedriveRefusal) {
      try redriving.check(letter.facts)
      if letter.facts.letter.tellsOfEndedWorkers {
        if hasForced { throw .endsWorkers }
        hasForced = true
      }
    } catch {
      return done(LetterResult(letter: letter.facts, id: letter.facts.id, kind: .refused(error)))
    }
    let isComplete = letter.facts.letter.isComplete
    if isComplete, waiting.isEmpty {
      redrive(letter.facts, StoredRecord(record), redriving)
    } else {
      waiting.append((letter.facts, isComplete ? StoredRecord(record) : nil))
    }
  }

  /// Ends a round: reads the records that lie elsewhere, redrives the letters that waited, and returns when Kafka has all. The next may begin.
  func finishRound(_ requests: String, _ reader: TopicReader, _ admin: Admin) async throws(KafkaError) {
    let waiting = waiting
    (self.waiting, taken) = ([], 0)
    let records = try await LetterSources.read(waiting.filter { $0.record == nil }.map(\.letter), requests, reader, admin)
    // The next run takes the rest again.
    if let redriving {
      for (letter, record) in waiting where !run.isStopping { redrive(letter, record ?? records[letter.place], redriving) }
    }
    try await run.writer?.finish()
    try await states?.finish()
    began = nil
  }

  private func redrive(_ letter: LetterFacts, _ record: StoredRecord?, _ redriving: RedriveRules) {
    var result = LetterResult(letter: letter, id: letter.id, kind: .refused(.gone))
    do throws(RedriveRefusal) {
      guard let record else { throw .gone }
      let request = try redriving.request(letter, record)
      (result.id, result.kind) = (request.id, .redriven(nil, isExpired: request.isExpired))
      guard let writer = run.writer else { return done(result) }
      run.wrote()
      last += 1
      pending[last] = result
      writer.begin(request.record)
      if let origin = request.origin { writer.end(from: origin, why: .redrive) }
      withOptionalBytes(request.record.key) { key in
        withOptionalBytes(request.record.value) { writer.write(key: key, value: $0, to: request.partition, opaque: last) }
      }
    } catch {
      result.kind = .refused(error)
      done(result)
    }
  }

  private func discard(_ letter: LetterFacts) {
    let result = LetterResult(letter: letter, id: letter.id, kind: .discarded)
    if states == nil { return done(result) }
    run.wrote()
    last += 1
    note(.discarded, result, opaque: last)
  }

  /// Writes the state of a letter.
  private func note(_ kind: LetterState.Kind, _ result: LetterResult, as request: RecordPlace? = nil, opaque: UInt64) {
    guard let states else { return }
    pending[opaque] = result
    let state = LetterState(
      kind, of: result.letter.place, by: order.by, at: WallClock.milliseconds(), request: request, id: result.id, note: order.note)
    for (name, value) in state.headers { states.headers.append(name, value) }
    states.write(key: nil, value: nil, to: state.letter.partition, opaque: opaque)
  }

  private func done(_ result: LetterResult) {
    switch result.kind {
    case .redriven(_, let isExpired): counts.add(.written, isExpired ? .expired : nil)
    case .discarded: counts.add(.discarded)
    case .refused(let refusal): counts.add(refusal == .gone ? .gone : .left)
    }
    onResult(result)
  }
}
