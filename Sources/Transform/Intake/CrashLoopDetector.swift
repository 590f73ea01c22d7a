import EventLoop
import Store

/// What is asked of the lane by who finds the record that takes its process down.
protocol CrashLoopDetectorOwner: AnyObject {
  /// Whether a partition is worked on, whatever it is of, and nothing of it is under way.
  func isIdle(_ index: Int) -> Bool
  /// These are suspected no more: nothing of them was under way once.
  func foundHarmless(_ partitions: [MarkedPartition])
  /// Redis takes no writes, and so no note.
  func redisRefusedWrites(_ error: StoreError)
  /// Called when the lane gets the permit, from any thread.
  var waker: @Sendable () -> Void { get }
}

/// Finds the record that takes its worker's process down, by what the workers before have counted. Loop-confined.
///
/// A partition that was begun several times at the same offset, and neither left in order nor ever idle, is suspected: its records are then
/// worked on in small groups, each noted before. Where a process ends over a group, the next one makes smaller ones of it, down to single
/// records. One that a process has ended over alone is worked on without its service extensions, which may be what ends processes; one
/// that several have ended over is dead-lettered.
/// The lanes of a process end together: as long as one of them has a suspected partition all begin their records in groups, one lane at a
/// time. What a lane had begun before another found its suspicion is the exception.
final class CrashLoopDetector {
  /// The group that was noted last, by its offsets: of what lies between them there may be none.
  struct Group: Equatable {
    var first: Int64
    var width: Int64

    /// The offset before which the next group ends that begins at this one.
    func end(from offset: Int64) -> Int64 {
      if offset < first { return min(first, offset + CrashLoopDetector.groupWidth) }
      return offset + (offset < first + width ? max(1, width / CrashLoopDetector.narrowing) : CrashLoopDetector.groupWidth)
    }
  }

  /// What is done about a record that a process has ended over while it worked on nothing else.
  enum Remedy {
    /// It is worked on without its service extensions.
    case withoutExtensions
    /// No worker survives it: it goes to the dead letters.
    case deadLetter
  }

  /// What is known of a suspected partition when it is begun.
  struct Suspicion: Equatable {
    /// What to look at more closely.
    var group: Group?
    /// What is done about records that processes have ended over while they worked on nothing else.
    var remedies: [Int64: Remedy] = [:]
  }

  /// Begins at one offset after which a partition is suspected.
  static let suspectedAfter = 4
  /// Offsets that a group spans at first, and by how much the groups become smaller: 64, 8, 1.
  static let (groupWidth, narrowing): (Int64, Int64) = (64, 8)
  /// Processes that ended while working on a record alone, after which it is dead-lettered.
  static let deadlyAfter = 2
  /// Processes that have ended over a record until it is dead-lettered.
  static let tries = suspectedAfter - 1 + 2 + deadlyAfter
  /// So many records of a suspected partition are begun in groups before it goes on as usual.
  static let bisectedRecords = 1_000

  /// How long after Redis did not take a note it is asked once more.
  private static let againMilliseconds = 200

  private enum Hold {
    case none
    case asked
    /// This lane has the permit, and has noted a group of this partition.
    case own(MarkedPartition?)
  }

  private let counts: CrashLoops
  /// Partitions that have begun, by index, until they are idle: no process has ended over them then.
  private var watched: [Int: MarkedPartition] = [:]
  private let permit: CrashLoopPermit
  private let lane: Int
  private var hold = Hold.none
  private let timer: Timer
  private let again: Timer
  private let healthyMilliseconds: Int
  weak var owner: (any CrashLoopDetectorOwner)?

  /// - Parameter healthyMilliseconds: how long after its begin a partition is looked at: a record that takes its worker's process down was read
  ///   by then, and does so sooner or is under way.
  init(on loop: EventLoop, _ counts: CrashLoops, _ permit: CrashLoopPermit, healthyMilliseconds: Int) {
    self.counts = counts
    self.permit = permit
    lane = permit.join()
    self.healthyMilliseconds = healthyMilliseconds
    timer = Timer(on: loop)
    again = Timer(on: loop)
    timer.handler = { [unowned self] in clearIdle() }
  }

  /// Partitions are begun at these offsets: those of them that are suspected.
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

  /// Whether records are begun in groups, in this lane and in all of its process.
  var isBisecting: Bool { permit.isBisecting }

  /// The lane has suspected partitions, or has none any more.
  func bisects(_ isBisecting: Bool) { permit.bisects(lane, isBisecting) }

  /// Takes the permit for the next group, after the group before is finished. A lane that does not get it is woken when it does.
  func takePermit() -> Bool {
    guard let owner else { return false }
    if permit.take(lane, owner.waker) {
      if !hasPermit { hold = .own(nil) }
    } else {
      unmark()
      hold = .asked
    }
    return hasPermit
  }

  /// Returns the permit: the lane has no further group now.
  func returnPermit() {
    stopAsking()
    unmark()
    permit.giveUp(lane)
    hold = .none
  }

  private func stopAsking() {
    again.stop()
    again.handler = nil
  }

  /// The group that was noted last is finished, and no other follows at once.
  private func unmark() {
    if case .own(let noted?) = hold { counts.unmark([noted], by: permit.process) }
  }

  /// A group of records is going to be worked on, and the one before is finished; `then` is called when Redis has noted that.
  func mark(_ partition: MarkedPartition, _ group: Group, _ then: @escaping () -> Void) {
    stopAsking()
    hold = .own(partition)
    let others = permit.willNote(partition)
    counts.mark(partition, first: group.first, width: group.width, by: permit.process, insteadOf: others) { [self] error in
      guard hasPermit else { return }
      if let error {
        if error.code == .writesRefused { owner?.redisRefusedWrites(error) }
        // As long as the former note stands, nobody may end over anything else.
        again.handler = { [unowned self] in mark(partition, group, then) }
        return again.start(after: Self.againMilliseconds)
      }
      permit.didNote(partition)
      then()
    }
  }

  // MARK: Harmless

  /// Partitions are left: those that are suspected with what is known of them, for the next owner goes on with the search, and nobody has
  /// ended; of the others nothing is suspected any more.
  func left(_ partitions: [MarkedPartition], suspected: [MarkedPartition]) {
    leftToAnother(suspected)
    cleared(partitions.filter { !suspected.contains($0) })
  }

  /// Partitions have another owner, who goes on with the search.
  func leftToAnother(_ partitions: [MarkedPartition]) {
    if !partitions.isEmpty { counts.unmark(partitions, by: permit.process) }
  }

  /// Partitions have gone on as usual: nothing is suspected any more.
  func cleared(_ partitions: [MarkedPartition]) { counts.clear(partitions) }

  /// A partition has begun: when it has been idle once, that did no harm.
  func watch(_ partition: MarkedPartition, _ index: Int) {
    watched[index] = partition
    timer.start(after: healthyMilliseconds)
  }

  /// What was held back is read from now on: what has begun shows only now whether it does harm.
  func resumed() {
    if !watched.isEmpty { timer.start(after: healthyMilliseconds) }
  }

  /// Partitions that nobody is to look at any more.
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

  /// Nothing is looked at any more.
  func close() {
    timer.close()
    again.close()
    permit.bisects(lane, false)
    permit.giveUp(lane)
    hold = .none
  }
}
