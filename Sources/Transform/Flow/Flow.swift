/// The records in flight, as far as their order and their end are concerned: a value that knows neither Redis nor Kafka.
///
/// A record is begun, passes the stages, is judged, and is finished when each answer that it waits for has come. What fails is started again
/// as a whole, when the lane can work; its verdicts and events are the same again. What no waiting mends is tried a bounded number of times,
/// and is then dead-lettered.
///
/// A stage may answer later. A record that is parked at one makes the next records of its own target wait before they are judged (not before
/// their own stages), and nobody else's: with nobody parked that is one comparison with zero.
struct Flow {
  /// A record's slot: a small number, which calls and produced records carry; free again when the record is finished.
  typealias Slot = Int32

  /// The states of a record.
  enum State: Equatable {
    /// The slot has no record.
    case free
    /// It is being read.
    case reading
    /// It is at a stage that answers later.
    case staged(Int)
    /// It has passed the stages, and waits for an earlier record of its target.
    case gated
    /// Answers are outstanding: `pending` says how many.
    case working
    /// It waits until the lane can work, to be started again.
    case retrying
    /// Its dead letter is on its way.
    case deadLettering
  }

  /// What is to be done about a record.
  enum Step: Equatable {
    /// Nothing: it waits for more answers.
    case wait
    /// Its outcomes are durable.
    case finish
    /// It is to be started again, later.
    case retry
  }

  /// What a record is to do after its stages.
  enum Passage: Equatable {
    /// It is judged now.
    case judge
    /// It waits; `stageAnswered` says when it is judged.
    case wait
  }

  /// A record at a stage: an answer that comes late is not one for the slot's next record, nor one of another stage.
  struct Parked: Hashable {
    let slot: Slot
    /// The stage's number.
    let stage: Int
    fileprivate let generation: UInt32
  }

  private struct Record {
    var state = State.free
    var generation: UInt32 = 0
    /// Answers that are outstanding.
    var pending: Int32 = 0
    /// Something did not work: it is started again when nothing is outstanding any more.
    var hasFailed = false
    /// How often it was started again.
    var attempts: Int32 = 0
    /// How often something went wrong that no waiting mends.
    var faults: Int32 = 0
    var letter = LetterProgress()
    /// It goes to the dead letters.
    var isDeadLetter = false
    /// The hash of its target.
    var target: UInt64 = 0
  }

  /// What Kafka does not have yet of a dead letter and the event that belongs to it.
  struct MissingLetter {
    var letter: Bool
    var event: Bool
    /// How often Kafka has found the letter too large.
    var refusals: Int
  }

  /// What Kafka has of a record's letter and its event. Neither is written twice for one fault.
  private struct LetterProgress {
    enum State { case missing, underWay, done }

    var letter = State.missing
    var event = State.missing
    var refusals: Int32 = 0

    /// The record is started again: what was on its way was answered.
    mutating func restart() {
      if letter == .underWay { letter = .missing }
      if event == .underWay { event = .missing }
    }
  }

  /// Faults after which a record is dead-lettered.
  private let tries: Int
  private var records: [Record] = []
  private var free: [Slot] = []
  /// Slots that have a record.
  private(set) var count = 0
  /// Parked records by their targets, in the order in which they were begun.
  private var targets: [UInt64: [Slot]] = [:]
  /// How many records are parked.
  private(set) var parked = 0
  private var retrying: [Slot] = []

  /// - Parameter tries: faults after which a record is dead-lettered.
  init(tries: Int) { self.tries = tries }

  // MARK: A record

  /// Begins a record: it is being read, which counts as one outstanding answer.
  ///
  /// - Parameter faults: of a record that is known to go to the dead letters, how often it went wrong; 0 for any other.
  mutating func begin(deadLetteredAfter faults: Int = 0) -> Slot {
    count += 1
    let slot = free.popLast() ?? Slot(records.count)
    if slot == records.count { records.append(Record()) }
    let generation = records[Int(slot)].generation
    records[Int(slot)] = Record(state: .reading, generation: generation, pending: 1, faults: Int32(faults), isDeadLetter: faults > 0)
    return slot
  }

  /// Whether a record goes to the dead letters since it cannot be processed.
  func isDeadLetter(_ slot: Slot) -> Bool { records[Int(slot)].isDeadLetter }
  func faults(_ slot: Slot) -> Int { Int(records[Int(slot)].faults) }
  func attempts(_ slot: Slot) -> Int { Int(records[Int(slot)].attempts) }
  func hasFailed(_ slot: Slot) -> Bool { records[Int(slot)].hasFailed }

  /// A record has been read, and has passed the stages that answer at once.
  ///
  /// - Parameters:
  ///   - target: the hash of its target; asked for only where somebody is parked.
  ///   - stage: the stage that answers later; nil where none does.
  mutating func pass(_ slot: Slot, target: @autoclosure () -> UInt64, at stage: Int?) -> Passage {
    if stage == nil, parked == 0 { return .judge }
    let target = target()
    if stage == nil, targets[target] == nil { return .judge }
    records[Int(slot)].target = target
    records[Int(slot)].state = stage.map { .staged($0) } ?? .gated
    records[Int(slot)].pending += 1
    parked += 1
    targets[target, default: []].append(slot)
    return .wait
  }

  /// What a stage keeps of a record that it answers later.
  func parked(_ slot: Slot, at stage: Int) -> Parked { Parked(slot: slot, stage: stage, generation: records[Int(slot)].generation) }

  /// The stage that a record is at; nil where it is at none.
  func stage(of slot: Slot) -> Int? {
    if case .staged(let stage) = records[Int(slot)].state { stage } else { nil }
  }

  /// Whether a record still is where a stage has left it.
  func isParked(_ parked: Parked) -> Bool {
    records[Int(parked.slot)].generation == parked.generation && records[Int(parked.slot)].state == .staged(parked.stage)
  }

  /// A stage has answered, and a later one does not yet.
  mutating func move(_ parked: Parked, to stage: Int) {
    if isParked(parked) { records[Int(parked.slot)].state = .staged(stage) }
  }

  /// The last stage has answered: the records that are judged now, in their order. Each was waiting for one answer, which has come with
  /// this.
  mutating func stageAnswered(_ parked: Parked) -> [Slot] {
    guard isParked(parked) else { return [] }
    records[Int(parked.slot)].state = .gated
    return release(records[Int(parked.slot)].target)
  }

  /// A stage cannot answer at present: the record is to be started again. Those behind it are judged now where nobody else is before them;
  /// they need not wait for it, as they wait for none that fails later.
  mutating func stageFailed(_ parked: Parked) -> [Slot] {
    guard isParked(parked) else { return [] }
    let target = records[Int(parked.slot)].target
    records[Int(parked.slot)].state = .working
    self.parked -= 1
    targets[target]?.removeAll { $0 == parked.slot }
    return release(target)
  }

  /// Takes those at the head of a target's records that have passed.
  private mutating func release(_ target: UInt64) -> [Slot] {
    guard let waiting = targets[target] else { return [] }
    let passed = waiting.prefix { records[Int($0)].state == .gated }
    targets[target] = passed.count == waiting.count ? nil : Array(waiting.dropFirst(passed.count))
    parked -= passed.count
    for slot in passed { records[Int(slot)].state = .working }
    return Array(passed)
  }

  /// More answers are outstanding.
  mutating func expect(_ count: Int, of slot: Slot) { records[Int(slot)].pending += Int32(count) }

  /// Something of a record did not work, and it is started again when nothing is outstanding any more.
  mutating func fail(_ slot: Slot) { records[Int(slot)].hasFailed = true }

  /// Something went wrong that lies in the record, or in what Redis has of its devices: no waiting mends it.
  ///
  /// - Returns: whether that makes it a dead letter.
  mutating func fault(_ slot: Slot) -> Bool {
    records[Int(slot)].faults += 1
    guard records[Int(slot)].faults >= tries, !records[Int(slot)].isDeadLetter else { return false }
    records[Int(slot)].isDeadLetter = true
    records[Int(slot)].letter = LetterProgress()
    return true
  }

  /// A record's letter and its event are about to be written: what Kafka does not have of them.
  mutating func beginLetter(_ slot: Slot) -> MissingLetter {
    let progress = records[Int(slot)].letter
    if progress.letter == .missing { records[Int(slot)].letter.letter = .underWay }
    if progress.event == .missing { records[Int(slot)].letter.event = .underWay }
    return MissingLetter(
      letter: progress.letter == .missing, event: progress.event == .missing, refusals: Int(progress.refusals))
  }

  /// Kafka has found a record's letter too large: what comes in its place is smaller.
  mutating func letterRefused(_ slot: Slot) { records[Int(slot)].letter.refusals += 1 }

  /// Kafka has a record's letter.
  mutating func letterWritten(_ slot: Slot) { records[Int(slot)].letter.letter = .done }

  /// Kafka has the event that belongs to a record's letter, or has refused it by itself as too large: the letter then speaks alone.
  mutating func letterEventDone(_ slot: Slot) { records[Int(slot)].letter.event = .done }

  /// One outstanding answer has come.
  mutating func answered(_ slot: Slot) -> Step {
    let index = Int(slot)
    precondition(records[index].pending > 0, "an answer comes once")
    records[index].pending -= 1
    guard records[index].pending == 0 else {
      if records[index].state == .reading { records[index].state = records[index].isDeadLetter ? .deadLettering : .working }
      return .wait
    }
    guard records[index].hasFailed else { return .finish }
    records[index].state = .retrying
    retrying.append(slot)
    return .retry
  }

  /// Frees the slot of a record that is finished, or that nobody is to tell of any more.
  mutating func remove(_ slot: Slot) {
    let generation = records[Int(slot)].generation &+ 1
    records[Int(slot)] = Record(generation: generation)
    free.append(slot)
    count -= 1
  }

  // MARK: All of them

  /// Whether records wait to be started again.
  var hasRetries: Bool { !retrying.isEmpty }

  /// The records that are to be started again now: each is being read, as if it had just begun.
  mutating func takeRetries() -> [Slot] {
    let slots = retrying
    retrying = []
    for slot in slots {
      records[Int(slot)].state = .reading
      records[Int(slot)].pending = 1
      records[Int(slot)].hasFailed = false
      records[Int(slot)].letter.restart()
      records[Int(slot)].attempts += 1
    }
    return slots
  }

  /// Takes the records that wait for nothing but time and whose assignment is over: whoever reads them again knows what there is now.
  ///
  /// - Parameter isOver: whether the assignment that the record was begun in is over.
  /// - Returns: the records, which are to be removed, and those that are judged now since nobody is before them any more.
  mutating func takeEnded(_ isOver: (Slot) -> Bool) -> (ended: [Slot], judged: [Slot]) {
    var ended = retrying.filter(isOver)
    retrying.removeAll(where: isOver)
    guard parked > 0 else { return (ended, []) }
    var judged: [Slot] = []
    for (target, slots) in targets {
      let over = slots.filter(isOver)
      guard !over.isEmpty else { continue }
      ended += over
      parked -= over.count
      targets[target] = slots.filter { !isOver($0) }
      judged += release(target)
    }
    return (ended, judged)
  }
}
