import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Reads ranges of the topics for a rebuild, and applies their records.
final class RebuildReading: ConsumerHandler {
  let progress = RebuildProgress()
  private let loop: EventLoop
  private let settings: TransformSettings
  private let logger: Logger
  private let pipeline: Pipeline
  private let notes: EndNotes
  private let verdicts: JournaledVerdicts
  private let requests: RebuiltRequests
  private let schedules: RebuiltSchedules
  /// The last requests that the end of the journal tells of.
  private(set) var journalEnd = TopicIncarnations()
  private var consumer: Consumer?
  private var failure: (any Error)?
  /// Resumes `read`.
  private var waiting: CheckedContinuation<Void, Never>?
  private var lastTold: UInt64 = 0
  private var silence = SilentEnds()
  /// Partitions of `devices` that need a tombstone.
  private var silent: [Int32] = []
  private let silenceTimer: Timer
  private let onProgress: (RebuildReport) -> Void

  init(
    _ lane: LaneContext, _ pipeline: Pipeline, _ verdicts: JournaledVerdicts, _ rates: RateLimits,
    onProgress: @escaping (RebuildReport) -> Void
  ) {
    self.onProgress = onProgress
    (loop, settings, logger, notes) = (lane.loop, lane.settings, lane.logger, lane.notes)
    (self.pipeline, self.verdicts) = (pipeline, verdicts)
    requests = RebuiltRequests(progress, pipeline, verdicts, rates, Mailboxes(lane.shards), settings.topics)
    schedules = RebuiltSchedules(
      Schedules(lane.shards, Schedules.Limits(dueTimesOfPartition: .max, lifetimeMilliseconds: settings.longestLifetime * 1000)),
      DeviceFacts(lane.shards, Recipients(lane.shards)))
    silenceTimer = Timer(on: loop)
    silenceTimer.handler = { [unowned self] in lookForSilence() }
    pipeline.owner = self
    let onAnswer = { [unowned self] (error: StoreError?) in if let error { fail(error) } else { advance() } }
    (requests.onAnswer, schedules.onAnswer) = (onAnswer, onAnswer)
    notes.drain = { [unowned self] in drainNotes() }
  }

  // MARK: Run

  /// Reads these ranges of partitions, and waits until all of it is applied.
  ///
  /// - Parameter journal: the ranges of the journal, which are read ahead of the requests.
  func read(
    _ phase: RebuildReport.Phase, _ ranges: [(TopicPartition, Range<Int64>)], ahead journal: [(TopicPartition, Range<Int64>)] = []
  ) async throws {
    let (ranges, journal) = (ranges.filter { !$0.1.isEmpty }, journal.filter { !$0.1.isEmpty })
    progress.begin(phase, ranges)
    onProgress(progress.report)
    if let failure { throw failure }
    guard !ranges.isEmpty else { return }
    if phase == .requests { requests.expect(ranges, ahead: journal) }
    if phase == .registrations { silenceTimer.start(after: 1_000, repeating: 1_000) }
    defer { silenceTimer.stop() }
    var options = Consumer.Options()
    options.reportsPartitionEnd = true
    let consumer = try Consumer(on: loop, settings.kafka, options, handler: self)
    self.consumer = consumer
    try await consumer.assign((ranges + journal).map { ($0.0, .offset($0.1.lowerBound)) })
    while !isDone {
      await withCheckedContinuation { continuation in
        if isDone { continuation.resume() } else { waiting = continuation }
      }
      do { try await wake(silent) } catch { fail(error) }
      silent = []
    }
    self.consumer = nil
    await consumer.close()
    if let failure { throw failure }
  }

  /// Detects partitions of registrations in which no more records come, before their end is reached.
  private func lookForSilence() {
    guard let consumer, let waiting else { return }
    var (reached, ends): ([Int32: Int64], [Int32: Int64]) = ([:], [:])
    for (index, name) in progress.names {
      guard let end = progress.step.end(of: index) else { continue }
      (reached[name.partition], ends[name.partition]) = (consumer.position(of: index) ?? 0, end)
    }
    silent = silence.look(reached, ends: ends, at: SteadyClock.milliseconds())
    guard !silent.isEmpty else { return }
    self.waiting = nil
    waiting.resume()
  }

  /// Writes a tombstone to partitions of `devices` in which no record reaches the end.
  private func wake(_ silent: [Int32]) async throws {
    guard !silent.isEmpty else { return }
    try await EndTombstone.write(to: silent.map { TopicPartition(settings.topics.devices, $0) }, on: loop, settings.kafka)
  }

  private var isDone: Bool {
    failure != nil || (progress.step.isDone && requests.isIdle && schedules.count == 0)
  }

  /// Begins what may begin, and pauses and resumes partitions; resumes `read` when all is done.
  private func advance() {
    if failure == nil { requests.advance() }
    if isDone, let waiting {
      self.waiting = nil
      return waiting.resume()
    }
    guard let consumer else { return }
    let underWay = progress.inFlight + requests.deletions + schedules.count
    if underWay > RebuildProgress.inFlightMaximum || requests.mustWait { return consumer.hold() }
    var (wait, goOn) = progress.step.decide()
    if progress.report.phase == .requests { requests.decide(&wait, &goOn) }
    consumer.release()
    consumer.pause(wait)
    consumer.resume(goOn)
  }

  /// Ends the rebuild with its first error.
  func fail(_ error: any Error) {
    if failure == nil {
      failure = error
      // The consumer would wait for records that are held, when it closes.
      requests.drop()
    }
    advance()
  }

  /// Enters a phase in which nothing is read.
  func enter(_ phase: RebuildReport.Phase) throws {
    if let failure { throw failure }
    progress.report.phase = phase
    onProgress(progress.report)
  }

  func close() async {
    silenceTimer.close()
    requests.drop()
    await consumer?.close()
  }

  // MARK: Records

  /// Whether a partition has requests, which wait for their entries of the journal.
  private func isOfRequests(_ name: TopicPartition) -> Bool {
    progress.report.phase == .requests && name.topic == settings.topics.requests
  }

  /// Whether a partition is one of the journal that is read ahead of the requests.
  private func isAhead(_ name: TopicPartition) -> Bool { progress.report.phase == .requests && name.topic == settings.topics.journal }

  func consumerAssigned(_ partitions: [AssignedPartition]) { for partition in partitions { progress.assigned(partition) } }

  func consumerRevoked(_ partitions: [AssignedPartition], isLost: Bool, revocation: Revocation) { revocation.finish() }

  func consumerReceived(_ batch: RecordBatch) {
    var registrations: [BegunRecord] = []
    for index in batch.indices {
      let record = batch[index]
      guard let name = progress.names[record.partitionIndex] else { continue }
      if isOfRequests(name) {
        requests.take(batch, index)
      } else if isAhead(name) {
        requests.takeJournal(record, headers: journalHeaders(record))
      } else if progress.take(record) {
        if let registration = take(record, at: index, of: name.topic) { registrations.append(registration) }
      }
    }
    if !registrations.isEmpty { pipeline.take(batch, registrations) }
    if loop.milliseconds() - lastTold >= 500 {
      lastTold = loop.milliseconds()
      onProgress(progress.report)
    }
    advance()
  }

  /// Takes a record that waits for nothing. Returns a registration, which the pipeline gets.
  private func take(_ record: RecordView, at index: Int, of topic: String) -> BegunRecord? {
    switch topic {
    case settings.topics.journal:
      if let value = record.value { journalEnd.take(record.partition, headers: journalHeaders(record), value) }
    case settings.topics.events:
      if let event = record.value.flatMap({ try? Event(headers: headers(record), value: $0) }) {
        requests.take(event, at: record.timestamp)
      }
    case settings.topics.deadLetters:
      if let letter = DeadLetter(headers: headers(record)), letter.tellsOfEndedWorkers { progress.poison.insert(letter.source) }
    case settings.topics.schedule:
      if let version = record.value.flatMap({ ScheduleRecord.newerVersion(of: $0) }) { foundNewer(.schedule, version, record) }
      if schedules.take(record) { progress.report.schedules += 1 }
    case settings.topics.devices:
      progress.note(record)
      progress.report.registrations += 1
      return progress.begin(record, at: index)
    // The request at the end of the journal, for its timestamp.
    default: progress.note(record)
    }
    return nil
  }

  private func headers(_ record: RecordView) -> [(name: String, value: String)] {
    var headers: [(name: String, value: String)] = []
    record.forEachHeader { name, value in
      if let value { headers.append((String(cString: name), String(decoding: value, as: UTF8.self))) }
    }
    return headers
  }

  private func journalHeaders(_ record: RecordView) -> [(name: String, value: String)] {
    let headers = headers(record)
    if let version = JournalRecord.newerVersion(headers) { foundNewer(.journal, version, record) }
    return headers
  }

  /// Ends the rebuild: without a record that only a newer program reads, Redis would not have everything.
  private func foundNewer(_ layout: Layout, _ version: some BinaryInteger, _ record: RecordView) {
    fail(StoreError.newer(layout, version, at: "\(SourceCoordinates(record))"))
  }

  func consumerFoundUnreadable(_ stretch: UnreadableStretch) -> Bool {
    let index = stretch.partition.index
    guard let name = progress.names[index] else { return true }
    progress.report.unreadable += stretch.offsets.count
    let last = stretch.offsets.upperBound - 1
    logger.warning(
      "records cannot be read and are skipped",
      ["partition": "\(name)", "first": stretch.offsets.lowerBound, "last": last, "error": "\(stretch.error)"])
    if isAhead(name) {
      requests.journalReached(name.partition, last + 1)
    } else if isOfRequests(name) {
      requests.foundUnreadable(index, through: last)
    } else {
      progress.skip(index, through: last)
    }
    advance()
    return true
  }

  func consumerReachedEnd(of partition: AssignedPartition, at offset: Int64) {
    guard let name = progress.names[partition.index] else { return }
    if isAhead(name) {
      requests.journalReached(name.partition, offset)
    } else if isOfRequests(name) {
      requests.reachedEnd(partition.index, at: offset)
    } else {
      progress.passed(partition.index, below: offset)
    }
    advance()
  }

  func consumerFailed(_ error: KafkaError) { if error.isFatal { fail(error) } }
}

extension RebuildReading: PipelineOwner {
  private func drainNotes() {
    pipeline.drainNotes()
    for ticket in notes.take() {
      progress.finish(ticket)
      verdicts.finish(ticket)
    }
    advance()
  }

  func isCurrent(_ ticket: RecordTicket) -> Bool { true }
  func redisLostBucket() { fail(Rebuild.lost) }
  func redisRefusedWrites(_ error: StoreError) { fail(error) }
  func foundNewer(_ error: StoreError) { fail(error) }

  func setAside(_ ticket: RecordTicket) {}
}
