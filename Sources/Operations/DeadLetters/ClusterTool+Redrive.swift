import EventLoop
import Kafka
import Notifications
import Worker

/// Redrives and discards dead letters.
///
/// It takes letters in rounds of bounded size, so memory does not grow with them. At the end of each round Kafka has all its records and
/// states. After an interruption the same order continues. Only one order runs at a time: the next one waits, and skips letters that were
/// handled meanwhile.
extension ClusterTool {
  /// Executes an order when no other run has the letters.
  ///
  /// - Parameter onResult: called for each matching letter when it is done. Letters that were handled before are skipped.
  package func carryOut(
    _ order: LetterOrder, _ settings: RunSettings, _ stop: RunStop, onResult: @escaping @Sendable (LetterResult) -> Void
  ) async throws -> RunReport {
    try await Admin.with(kafka) { try await carryOut(order, settings, stop, $0, onResult) }
  }

  private func carryOut(
    _ order: LetterOrder, _ settings: RunSettings, _ stop: RunStop, _ admin: Admin, _ onResult: @escaping @Sendable (LetterResult) -> Void
  ) async throws -> RunReport {
    let (topic, reader) = (rules.topics.deadLetters, reader)
    var (claimant, states): (LetterClaimant?, Republisher?)
    if !settings.isDryRun {
      claimant = try LetterClaimant(on: loop, kafka, topic: topic, by: order.by, silence: order.silenceMilliseconds, admin, reader)
      claimant?.isStopped = { stop.isSet }
      claimant?.onWaiting = { [onNote] in onNote("\($0.by) is working on the dead letters; this command continues afterwards") }
      states = try Republisher(
        on: loop, kafka, cluster: order.cluster, topic: topic, batchBytes: settings.limits.batchBytes(of: topic), isInOrder: false)
    }
    let run = try RepublishingRun(self, cluster: order.cluster, settings, stop)
    let source = LetterSource(run, order, states: states, onResult: onResult)
    var isComplete = false
    begin(run)
    do {
      if try await claimant?.claim() != false {
        // After the claim, so that it sees the work of all earlier runs.
        let reading = try await LetterReading(rules, from: order.filter.time.from, admin, reader)
        if let edits = order.edits { source.redriving = try await redriving(edits, order, settings.limits, admin) }
        while !reading.isAtEnd, !run.isStopping {
          try await claimant?.check()
          try await reading.read(in: run, until: { source.isRoundFull }) { source.take($0, $1) }
          try await source.finishRound(rules.topics.requests, reader, admin)
        }
        isComplete = reading.isAtEnd && !run.isStopping
      }
    } catch {
      run.fail(error)
    }
    await end(run)
    await states?.close()
    await claimant?.close()
    return RunReport(counts: source.counts, isComplete: isComplete && run.failure == nil, failure: run.failure)
  }

  /// The rules of redriving, by the present requests.
  private func redriving(_ edits: RequestEdits, _ order: LetterOrder, _ limits: WriteLimits, _ admin: Admin) async throws(KafkaError)
    -> RedriveRules
  {
    let topic = rules.topics.requests
    let ends = try await admin.stretches(of: topic)
    let logs = Gathered(Dictionary(ends.map { ($0.partition.partition, RequestsLog(offsets: $0.offsets)) }) { first, _ in first })
    let oldest = ends.filter { !$0.offsets.isEmpty }.map { ($0.partition, $0.offsets.lowerBound) }
    try await TopicReader.ofSingleRecords(on: loop, kafka).read(at: oldest, "the oldest requests") {
      logs.value[$0.partition]?.since = $0.timestamp
    }
    return RedriveRules(
      rules: rules, edits: edits, isForced: order.isForced, logs: logs.value,
      now: WallClock.milliseconds(), maximumBytes: min(RedriveRules.standardBytes, limits.batchBytes(of: topic) - Republisher.batchOverhead)
    )
  }
}
