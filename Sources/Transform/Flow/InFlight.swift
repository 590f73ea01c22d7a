import EventLoop
import Kafka
import Notifications
import Store
import Worker

/// Whom the records in flight tell.
protocol InFlightOwner: AnyObject {
  /// A record is finished, or given up: its ticket goes back to the tracker.
  func finished(_ ticket: RecordTicket)
  /// A record has failed, and is to be started again later.
  func failed(_ slot: Flow.Slot)
  /// A call to Redis has failed.
  func failed(_ error: StoreError)
}

/// The records in flight, from their begin to their end: what all stages share. Loop-confined.
///
/// A record is *begun* when it comes, and *finished* when each of its outcomes is durable: then its ticket goes back to the tracker, which
/// commits the contiguous prefix. When that is, and what is started again, `Flow` decides.
final class InFlight {
  private let loop: EventLoop
  /// Nil: nothing is written of what is judged.
  private let journal: Journal?
  private let metrics: TransformMetrics
  private let logger: Logger
  var flow: Flow
  private var records = InFlightTable()
  private let budget = MemoryBudget()
  /// Records that have failed with an error that is not known here: those that no check has begun for, and those that wait for its end.
  private var unexplained: (noted: Set<Flow.Slot>, checked: Set<Flow.Slot>) = ([], [])
  weak var owner: (any InFlightOwner)?

  /// - Parameter tries: of a record that cannot be processed.
  init(on loop: EventLoop, tries: Int, journal: Journal?, metrics: TransformMetrics, logger: Logger) {
    self.loop = loop
    self.journal = journal
    self.metrics = metrics
    self.logger = logger
    flow = Flow(tries: tries)
  }

  /// What is known of a record.
  subscript(slot: Flow.Slot) -> InFlightRecord {
    _read { yield records[slot] }
    _modify { yield &records[slot] }
  }

  /// What they retain, with what is made from them.
  var bytes: Int { budget.bytes }

  // MARK: Begin

  /// Begins records of a batch, all of which the tracker has given tickets.
  func begin(_ batch: RecordBatch, _ begun: [BegunRecord], deadLetteredAfter faults: Int = 0) -> [Flow.Slot] {
    let retained = retain(batch, begun.map(\.index))
    let now = loop.milliseconds()
    return begun.map { record in
      metrics.took(isRegistration: record.isRegistration)
      let slot = flow.begin(deadLetteredAfter: faults)
      records.set(slot, InFlightRecord(batch: retained, record, arrived: now))
      return slot
    }
  }

  private func retain(_ batch: RecordBatch, _ indexes: [Int]) -> RetainedBatch {
    let bytes = indexes.reduce(into: 0) { $0 += (batch[$1].value?.count ?? 0) + RetainedBatch.entryBytes }
    return RetainedBatch(batch, bytes: bytes, arena: bytes, budget: budget)
  }

  /// Begins what has failed once more. What is made from it is made again: the former bytes go when all of its batch are finished, or are
  /// started again.
  func takeRetries() -> [Flow.Slot] {
    let slots = flow.takeRetries()
    for slot in slots {
      records[slot].restart(in: retain(records[slot].batch.records, [records[slot].index]))
      metrics.retries.increment()
    }
    return slots
  }

  // MARK: Answers

  /// One more answer is outstanding.
  func expect(_ slot: Flow.Slot) { flow.expect(1, of: slot) }

  /// The stages have left a request this content.
  func passed(_ slot: Flow.Slot, _ content: RequestContent) {
    guard content.extensions.count > 0 else { return }
    // The payload may be much larger than the one that was published.
    records[slot].batch.grew(by: content.entry.span.count + content.extensions.span.count)
    guard let journal else { return }
    content.arena.bytes.withUnsafeBytes { arena in
      journal.append(records[slot].source, extensions: arena[content.extensions.span], count: content.extensions.count)
    }
  }

  /// Keeps what took its time of a content that a stage has passed, should the request be started again.
  func keep(_ slot: Flow.Slot, _ content: RequestContent) {
    guard let called = content.called, records[slot].called !== called else { return }
    records[slot].called = called.isGuess ? nil : called
    records[slot].batch.grew(by: called.bytes)
  }

  /// Notes how many records to Kafka an outcome has.
  func settle(_ slot: Flow.Slot, _ produced: Outcomes.Produced) {
    flow.expect(produced.count, of: slot)
    if !produced.isComplete { flow.fail(slot) }
  }

  /// Something went wrong that lies in the record, or in what Redis has of its devices: no waiting mends it.
  func fault(_ slot: Flow.Slot, _ what: String) {
    records[slot].fault = what
    _ = flow.fault(slot)
  }

  /// A call of the store has failed that a record has asked for.
  func failed(_ slot: Flow.Slot, _ error: StoreError) {
    failed(error)
    switch error.code {
    case .faulty: fault(slot, error.message)
    case .unexplained: note(slot, error)
    case .unavailable, .overloaded, .writesRefused, .bucketLost, .refused: break
    }
    fail(slot)
  }

  // MARK: Unexplained errors

  /// A record has failed alone, with an error that is not known here: a check of Redis tells whether that lies in the record.
  func note(_ slot: Flow.Slot, _ error: StoreError) {
    records[slot].unexplained = error.message
    unexplained.noted.insert(slot)
  }

  /// A check of Redis begins: it explains the errors that have come so far.
  func checkBegins() {
    unexplained.checked.formUnion(unexplained.noted)
    unexplained.noted = []
  }

  /// The check has ended. Where Redis does all that workers need, the errors lay in their records; else they lay in Redis.
  ///
  /// - Returns: whether other errors have come since it began, which another check has to explain.
  func checkEnded(passed: Bool) -> Bool {
    for slot in unexplained.checked {
      if passed, let message = records[slot].unexplained { fault(slot, message) }
    }
    unexplained.checked = []
    return !unexplained.noted.isEmpty
  }

  private func forget(_ slot: Flow.Slot) {
    flow.remove(slot)
    guard records[slot].unexplained != nil else { return }
    unexplained.noted.remove(slot)
    unexplained.checked.remove(slot)
  }

  /// A call of the store has failed: what that says of Redis is the lane's business.
  func failed(_ error: StoreError) {
    owner?.failed(error)
    if error.code != .bucketLost { metrics.redisFailures.increment() }
  }

  /// An answer has come, and says that something did not work.
  func fail(_ slot: Flow.Slot) {
    flow.fail(slot)
    answered(slot)
  }

  /// An outstanding answer has come; with the last one the record is finished, or is started again.
  func answered(_ slot: Flow.Slot) {
    switch flow.answered(slot) {
    case .wait: return
    case .retry: owner?.failed(slot)
    case .finish:
      // A defect of this program, which would be a request that nobody hears of: it is tried again, and then goes to the dead letters.
      guard let verdict = records[slot].verdict else {
        flow.expect(1, of: slot)
        fault(slot, "it has come to its end without a verdict")
        return fail(slot)
      }
      conclude(slot, verdict)
    }
  }

  /// A request was judged for a device.
  ///
  /// - Returns: whether that is the verdict on the record; not for one of a person's devices.
  func judged(_ slot: Flow.Slot, _ verdict: RecordVerdict?, _ judgement: JournalJudgement) -> Bool {
    records[slot].judged(verdict, judgement)
  }

  // MARK: End

  /// All outcomes of a record are durable, but for the journal, which has its ticket from now on.
  private func conclude(_ slot: Flow.Slot, _ verdict: RecordVerdict) {
    let faults = flow.faults(slot)
    forget(slot)
    let record = records.take(slot)
    let now = loop.milliseconds()
    metrics.latency.observe(Double(now - record.arrived) / 1000)
    if !record.isRegistration { metrics.transformed(at: loop.wallMilliseconds(), published: record.record.timestamp) }
    if verdict == .poison { logPoison(record, tries: faults) }
    metrics.count(verdict, isRegistration: record.isRegistration)
    guard let journal, !record.isRegistration else {
      owner?.finished(record.ticket)
      return
    }
    let source = record.source
    if let judgement = record.judgement { journal.append(source, judgement) }
    journal.finish(record.ticket, source)
  }

  private func logPoison(_ poison: InFlightRecord, tries: Int) {
    let record = poison.record
    let headers = RequestRecord(record, topic: UnsafeRawBufferPointer(start: nil, count: 0)).headers
    logger.with(trace: TraceParent.carried(headers.traceparent)).warning(
      "a record could not be processed: the dead letters have it",
      ["topic": record.topic, "partition": record.partition, "offset": record.offset, "reason": poison.reason, "tries": tries])
  }

  /// A record's assignment is over: whoever has its partition now reads it again.
  func revoke(_ slot: Flow.Slot) {
    forget(slot)
    let record = records.take(slot)
    metrics.count(.revoked, isRegistration: record.isRegistration)
    owner?.finished(record.ticket)
  }
}
