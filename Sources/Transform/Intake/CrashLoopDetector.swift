import EventLoop
import Store

/// The lane, as the detector sees it.
protocol CrashLoopDetectorOwner: AnyObject {
  /// Whether the lane processes a partition's records, and none of them is in flight.
  func isIdle(_ index: Int) -> Bool
  /// These partitions are no longer suspected: none of their records was in flight at a check.
  func foundHarmless(_ partitions: [MarkedPartition])
  /// Redis refuses writes, so it takes no note.
  func redisRefusedWrites(_ error: StoreError)
  /// Called when the lane gets the permit, from any thread.
  var waker: @Sendable () -> Void { get }
}

/// Finds the record that crashes its worker, by counts in Redis that earlier workers left.
///
/// A partition is suspected if it was begun several times at the same offset, was never left in order, and was never idle. Its records are
/// then processed in small groups, and Redis notes each group before. If a process crashes with a group, the next process makes smaller
/// groups of it, down to single records. If a process crashes with a single record, the next one processes it without its service
/// extensions, which may be the cause. If several processes crash with it, it is dead-lettered.
///
/// The lanes of a process crash together. So while one of them has a suspected partition, all of them begin records in groups, one lane at
/// a time. Records that a lane had begun before are the exception.
///
/// | type | what it has |
/// |---|---|
/// | `CrashLoops` | the counts and notes in Redis |
/// | `CrashLoopDetector` | a lane's part in them, and its hold on the permit |
/// | `CrashLoopPermit` | which lane of the process may try a group |
/// | `RecordGroups` | a value: the suspected partitions, and the group at hand |
/// | `CrashGroups` | connects these with `Intake` and `Pipeline` |
final class CrashLoopDetector {
  /// The group that was noted last, by its offsets. Some of them may have no record.
  struct Group: Equatable {
    var first: Int64
    var width: Int64

    /// The end of the next group, which begins at this offset.
    func end(from offset: Int64) -> Int64 {
      if offset < first { return min(first, offset + CrashLoopDetector.groupWidth) }
      return offset + (offset < first + width ? max(1, width / CrashLoopDetector.narrowing) : CrashLoopDetector.groupWidth)
    }
  }

  /// The treatment of a record with which a process has crashed while it processed nothing else.
  enum Remedy {
    /// It is processed without its service extensions.
    case withoutExtensions
    /// It crashes every worker, so it is dead-lettered.
    case deadLetter
  }

  /// The facts about a suspected partition when it begins.
  struct Suspicion: Equatable {
    /// The group that was noted last, which needs smaller groups.
    var group: Group?
    /// The treatments of single records that crashed processes, by offset.
    var remedies: [Int64: Remedy] = [:]
  }

  /// How often a partition begins at one offset until it is suspected.
  static let suspectedAfter = 4
  /// How many offsets a group spans at first, and the divisor for smaller groups: 64, 8, 1.
  static let (groupWidth, narrowing): (Int64, Int64) = (64, 8)
  /// How many processes crash with a single record until it is dead-lettered.
  static let deadlyAfter = 2
  /// How many processes crash in all until a record is dead-lettered: until it is suspected, in groups of 64 and 8, and with it alone.
  static let tries = suspectedAfter - 1 + 2 + deadlyAfter
  /// How many records of a suspected partition are begun in groups before it is processed as usual.
  static let bisectedRecords = 1_000

  /// How long the lane waits until it repeats a note that Redis did not take.
  private static let againMilliseconds = 200

  private enum Hold {
    case none
    case asked
    /// This lane has the permit, and has noted a group of this partition.
    case own(MarkedPartition?)
  }

  private let counts: CrashLoops
  /// Partitions that have begun, by index. A partition is removed when it is idle: then it has crashed no process.
  private var watched: [Int: MarkedPartition] = [:]
  private let permit: CrashLoopPermit
  private let lane: Int
  private var hold = Hold.none
  private let timer: Timer
  private let again: Timer
  private let healthyMilliseconds: Int
  weak var owner: (any CrashLoopDetectorOwner)?

  /// - Parameter healthyMilliseconds: how long after its beginning a partition is checked: a record that crashes its worker has done so by
  ///   then, or is in flight.
  init(on loop: EventLoop, _ counts: CrashLoops, _ permit: CrashLoopPermit, healthyMilliseconds: Int) {
    self.counts = counts
    self.permit = permit
    lane = permit.join()
    self.healthyMilliseconds = healthyMilliseconds
    timer = Timer(on: loop)
    again = Timer(on: loop)
    timer.handler = { [unowned self] in clearIdle() }
  }

  /// Counts that partitions begin at these offsets. Returns the suspected ones.
  func began(_ starts: [(partition: MarkedPartition, offset: Int64)]) async throws(StoreError) -> [MarkedPartition: Suspicion] {
    var suspicions: [MarkedPartition: Suspicion] = [:]
    for (start, known) in zip(starts, try await counts.began(starts, by: permit.process)) {
      guard let known, known.begins >= Self.suspectedAfter || known.group != nil || !known.ends.isEmpty else { continue }
      var suspicion = Suspicion(group: known.group.map { Group(first: $0.first, width: $0.width) })
      for (offset, processes) in known.ends {
        suspicion.remedies[offset] = processes >= Self.deadlyAfter ? .deadLetter : .withoutExtensions
      }
      suspicions[start.partition] = suspicion
    }
    return suspicions
  }

  // MARK: The permit

  /// Whether this lane has the permit.
  var hasPermit: Bool { if case .own = hold { true } else { false } }

  /// Whether the lane waits for the permit.
  var isWaiting: Bool { if case .asked = hold { true } else { false } }

  /// Whether this lane, and all others of the process, begin records in groups.
  var isBisecting: Bool { permit.isBisecting }

  /// Notes whether the lane has suspected partitions.
  func bisects(_ isBisecting: Bool) { permit.bisects(lane, isBisecting) }

  /// Takes the permit for the next group, after the group before is finished. A lane that does not get it is woken when it does.
  func takePermit() -> Bool {
    guard let owner else { return false }
    if permit.take(lane, owner.waker) {
      if !hasPermit { hold = .own(nil) }
    } else {
      withdrawNote()
      hold = .asked
    }
    return hasPermit
  }

  /// Returns the permit: the lane has no further group now.
  func returnPermit() {
    stopAsking()
    withdrawNote()
    permit.giveUp(lane)
    hold = .none
  }

  private func stopAsking() {
    again.stop()
    again.handler = nil
  }

  /// Removes the last note, since its group is finished and no other follows at once.
  private func withdrawNote() {
    if case .own(let noted?) = hold { counts.note(nil, by: permit.process, insteadOf: [noted]) }
  }

  /// Has Redis note the next group, when the one before is finished. Calls `then` when Redis has noted it.
  func note(_ partition: MarkedPartition, _ group: Group, _ then: @escaping () -> Void) {
    stopAsking()
    hold = .own(partition)
    let others = permit.willNote(partition)
    counts.note(partition, first: group.first, width: group.width, by: permit.process, insteadOf: others) { [self] error in
      guard hasPermit else { return }
      if let error {
        if error.code == .writesRefused { owner?.redisRefusedWrites(error) }
        // While Redis has the former note, the process must not crash with other records.
        again.handler = { [unowned self] in note(partition, group, then) }
        return again.start(after: Self.againMilliseconds)
      }
      permit.didNote(partition)
      then()
    }
  }

  // MARK: Harmless

  /// Partitions have left. The next owners continue the search in the suspected ones; the others are cleared.
  func left(_ partitions: [MarkedPartition], suspected: [MarkedPartition]) {
    leftToAnother(suspected)
    cleared(partitions.filter { !suspected.contains($0) })
  }

  /// Partitions have another owner, which continues the search.
  func leftToAnother(_ partitions: [MarkedPartition]) {
    if !partitions.isEmpty { counts.note(nil, by: permit.process, insteadOf: partitions) }
  }

  /// Clears partitions that were processed as usual.
  func cleared(_ partitions: [MarkedPartition]) { counts.clear(partitions) }

  /// Watches a partition that has begun: when it has been idle once, it is harmless.
  func watch(_ partition: MarkedPartition, _ index: Int) {
    watched[index] = partition
    timer.start(after: healthyMilliseconds)
  }

  /// Paused partitions are read again. Only now can they crash the worker, so the time of the watch begins again.
  func resumed() {
    if !watched.isEmpty { timer.start(after: healthyMilliseconds) }
  }

  /// Stops watching partitions.
  func left(_ indexes: [Int]) {
    for index in indexes { watched[index] = nil }
  }

  private func clearIdle() {
    let idle = watched.filter { owner?.isIdle($0.key) == true }
    left(Array(idle.keys))
    cleared(Array(idle.values))
    owner?.foundHarmless(Array(idle.values))
    if !watched.isEmpty { timer.start(after: healthyMilliseconds) }
  }

  /// Ends the watch, and passes the turn on.
  func close() {
    timer.close()
    again.close()
    permit.bisects(lane, false)
    permit.giveUp(lane)
    hold = .none
  }
}
