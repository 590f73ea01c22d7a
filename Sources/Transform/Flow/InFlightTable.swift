import Kafka
import Notifications
import Store

/// A batch of records until the last of them is finished: the records themselves, and the bytes made from them.
final class RetainedBatch {
  let records: RecordBatch
  /// What is made from the records: delivery entries, tokens of devices.
  let arena: Arena
  private var bytes: Int
  private let budget: MemoryBudget

  /// - Parameters:
  ///   - bytes: of the records that are retained.
  ///   - budget: counts these and those of the arena as long as they are.
  init(_ records: RecordBatch, bytes: Int, arena capacity: Int, budget: MemoryBudget) {
    self.records = records
    arena = Arena(capacity: capacity)
    self.bytes = bytes + capacity
    self.budget = budget
    budget.bytes += self.bytes
  }

  deinit { budget.bytes -= bytes }

  /// More was written into the arena than it was made for.
  func grew(by bytes: Int) {
    self.bytes += bytes
    budget.bytes += bytes
  }

  /// About what an entry and its device's token have beside the payload, and what a record has beside its value.
  static let entryBytes = 256
}

/// How many bytes the records in flight retain: loop-confined.
final class MemoryBudget {
  fileprivate(set) var bytes = 0
}

/// A record of a batch whose place the tracker has given.
struct BegunRecord {
  /// Its place in the batch.
  let index: Int
  let ticket: RecordTicket
  /// It comes from `devices`.
  let isRegistration: Bool
  /// How often its topic was deleted and made again.
  var incarnation: UInt32 = 0
  /// A process has ended over it: its service extensions are not called.
  private(set) var skipsExtensions = false

  init(index: Int, ticket: RecordTicket, isRegistration: Bool, incarnation: UInt32 = 0) {
    (self.index, self.ticket, self.isRegistration, self.incarnation) = (index, ticket, isRegistration, incarnation)
  }

  /// The same, without its service extensions.
  var withoutExtensions: BegunRecord {
    var record = self
    record.skipsExtensions = true
    return record
  }
}

/// What is known of a record in flight beside its state, which `Flow` has. It is small, since it is copied: what few records need lies apart.
struct InFlightRecord {
  /// The batch that it came with.
  var batch: RetainedBatch
  /// Its place in the batch.
  let index: Int
  /// What the tracker wants back when it is finished.
  let ticket: RecordTicket
  /// It is a registration, of `devices`.
  let isRegistration: Bool
  /// How often its topic was deleted and made again.
  let incarnation: UInt32
  /// Its service extensions are not called.
  let skipsExtensions: Bool
  /// When it arrived: the loop's milliseconds.
  let arrived: UInt64
  /// It failed together with others: next time it is judged alone, which shows whose fault it was.
  var isSuspect = false
  /// What became of it, as far as is known: counted when it is finished.
  var verdict: RecordVerdict?
  /// What the journal is to say of it; nil for what the pages of a person's devices tell, and before the verdict.
  var judgement: JournalJudgement?
  private var rare: Rare?

  /// What few records need.
  private final class Rare {
    var fault: String?
    var unexplained: String?
    var recipients: RecipientPaging.Progress?
    var called: CalledExtensions?
  }

  init(batch: RetainedBatch, _ begun: BegunRecord, arrived: UInt64) {
    self.batch = batch
    index = begun.index
    ticket = begun.ticket
    isRegistration = begun.isRegistration
    incarnation = begun.incarnation
    skipsExtensions = begun.skipsExtensions
    self.arrived = arrived
  }

  /// The record as Kafka gave it.
  var record: RecordView { batch.records[index] }

  /// The record as the journal tells of it.
  var source: JournalSource { JournalSource(record, incarnation: incarnation) }

  /// What went wrong last that no waiting mends, or what is said where nothing is known.
  var reason: String { fault ?? "it could not be processed" }

  /// What went wrong last that no waiting mends.
  var fault: String? {
    get { rare?.fault }
    set { makeRare().fault = newValue }
  }

  /// The error of a call for it alone that no check of Redis has explained yet.
  var unexplained: String? {
    get { rare?.unexplained }
    set { makeRare().unexplained = newValue }
  }

  /// What the extensions that take their time have made of it; it stays where it is started again.
  var called: CalledExtensions? {
    get { rare?.called }
    set { makeRare().called = newValue }
  }

  /// For a `user:` target: the devices that it goes to.
  var recipients: RecipientPaging.Progress? {
    get { rare?.recipients }
    _modify {
      let rare = makeRare()
      yield &rare.recipients
    }
  }

  /// Takes a device's verdict where it is that of the record; false for one of a person's devices.
  mutating func judged(_ verdict: RecordVerdict?, _ judgement: JournalJudgement) -> Bool {
    if rare?.recipients != nil { return false }
    (self.verdict, self.judgement) = (verdict, judgement)
    return true
  }

  private mutating func makeRare() -> Rare {
    let made = rare ?? Rare()
    rare = made
    return made
  }

  /// It is started again, and what is made from it lies in another arena.
  mutating func restart(in batch: RetainedBatch) {
    self.batch = batch
    (verdict, judgement) = (nil, nil)
    rare?.recipients = nil
  }
}

/// The records in flight by their slots, so that a number is all that a call or a produced record carries.
struct InFlightTable {
  private var records: [InFlightRecord?] = []

  /// Puts a record into its slot.
  mutating func set(_ slot: Flow.Slot, _ record: InFlightRecord) {
    if Int(slot) == records.count { records.append(record) } else { records[Int(slot)] = record }
  }

  /// Empties a slot, and answers its record; what that holds of its batch goes with the last one of the batch.
  mutating func take(_ slot: Flow.Slot) -> InFlightRecord {
    guard let record = records[Int(slot)].take() else { preconditionFailure("a slot that has no record is the caller's mistake") }
    return record
  }

  /// Nothing is copied: a slot that has no record is the caller's mistake, and ends in a trap.
  subscript(slot: Flow.Slot) -> InFlightRecord {
    _read { yield records[Int(slot)]! }
    _modify { yield &records[Int(slot)]! }
  }
}
