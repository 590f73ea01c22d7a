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

/// The ledger of the in-flight records: which answers each waits for, and how it ends.
///
/// A record is begun, and ends when every answer that it waits for has arrived. If a part of a record fails, the whole record is started
/// again; its verdicts and events are the same. After some permanent errors it is dead-lettered.
///
/// The ledger calls nobody but `onNote`. It notes which records have ended or failed, and its owner takes these notes.
///
/// `Record` is what the owner keeps of a record.
final class Ledger<Record> {
  /// A slot's contents.
  private struct Row {
    /// Else the slot is free.
    var hasRecord = false
    /// How many records were begun before this one.
    var order: UInt64 = 0
    /// Answers that are outstanding.
    var pending: Int32 = 0
    /// The record is started again when no answer is outstanding any more.
    var hasFailed = false
    var isDeadLetter = false
    /// How often the record was started again.
    var attempts: Int32 = 0
    /// Permanent errors.
    var faults: Int32 = 0
  }

  /// Permanent errors after which a record is dead-lettered.
  private let tries: Int
  private var rows: [Row] = []
  /// The records of the rows that have one. They are used in place: in an array, reading a part of a record would copy all of it.
  private var records = UnsafeMutableBufferPointer<Record>.allocate(capacity: 1024)
  private var free: [Slot] = []
  /// How many records were begun.
  private var begun: UInt64 = 0
  /// Notes for the owner: records that have ended, and records that have failed.
  private var notes: (ended: [Slot], failed: [Slot]) = ([], [])
  /// Failed records whose notes the owner has taken.
  private var waiting = Retries()
  /// The last permanent errors of records.
  private var reasons: [Slot: String] = [:]
  /// Called with the first note after the owner has taken all.
  var onNote: () -> Void = {}

  /// - Parameter tries: permanent errors after which a record is dead-lettered.
  init(tries: Int) { self.tries = tries }

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
    rows[slot.index] = Row(hasRecord: true, order: begun, pending: 1)
    begun += 1
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

  /// How many records were begun before this one. No other record has the number, and a record that is started again keeps it.
  func order(of slot: Slot) -> UInt64 { rows[slot.index].order }
  /// Whether a slot still has the record that was begun after so many others.
  func has(_ slot: Slot, order: UInt64) -> Bool { rows[slot.index].hasRecord && rows[slot.index].order == order }
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
    rows[slot.index] = Row()
    free.append(slot)
    if !reasons.isEmpty { reasons[slot] = nil }
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

  /// Counts a permanent error of a record. Its answer is consumed apart from this.
  func blame(_ slot: Slot, _ reason: String) {
    reasons[slot] = reason
    rows[slot.index].faults += 1
    if rows[slot.index].faults >= tries { rows[slot.index].isDeadLetter = true }
  }

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
      rows[slot.index].attempts += 1
    }
    return taken
  }

  /// Takes the retries whose assignment is over. The owner removes them.
  func takeRevokedRetries(where isOver: (Slot) -> Bool) -> [Slot] { waiting.removeAll(where: isOver) }
}
