import Kafka
import Notifications
import Store
import Worker

/// A batch of records, and the bytes made from them, until the last of the records is finished.
final class RetainedBatch {
  let records: RecordBatch
  /// The bytes made from the records: delivery entries, tokens of devices.
  let arena: Arena
  private var bytes: Int
  private let budget: MemoryBudget

  /// - Parameters:
  ///   - indexes: the records that are retained, by their indexes in the batch.
  ///   - budget: counts the bytes of these and of the arena until the batch is released.
  init(_ records: RecordBatch, _ indexes: some Sequence<Int>, _ budget: MemoryBudget) {
    self.records = records
    self.budget = budget
    let capacity = indexes.reduce(into: 0) { $0 += (records[$1].value?.count ?? 0) + Self.entryBytes }
    arena = Arena(capacity: capacity)
    bytes = 2 * capacity
    budget.bytes += bytes
  }

  deinit { budget.bytes -= bytes }

  /// Counts bytes that were written into the arena beyond its capacity.
  func grew(by bytes: Int) {
    self.bytes += bytes
    budget.bytes += bytes
  }

  /// About the bytes of an entry and its device's token beside the payload, and of a record beside its value.
  static let entryBytes = 256
}

/// How many bytes the in-flight records retain.
final class MemoryBudget {
  fileprivate(set) var bytes = 0
}

/// A record of a batch for which the tracker has given a ticket.
struct BegunRecord {
  /// The record's index in the batch.
  let index: Int
  let ticket: RecordTicket
  /// The record comes from `devices`.
  let isRegistration: Bool
  /// How often the record's topic was deleted and made again.
  var incarnation: UInt32 = 0
  /// A process has crashed with the record, so its service extensions are not called.
  private(set) var skipsExtensions = false
  /// Why the request is beyond a rate limit of its application; nil if it is not.
  var excess: RateExcess?

  init(index: Int, ticket: RecordTicket, isRegistration: Bool, incarnation: UInt32) {
    (self.index, self.ticket, self.isRegistration, self.incarnation) = (index, ticket, isRegistration, incarnation)
  }

  /// The same, without its service extensions.
  var withoutExtensions: BegunRecord {
    var record = self
    record.skipsExtensions = true
    return record
  }
}

/// The records in flight: what the stages of a lane share.
typealias InFlight = Ledger<InFlightRecord>

/// An in-flight record, as the stages share it. It is small, since it is copied; rare members are stored apart.
struct InFlightRecord {
  /// The batch that the record came with.
  var batch: RetainedBatch
  /// The record's index in the batch.
  let index: Int
  /// The tracker gets it back when the record is finished.
  let ticket: RecordTicket
  /// The record comes from `devices`.
  let isRegistration: Bool
  /// The record as the journal names it. Kept here, since Kafka's own memory of the record is far away when the record ends.
  let source: JournalSource
  /// The record's service extensions are not called.
  let skipsExtensions: Bool
  /// The loop's milliseconds at which the record arrived.
  let arrived: UInt64
  /// The record failed together with others. A retry judges it alone, which shows which record was to blame.
  var isSuspect = false
  /// The record's verdict, as far as it is known; counted when the record is finished.
  var verdict: RecordVerdict?
  /// The journal's entry for the record. Nil before the verdict, and if the pages of a person's devices have entries of their own.
  var judgement: JournalJudgement?
  private var rare: Rare?

  /// Members that few records need.
  private final class Rare {
    var recipients: RecipientPaging.Progress?
    var called: CalledExtensions?
    var excess: RateExcess?
    var letter = LetterProgress()
  }

  init(batch: RetainedBatch, _ begun: BegunRecord, arrived: UInt64) {
    self.batch = batch
    index = begun.index
    ticket = begun.ticket
    isRegistration = begun.isRegistration
    source = JournalSource(batch.records[begun.index], incarnation: begun.incarnation)
    skipsExtensions = begun.skipsExtensions
    self.arrived = arrived
    if let excess = begun.excess { makeRare().excess = excess }
  }

  /// The record as Kafka gave it.
  var record: RecordView { batch.records[index] }

  /// Why the request is beyond a rate limit of its application; nil if it is not. Retries do not change it.
  var excess: RateExcess? { rare?.excess }

  /// The results of the slow service extensions, which outlive a retry.
  var called: CalledExtensions? { rare?.called }

  /// Keeps the results of the slow service extensions for a retry.
  mutating func keep(_ called: CalledExtensions) {
    guard rare?.called !== called else { return }
    makeRare().called = called.isGuess ? nil : called
    batch.grew(by: called.bytes)
  }

  /// The progress of a request for a person through its devices.
  var recipients: RecipientPaging.Progress? {
    get { rare?.recipients }
    _modify {
      let rare = makeRare()
      yield &rare.recipients
    }
  }

  /// Whether Kafka has the record's dead letter, if it gets one.
  var letter: LetterProgress {
    get { rare?.letter ?? LetterProgress() }
    _modify {
      let rare = makeRare()
      yield &rare.letter
    }
  }

  /// Takes the judgement on the whole request.
  mutating func end(_ judgement: JournalJudgement) { (verdict, self.judgement) = (.request(judgement.verdict), judgement) }

  private mutating func makeRare() -> Rare {
    let made = rare ?? Rare()
    rare = made
    return made
  }

  /// Starts again in another batch, whose arena gets the record's entries.
  mutating func restart(in batch: RetainedBatch) {
    self.batch = batch
    (verdict, judgement) = (nil, nil)
    rare?.recipients = nil
    rare?.letter.restart()
  }
}
