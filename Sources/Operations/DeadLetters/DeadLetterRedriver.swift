package import EventLoop
package import Kafka
package import Notifications
package import Worker

/// Redrives and discards dead letters: an actor on a loop.
///
/// It takes letters in rounds of bounded size, so memory does not grow with them. At the end of each round Kafka has all its records and
/// states. After an interruption the same order continues. Only one order runs at a time: the next one waits, and skips letters that were
/// handled meanwhile.
package actor DeadLetterRedriver: LoopActor {
  /// The actor's loop.
  package nonisolated let loop: EventLoop
  /// The letters of a round.
  static let roundLetters = 2_000
  /// The bytes of a round's records; the reader has fetched as much again.
  private static let roundBytes = 16 << 20
  /// The most bytes of a record that is not in its letter.
  private static let missingBytes = 1 << 20

  private let kafka: KafkaConfiguration
  private let rules: RequestRules
  private let order: LetterOrder
  private let onProgress: @Sendable (ReadingProgress) -> Void
  private let onResult: @Sendable (LetterResult) -> Void
  private let onWaiting: @Sendable (LetterClaim) -> Void
  private var report = RedriveReport()
  private var isStopped = false
  /// Whether a letter that ended workers was taken.
  private var hasForced = false
  private var letters: [(letter: LetterSummary, record: StoredRecord)] = []
  private var bytes = 0

  /// Makes a redriver of a cluster.
  ///
  /// - Parameters:
  ///   - onProgress: called once a second while a topic is read.
  ///   - onResult: called for each matching letter when it is done. Letters that were handled before are skipped.
  ///   - onWaiting: called while this run waits for another one.
  package init(
    on loop: EventLoop, _ kafka: KafkaConfiguration, _ rules: RequestRules, _ order: LetterOrder,
    onProgress: @escaping @Sendable (ReadingProgress) -> Void, onResult: @escaping @Sendable (LetterResult) -> Void,
    onWaiting: @escaping @Sendable (LetterClaim) -> Void = { _ in }
  ) {
    (self.loop, self.kafka, self.rules, self.order) = (loop, kafka, rules, order)
    (self.onProgress, self.onResult, self.onWaiting) = (onProgress, onResult, onWaiting)
  }

  /// Stops after the work in progress.
  package func stop() { isStopped = true }

  /// Executes the order when no other run has the letters. Call it once.
  package func carryOut() async throws -> RedriveReport {
    let reader = TopicReader(on: loop, kafka)
    reader.onProgress = onProgress
    try await Admin.with(kafka) { admin in
      guard !order.isDryRun else { return try await carryOut(nil, reader, admin) }
      let claimant = try LetterClaimant(
        on: loop, kafka, topic: rules.topics.deadLetters, by: order.by, silence: order.silenceMilliseconds, admin, reader)
      claimant.isStopped = { [unowned self] in isStopped }
      claimant.onWaiting = onWaiting
      do {
        if try await claimant.claim() { try await carryOut(claimant, reader, admin) } else { report.isInterrupted = true }
      } catch {
        await claimant.close()
        throw error
      }
      await claimant.close()
    }
    return report
  }

  /// - Parameter claimant: holds the letters for this run; nil if nothing is written.
  private func carryOut(_ claimant: LetterClaimant?, _ reader: TopicReader, _ admin: Admin) async throws {
    // After the claim, so that it sees the work of all earlier runs.
    let reading = try await LetterReading(rules, from: order.filter.time.from, admin, reader)
    let redriving = try await redriving(admin)
    let round = claimant == nil ? nil : try LetterRound(on: loop, kafka, rules.topics, order) { [unowned self] in done($0) }
    do {
      while !reading.isAtEnd, !isStopped {
        try await reading.read(until: { [self] in isStopped || letters.count >= Self.roundLetters || bytes >= Self.roundBytes }) {
          [self] in take($0, $1, redriving)
        }
        if !letters.isEmpty { try await claimant?.check() }
        try await write(round, redriving, reader, admin)
      }
    } catch {
      await round?.close()
      throw error
    }
    await round?.close()
    if isStopped, !reading.isAtEnd { report.isInterrupted = true }
  }

  /// The rules of redriving; nil for discarding.
  private func redriving(_ admin: Admin) async throws(KafkaError) -> RedriveRules? {
    guard case .redrive(let edits) = order.action else { return nil }
    let topic = rules.topics.requests
    let partitions = try await admin.describe(topic: topic).partitions.map { TopicPartition(topic, $0.id) }
    let ends = try await admin.ends(of: partitions)
    let logs = Gathered(Dictionary(ends.map { ($0.key.partition, RequestsLog(offsets: $0.value)) }) { first, _ in first })
    let oldest = ends.filter { !$0.value.isEmpty }.map { ($0.key, $0.value.lowerBound) }
    try await TopicReader.ofSingleRecords(on: loop, kafka).read(at: oldest, "the oldest requests") {
      logs.value[$0.partition]?.since = $0.timestamp
    }
    return RedriveRules(
      rules: rules, edits: edits, isUnchecked: order.isUnchecked, isForced: order.isForced, logs: logs.value,
      now: WallClock.milliseconds(),
      maximumBytes: min(RedriveRules.standardBytes, order.limits.batchBytes(of: topic) - Republisher.batchOverhead))
  }

  /// Takes a letter that was read.
  private func take(_ letter: LetterSummary, _ record: RecordView, _ redriving: RedriveRules?) {
    report.counts[.letters] += 1
    guard order.filter.matches(letter.facts, letter.standing) else { return }
    report.counts[.selected] += 1
    if letter.standing != .pending, !order.isAgain { return report.counts[.handled] += 1 }
    do throws(RedriveRefusal) {
      try redriving?.check(letter.facts)
      if redriving != nil, letter.facts.letter.tellsOfEndedWorkers {
        if hasForced { throw .endsWorkers }
        hasForced = true
      }
    } catch {
      return done(LetterResult(letter: letter, id: letter.facts.id, kind: .refused(error)))
    }
    let record = redriving == nil ? StoredRecord(headers: []) : StoredRecord(record)
    letters.append((letter, record))
    bytes += letter.facts.letter.isComplete ? record.byteCount : Self.missingBytes
  }

  /// Writes the letters that were taken.
  private func write(_ round: LetterRound?, _ redriving: RedriveRules?, _ reader: TopicReader, _ admin: Admin) async throws {
    let letters = letters
    (self.letters, bytes) = ([], 0)
    let missing = redriving == nil ? [] : letters.map(\.letter.facts).filter { !$0.letter.isComplete }
    let sources = try await LetterSources.read(missing, rules.topics.requests, reader, admin)
    for (letter, record) in letters {
      // The next run takes these letters again.
      guard !isStopped else {
        report.isInterrupted = true
        break
      }
      var result = LetterResult(letter: letter, id: letter.facts.id, kind: .discarded)
      guard let redriving else {
        if let round { round.discard(result) } else { done(result) }
        continue
      }
      do throws(RedriveRefusal) {
        guard let record = letter.facts.letter.isComplete ? record : sources[letter.facts.place] else { throw .gone }
        let request = try redriving.request(letter.facts, record)
        (result.id, result.kind) = (request.id, .redriven(nil, isExpired: request.isExpired))
        if let round {
          round.redrive(request, result)
          continue
        }
      } catch {
        result.kind = .refused(error)
      }
      done(result)
    }
    try await round?.finish()
  }

  private func done(_ result: LetterResult) {
    report.count(result.kind)
    if case .redriven(let place?, _) = result.kind, report.written.count < order.followed {
      report.written.append((result.letter.facts.place.description, place.partition, place.offset))
    }
    onResult(result)
  }
}
