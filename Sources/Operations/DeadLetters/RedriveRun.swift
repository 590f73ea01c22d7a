import EventLoop
import Kafka
import Notifications
import Worker

/// One run of an order to redrive or discard letters. Loop-confined.
final class RedriveRun {
  /// The letters of a round.
  static let roundLetters = 2_000
  /// The bytes of a round's records; the reader has fetched as much again.
  static let roundBytes = 16 << 20
  /// The most bytes of a record that is not in its letter.
  private static let missingBytes = 1 << 20

  private(set) var report = RedriveReport()
  private let rules: RequestRules
  private let order: LetterOrder
  private let onResult: (LetterResult) -> Void
  private let onWaiting: (LetterClaim) -> Void
  private var search = SupersededSearch()
  private var isStopped = false
  /// Whether a letter that ended workers was taken.
  private var hasForced = false
  private var letters: [StoredLetter] = []
  private var bytes = 0

  /// - Parameters:
  ///   - onResult: called for each letter when it is done.
  ///   - onWaiting: called with another run that this one waits for.
  init(
    _ rules: RequestRules, _ order: LetterOrder, _ onResult: @escaping (LetterResult) -> Void,
    onWaiting: @escaping (LetterClaim) -> Void
  ) {
    self.rules = rules
    self.order = order
    self.onResult = onResult
    self.onWaiting = onWaiting
  }

  /// Stops after the work in progress.
  func stop() { isStopped = true }

  /// Executes the order when no other run has the letters.
  func carryOut(on loop: EventLoop, _ kafka: KafkaConfiguration, _ reader: TopicReader, _ admin: Admin) async throws {
    guard !order.isDryRun else { return try await carryOut(nil, on: loop, kafka, reader, admin) }
    let claimant = try LetterClaimant(
      on: loop, kafka, topic: rules.topics.deadLetters, by: order.by, silence: order.silenceMilliseconds, admin, reader)
    claimant.isStopped = { [unowned self] in isStopped }
    claimant.onWaiting = onWaiting
    do {
      if try await claimant.claim() {
        try await carryOut(claimant, on: loop, kafka, reader, admin)
      } else {
        report.isInterrupted = true
      }
    } catch {
      await claimant.close()
      throw error
    }
    await claimant.close()
  }

  /// - Parameter claimant: holds the letters for this run; nil if nothing is written.
  private func carryOut(
    _ claimant: LetterClaimant?, on loop: EventLoop, _ kafka: KafkaConfiguration, _ reader: TopicReader, _ admin: Admin
  ) async throws {
    // After the claim, so that it sees the work of all earlier runs.
    let reading = try await LetterReading(rules, from: order.filter.time.from, admin, reader)
    let redriving = try await redriving(on: loop, kafka, admin)
    let round = claimant == nil ? nil : try LetterRound(on: loop, kafka, (rules.topics.requests, rules.topics.deadLetters), order)
    round?.onDone = { [unowned self] in done($0) }
    do {
      while !reading.isAtEnd, !isStopped {
        try await reading.read(until: { [self] in isStopped || letters.count >= Self.roundLetters || bytes >= Self.roundBytes }) {
          [self] in take($0, redriving)
        }
        if !letters.isEmpty { try await claimant?.check() }
        try await carryOut(round, redriving, reader, admin)
      }
    } catch {
      await round?.close()
      throw error
    }
    await round?.close()
    if isStopped, !reading.isAtEnd { report.isInterrupted = true }
    if order.isDryRun, let since = search.since, !isStopped {
      let stretches = try await admin.stretches(of: rules.topics.requests, TimeRange(from: since))
      try await reader.read(stretches, "requests") { [self] in search.take($0, rules) }
      (report.superseded, report.unknownSuperseded) = (search.count, search.unknown)
    }
  }

  /// The rules of redriving; nil for discarding.
  private func redriving(on loop: EventLoop, _ kafka: KafkaConfiguration, _ admin: Admin) async throws(KafkaError) -> RedriveRules? {
    guard case .redrive(let edits) = order.action else { return nil }
    let topic = rules.topics.requests
    let partitions = try await admin.describe(topic: topic).partitions.map { TopicPartition(topic, $0.id) }
    let ends = try await admin.ends(of: partitions)
    let logs = Logs(ends)
    let oldest = ends.filter { !$0.value.isEmpty }.map { ($0.key, $0.value.lowerBound) }
    try await TopicReader.ofSingleRecords(on: loop, kafka).read(at: oldest, "the oldest requests") {
      logs.all[$0.partition]?.since = $0.timestamp
    }
    return RedriveRules(
      rules: rules, edits: edits, isUnchecked: order.isUnchecked, isForced: order.isForced, logs: logs.all,
      now: WallClock.milliseconds(),
      maximumBytes: min(
        RedriveRules.standardBytes, order.limits.batchBytes(of: rules.topics.requests) - Republisher.batchOverhead))
  }

  /// The partitions of the requests, during their reading. Loop-confined.
  private final class Logs {
    var all: [Int32: RequestsLog]

    init(_ ends: [TopicPartition: Range<Int64>]) {
      all = Dictionary(ends.map { ($0.key.partition, RequestsLog(offsets: $0.value)) }) { first, _ in first }
    }
  }

  /// Takes a letter that was read.
  private func take(_ letter: LetterReading.Read, _ redriving: RedriveRules?) {
    report.all += 1
    guard order.filter.matches(letter.facts, letter.standing) else { return }
    report.selected += 1
    if letter.standing != .pending, !order.isAgain { return report.count(.refused(.handled(letter.standing))) }
    do throws(RedriveRefusal) {
      try redriving?.check(letter.facts)
      if redriving != nil, letter.facts.letter.tellsOfEndedWorkers {
        if hasForced { throw .endsWorkers }
        hasForced = true
      }
    } catch {
      return done(LetterResult(letter: letter.facts, id: letter.facts.id, times: letter.times, kind: .refused(error)))
    }
    var record = StoredRecord(letter.record)
    if redriving == nil { (record.key, record.value, record.headers) = (nil, nil, []) }
    letters.append(StoredLetter(facts: letter.facts, record: record, standing: letter.standing, times: letter.times))
    bytes += letter.facts.letter.isComplete ? record.byteCount : Self.missingBytes
  }

  /// Writes the letters that were taken.
  private func carryOut(_ round: LetterRound?, _ redriving: RedriveRules?, _ reader: TopicReader, _ admin: Admin) async throws {
    let letters = letters
    (self.letters, bytes) = ([], 0)
    let missing = redriving == nil ? [] : letters.map(\.facts).filter { !$0.letter.isComplete }
    let sources = try await LetterSources.read(missing, rules.topics.requests, reader, admin)
    for letter in letters {
      // The next run takes these letters again.
      guard !isStopped else {
        report.isInterrupted = true
        break
      }
      var result = LetterResult(letter: letter.facts, id: letter.facts.id, times: letter.times, kind: .discarded)
      guard let redriving else {
        if let round { try round.discard(result) } else { done(result) }
        continue
      }
      let request: RequestToRedrive
      do throws(RedriveRefusal) {
        guard let record = letter.facts.letter.isComplete ? letter.record : sources[letter.facts.place] else { throw .gone }
        request = try redriving.request(letter.facts, record)
      } catch {
        result.kind = .refused(error)
        done(result)
        continue
      }
      result.id = request.id
      result.kind = .redriven(nil, isExpired: request.isExpired)
      if let round {
        try await round.redrive(request, result)
      } else {
        if let key = request.collapse { search.add(key, at: letter.facts.letter.source.position) }
        done(result)
      }
    }
    try await round?.finish()
  }

  private func done(_ result: LetterResult) {
    report.count(result.kind)
    if case .redriven(let place?, _) = result.kind, report.written.count < order.followed {
      report.written.append(.init(letter: result.letter.place, request: place))
    }
    onResult(result)
  }
}
