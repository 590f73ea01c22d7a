/// The slot of an in-flight record: a small number, which calls and produced records carry. It is free again when the record has ended.
struct Slot: Hashable, Comparable {
  let number: Int32

  var index: Int { Int(number) }

  static func < (one: Slot, other: Slot) -> Bool { one.number < other.number }
}

/// An answer about an in-flight record that has arrived. One verb of the ledger consumes it: `done`, `failed` or `poisoned`.
struct Answer: ~Copyable {
  /// The record's slot.
  let slot: Slot

  fileprivate init(_ slot: Slot) { self.slot = slot }

  fileprivate consuming func consume() -> Slot {
    let slot = slot
    discard self
    return slot
  }

  deinit { Self.trap() }

  /// The compiler warns of a `deinit` that traps itself.
  private static func trap() { preconditionFailure("an answer was forgotten, and its record would never end") }
}

/// The result of the work that an answer made due. It names the verb that consumes the answer.
enum Conclusion {
  /// Nothing is wrong; the record may wait for further answers.
  case done
  /// Something has failed, and a retry can help.
  case failed
  /// A permanent error, for this reason: retrying cannot help.
  case poisoned(String)
}

/// A record at a stage. It tells a late answer from one for the slot's next record, or for another stage.
struct ParkedRecord: Hashable {
  /// The record's slot.
  let slot: Slot
  /// The stage's number.
  let stage: Int
  fileprivate let generation: UInt32
}

/// The ledger of the in-flight records: which answers each waits for, the order in which they are judged, and how they end.
///
/// A record is begun, passes the stages, is judged, and ends when every answer that it waits for has arrived. If a part of a record fails,
/// the whole record is started again; its verdicts and events are the same. After some permanent errors it is dead-lettered.
///
/// A stage may answer later. While a record is parked there, the later records of its target pass their stages, but are not judged before
/// it. It delays no other target. As long as no record is parked, this costs one comparison with zero. A record that is
/// started again takes its place before those that were begun after it.
///
/// The ledger calls nobody but `onNote`. It notes which records have ended or failed, and its owner takes these notes.
///
/// `Record` is what the owner keeps of a record.
final class Ledger<Record> {
  /// A slot's contents.
  private struct Row {
    /// Else the slot is free.
    var hasRecord = false
    var generation: UInt32 = 0
    /// Answers that are outstanding.
    var pending: Int32 = 0
    /// The record is started again when no answer is outstanding any more.
    var hasFailed = false
    var isDeadLetter = false
    /// How often the record was started again.
    var attempts: Int32 = 0
    /// Permanent errors.
    var faults: Int32 = 0
    var letter = LetterProgress()
    /// The hash of the target of a record that concerns schedules.
    var target: UInt64 = 0
    /// How many records were begun before this one.
    var order: UInt64 = 0
    /// Later firings of the target wait until the record has ended.
    var precedesFirings = false
  }

  /// Permanent errors after which a record is dead-lettered.
  private let tries: Int
  /// For how many records after a firing the chains are kept.
  private let chained: UInt64
  private var rows: [Row] = []
  /// The records of the rows that have one. They are used in place: in an array, reading a part of a record would copy all of it.
  private var records = UnsafeMutableBufferPointer<Record>.allocate(capacity: 1024)
  private var free: [Slot] = []
  /// How many records were begun.
  private var begun: UInt64 = 0
  /// What firings wait for; nil until there is a firing, and when there has been none for long, so that requests pay nothing for it.
  private var chains: FiringChains?
  /// How many records were begun before a firing has asked last.
  private var askedAt: UInt64 = 0
  private var queues = TargetQueues()
  /// Notes for the owner: records that have ended, and records that have failed.
  private var notes: (ended: [Slot], failed: [Slot]) = ([], [])
  /// Failed records whose notes the owner has taken.
  private var waiting = Retries()
  /// The last permanent errors of records.
  private var reasons: [Slot: String] = [:]
  private var unexplained = UnexplainedErrors()
  /// Called with the first note after the owner has taken all.
  var onNote: () -> Void = {}

  /// - Parameters:
  ///   - tries: permanent errors after which a record is dead-lettered.
  ///   - chained: for how many records after a firing the chains of what the next one may wait for are kept.
  init(tries: Int, chained: UInt64 = 100_000) { (self.tries, self.chained) = (tries, chained) }

  deinit {
    for index in rows.indices where rows[index].hasRecord { records.deinitializeElement(at: index) }
    records.deallocate()
  }

  /// How many slots have a record.
  var count: Int { rows.count - free.count }

  // MARK: A record

  /// Begins a record. Reading it counts as one outstanding answer.
  ///
  /// - Parameter poison: the permanent errors of a record that goes to the dead letters as it is.
  func begin(_ record: consuming Record, poison: (faults: Int, reason: String)? = nil) -> Slot {
    let slot = free.popLast() ?? Slot(number: Int32(rows.count))
    if slot.index == rows.count { addRow() }
    records.initializeElement(at: slot.index, to: record)
    rows[slot.index] = Row(hasRecord: true, generation: rows[slot.index].generation, pending: 1, order: begun)
    begun += 1
    if chains != nil, begun > askedAt + chained { chains = nil }
    if let poison {
      (rows[slot.index].isDeadLetter, rows[slot.index].faults) = (true, Int32(poison.faults))
      reasons[slot] = poison.reason
    }
    return slot
  }

  /// Rows are added while all have records.
  private func addRow() {
    if rows.count == records.count {
      let grown = UnsafeMutableBufferPointer<Record>.allocate(capacity: 2 * records.count)
      _ = grown.moveInitialize(fromContentsOf: records)
      records.deallocate()
      records = grown
    }
    rows.append(Row())
  }

  /// The owner's record in a slot, without a copy. A free slot traps.
  subscript(slot: Slot) -> Record {
    _read {
      precondition(rows[slot.index].hasRecord, "a free slot has no record")
      yield records[slot.index]
    }
    _modify {
      precondition(rows[slot.index].hasRecord, "a free slot has no record")
      yield &records[slot.index]
    }
  }

  /// Whether a record goes to the dead letters because it cannot be processed.
  func isDeadLetter(_ slot: Slot) -> Bool { rows[slot.index].isDeadLetter }
  /// How many permanent errors a record has had.
  func faults(_ slot: Slot) -> Int { Int(rows[slot.index].faults) }
  /// The last permanent error of a record.
  func reason(_ slot: Slot) -> String { reasons[slot] ?? "it could not be processed" }
  /// How often a record was started again.
  func attempts(_ slot: Slot) -> Int { Int(rows[slot.index].attempts) }
  /// Whether a record will be started again.
  func hasFailed(_ slot: Slot) -> Bool { rows[slot.index].hasFailed }

  /// Empties a slot, and returns its record.
  func remove(_ slot: Slot) -> Record {
    precondition(rows[slot.index].hasRecord, "a free slot has no record to remove")
    chains?.remove(slot)
    rows[slot.index] = Row(generation: rows[slot.index].generation &+ 1)
    free.append(slot)
    if !reasons.isEmpty { reasons[slot] = nil }
    unexplained.forget(slot)
    return records.moveElement(from: slot.index)
  }

  // MARK: Answers

  /// More answers of a record are outstanding.
  func expect(_ count: Int, of slot: Slot) { rows[slot.index].pending += Int32(count) }

  /// An answer has arrived, and its verb follows.
  func answer(_ slot: Slot) -> Answer { Answer(slot) }

  /// The answer brings what was asked for. With the last one the record has ended, or is started again.
  func done(_ answer: consuming Answer) {
    let slot = answer.consume()
    precondition(rows[slot.index].pending > 0, "an answer arrives once")
    rows[slot.index].pending -= 1
    guard rows[slot.index].pending == 0 else { return }
    if notes.ended.isEmpty, notes.failed.isEmpty { onNote() }
    if rows[slot.index].hasFailed { notes.failed.append(slot) } else { notes.ended.append(slot) }
  }

  /// The answer says that something has failed: the record is started again when no answer is outstanding any more.
  func failed(_ answer: consuming Answer) {
    rows[answer.slot.index].hasFailed = true
    done(answer)
  }

  /// The answer is a permanent error: retrying cannot help, so it counts towards a dead letter.
  func poisoned(_ answer: consuming Answer, _ reason: String) {
    blame(answer.slot, reason)
    failed(answer)
  }

  /// Consumes an answer by the verb that a conclusion names.
  func conclude(_ answer: consuming Answer, _ conclusion: Conclusion) {
    switch conclusion {
    case .done: done(answer)
    case .failed: failed(answer)
    case .poisoned(let reason): poisoned(answer, reason)
    }
  }

  private func blame(_ slot: Slot, _ reason: String) {
    reasons[slot] = reason
    rows[slot.index].faults += 1
    guard rows[slot.index].faults >= tries, !rows[slot.index].isDeadLetter else { return }
    rows[slot.index].isDeadLetter = true
    rows[slot.index].letter = LetterProgress()
  }

  // MARK: Unexplained errors

  /// The answer is an error of a call for this record alone, and does not say whether a retry can help. A check of the store tells.
  func failed(_ answer: consuming Answer, unexplained message: String) {
    unexplained.note(answer.slot, message)
    failed(answer)
  }

  /// A check of the store begins: it explains the errors that have come so far.
  func checkBegins() { unexplained.checkBegins() }

  /// The check has ended. Where the store does all that workers need, the records were to blame for the errors.
  ///
  /// - Returns: whether other errors have come since it began, which another check has to explain.
  func checkEnded(passed: Bool) -> Bool {
    let (explained, isAnotherDue) = unexplained.checkEnded()
    if passed { for (slot, message) in explained { blame(slot, message) } }
    return isAnotherDue
  }

  // MARK: The dead letter

  /// Begins a record's letter and its event: what Kafka does not have of them is written now.
  func beginLetter(_ slot: Slot) -> MissingLetter { rows[slot.index].letter.begin() }

  /// Kafka has found a record's letter too large: the next one is smaller.
  func letterRefused(_ slot: Slot) { rows[slot.index].letter.refusals += 1 }

  /// Kafka has a record's letter.
  func letterWritten(_ slot: Slot) { rows[slot.index].letter.letter = .done }

  /// Kafka has the event that belongs to a record's letter, or has refused it as too large. Then the letter goes without one.
  func letterEventDone(_ slot: Slot) { rows[slot.index].letter.event = .done }

  // MARK: The order of a target

  /// Takes a record that was read and has passed the stages that answer at once.
  ///
  /// - Parameters:
  ///   - target: the hash of its target; asked for only while a record is parked.
  ///   - stage: the stage that answers later, if one does.
  /// - Returns: whether it is judged now; else `stageAnswered` says when.
  func pass(_ slot: Slot, target: @autoclosure () -> UInt64, at stage: Int?) -> Bool {
    if stage == nil, queues.count == 0 { return true }
    guard queues.park(slot, target: target(), order: rows[slot.index].order, at: stage) else { return true }
    rows[slot.index].pending += 1
    return false
  }

  /// How many records are parked.
  var parked: Int { queues.count }

  /// Says which target a record concerns, before its stages.
  ///
  /// - Parameter precedesFirings: whether the later firings of the target wait until the record has ended.
  func aim(_ slot: Slot, at target: UInt64, precedesFirings: Bool) {
    (rows[slot.index].target, rows[slot.index].precedesFirings) = (target, precedesFirings)
    if precedesFirings { chains?.append(slot, target: target, order: rows[slot.index].order) }
  }

  private func makeChains() -> FiringChains {
    var chains = FiringChains()
    let known = rows.indices.filter { rows[$0].hasRecord && rows[$0].precedesFirings }
    for index in known.sorted(by: { rows[$0].order < rows[$1].order }) {
      chains.append(Slot(number: Int32(index)), target: rows[index].target, order: rows[index].order)
    }
    return chains
  }

  /// The record that a firing waits for: one of its target that was begun before it and has not ended. It may have failed meanwhile.
  ///
  /// - Parameter counts: whether the firing has to wait for such a record.
  func predecessor(of slot: Slot, where counts: (Slot) -> Bool = { _ in true }) -> Slot? {
    askedAt = begun
    let present = chains ?? makeChains()
    chains = present
    return present.predecessor(target: rows[slot.index].target, before: rows[slot.index].order, where: counts)
  }

  /// The handle by which a stage keeps a record that it answers later.
  func parked(_ slot: Slot, at stage: Int) -> ParkedRecord {
    ParkedRecord(slot: slot, stage: stage, generation: rows[slot.index].generation)
  }

  /// Whether a record still is where a stage has left it.
  func isParked(_ parked: ParkedRecord) -> Bool {
    rows[parked.slot.index].generation == parked.generation && queues.stage(of: parked.slot) == parked.stage
  }

  /// A stage has answered, and a later stage has not yet.
  func move(_ parked: ParkedRecord, to stage: Int) {
    if isParked(parked) { queues.move(parked.slot, to: stage) }
  }

  /// The last stage has answered.
  ///
  /// - Returns: the records that are judged now, in their order. The answer that each waited for has arrived.
  func stageAnswered(_ parked: ParkedRecord) -> [Slot] { isParked(parked) ? queues.passed(parked.slot) : [] }

  /// A stage cannot answer at present, and the record is to fail. The next records of its target do not wait for its retry.
  ///
  /// - Returns: the records that are judged now, in their order.
  func stageFailed(_ parked: ParkedRecord) -> [Slot] { isParked(parked) ? queues.remove(parked.slot) : [] }

  // MARK: Notes

  /// Takes the records that have ended: all their outcomes are durable. The owner removes them.
  func takeEnded() -> [Slot] {
    defer { notes.ended = [] }
    return notes.ended
  }

  /// Takes the records that have failed. From now on `takeRetries` has them.
  func takeFailed() -> [Slot] {
    guard !notes.failed.isEmpty else { return [] }
    defer { notes.failed = [] }
    for slot in notes.failed { waiting.append(slot, isFirst: attempts(slot) == 0) }
    return notes.failed
  }

  /// How many records wait to be started again.
  var retries: Int { waiting.count }
  /// How many of these have failed for the first time.
  var firstRetries: Int { waiting.firstCount }

  /// Takes the records that are started again now. Reading each counts as one outstanding answer again.
  ///
  /// - Parameter count: how many start of those that have failed more than once: those that have waited longest. The others all start.
  func takeRetries(failedBefore count: Int = .max) -> [Slot] {
    let taken = waiting.take(failedBefore: count)
    for slot in taken {
      rows[slot.index].pending = 1
      rows[slot.index].hasFailed = false
      rows[slot.index].letter.restart()
      rows[slot.index].attempts += 1
    }
    return taken
  }

  /// Takes parked records and retries whose assignment is over. The next owner of their partition reads them again.
  ///
  /// - Parameter isOver: whether the assignment is over that the record was begun in.
  /// - Returns: these records, which the owner removes, the stages' handles of them, and the records that are judged now because they waited
  ///   for one of these.
  func takeRevoked(_ isOver: (Slot) -> Bool) -> (revoked: [Slot], handles: [ParkedRecord], released: [Slot]) {
    let retrying = waiting.removeAll(where: isOver)
    guard queues.count > 0 else { return (retrying, [], []) }
    let (removed, released) = queues.removeAll(where: isOver)
    return (retrying + removed.map(\.slot), removed.compactMap { slot, stage in stage.map { parked(slot, at: $0) } }, released)
  }
}
