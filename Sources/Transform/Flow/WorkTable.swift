import Kafka
import Notifications

/// What a batch of records needs until the last of them is done: the records themselves and the bytes made from them.
final class BatchHold {
  let records: RecordBatch
  /// What is made from the records: delivery entries, tokens of devices.
  var arena: ByteBuffer
  private let bytes: Int
  private let account: HeldBytes

  /// - Parameters:
  ///   - bytes: of the records that are held.
  ///   - account: has these and those of the arena as long as they are held.
  init(_ records: RecordBatch, bytes: Int, arena capacity: Int, account: HeldBytes) {
    self.records = records
    arena = ByteBuffer(capacity: capacity)
    self.bytes = bytes + capacity
    self.account = account
    account.count += self.bytes
  }

  deinit { account.count -= bytes }

  /// About what an entry and its device's token have beside the payload, and what a record has beside its value.
  static let entryBytes = 256

  /// Copies bytes into the arena.
  func keep(_ bytes: UnsafeRawBufferPointer?) -> ArenaSpan {
    guard let bytes else { return ArenaSpan(start: arena.count, count: 0) }
    return keep { $0.append(bytes) }
  }

  /// Writes into the arena, and answers where.
  func keep(_ write: (inout ByteBuffer) -> Void) -> ArenaSpan {
    let start = arena.count
    write(&arena)
    return ArenaSpan(start: start, count: arena.count - start)
  }
}

/// How many bytes the records under way hold: loop-confined.
final class HeldBytes {
  fileprivate(set) var count = 0
}

/// A stretch of a hold's arena.
struct ArenaSpan {
  var start = 0
  var count = 0
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
}

/// A record on its way through the stage, from its arrival until its outcomes are durable.
struct Work {
  /// The batch it came with; nil while the place is free.
  var hold: BatchHold?
  /// Its place in the batch.
  var index = 0
  /// It is a registration, of `devices`.
  var isRegistration = false
  /// How often its topic was deleted and made again.
  var incarnation: UInt32 = 0
  /// What the tracker wants back when it is done.
  var ticket: RecordTicket?
  /// Outcomes that are not yet known: calls to Redis and records to Kafka.
  var pending = 0
  /// Something did not work; the whole is done again when nothing is pending any more.
  var failed = false
  /// What went wrong that no waiting mends, and how often.
  var fault: String?
  var faults = 0
  /// How often Kafka has found too large what was to be told of it.
  var refusals = 0
  /// It failed together with others: next time it is judged alone, which shows whose fault it was.
  var isSuspect = false
  /// It goes to the dead letters.
  var isDeadLettered = false
  /// What became of it, as far as is known: counted when it is done.
  var verdict: RecordVerdict?
  /// How often it was done again.
  var tries = 0
  /// What the journal is to say of it; nil for what the pages of a person's devices tell, and before the verdict.
  var judgement: JournalJudgement?
  /// For a `user:` target: the devices that it goes to.
  var audience: Audiences.Progress?
  /// When it arrived: the loop's milliseconds.
  var arrived: UInt64 = 0
}

/// All records under way in one lane, each in a numbered place, so that a number is all that a call or a produced record carries.
struct WorkTable {
  private var places: [Work] = []
  private var free: [Int32] = []
  /// How many are under way.
  private(set) var count = 0

  /// Takes a place for a record.
  mutating func add(_ hold: BatchHold, _ begun: BegunRecord, arrived: UInt64) -> Int32 {
    let work = Work(
      hold: hold, index: begun.index, isRegistration: begun.isRegistration, incarnation: begun.incarnation, ticket: begun.ticket,
      arrived: arrived)
    count += 1
    if let place = free.popLast() {
      places[Int(place)] = work
      return place
    }
    places.append(work)
    return Int32(places.count - 1)
  }

  /// Frees a place; what it held of its batch goes with the last one of the batch.
  mutating func remove(_ place: Int32) {
    places[Int(place)] = Work()
    free.append(place)
    count -= 1
  }

  subscript(place: Int32) -> Work {
    _read { yield places[Int(place)] }
    _modify { yield &places[Int(place)] }
  }
}
